"""References of the bench: the same work by SimPy, by a scan of client objects, and by plain PyTorch."""
