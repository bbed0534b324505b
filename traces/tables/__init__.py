"""How the rows of a trace are laid out, in memory or in a mapped file."""
