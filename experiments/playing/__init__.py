"""Plays the runs of a command, whoever gave it: the command line, or `driftscale.run` in Python.

Prints nothing: a `Show` is told what to show.
"""
