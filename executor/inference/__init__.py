"""What models make of samples: predictions, scores, and the evaluation of every client."""
