"""What a run says of single clients: their accuracies, the groups they fall into, and their visits."""
