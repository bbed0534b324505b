"""What the bench measures us against: the same work by SimPy, and by scanning."""
