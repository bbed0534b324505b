"""Updates, trained at dispatch or absorption; what clients may remember of them, and who watches them."""
