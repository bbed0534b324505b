"""What clusters mean to the clients of a run: their changes, the truth, and who is honest."""
