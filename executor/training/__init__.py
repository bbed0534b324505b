"""Local training: batches, groups of tasks, and the three strategies that train them."""
