"""Inference: predictions of models, scores, and the evaluation of every client."""
