"""Layouts of the rows of a trace, in memory or in a mapped file."""
