"""A trace as one table for other tools: which client holds which sample, from when until when.

`held.py` finds the rows and the data steps in which they are held, `parquet.py` writes them with their
features.
"""
