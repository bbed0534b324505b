"""Figures on a trace, or on the table that it is made of: who receives what, when, and how labels shift.

Pure functions over counts of labels by client and window (`observations.py`). They know neither
configurations nor how figures are printed.
"""
