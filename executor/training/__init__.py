"""Local training: batches, task groups, and the three strategies that train them."""
