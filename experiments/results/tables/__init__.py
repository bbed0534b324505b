"""The tables of results: a file for each, and how numbers are written as text."""
