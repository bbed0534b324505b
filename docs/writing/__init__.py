"""Writes the reference and the gallery from the classes, as plain Markdown (`make reference`).

Each page is a pure function to a text, and knows no engine that renders it.
"""
