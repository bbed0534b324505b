"""References of the bench: the same work by SimPy, and by a scan of client objects."""
