"""Frames of results as files for other programs."""
