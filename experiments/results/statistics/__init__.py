"""Figures of one run, and of an arm over its seeds; nothing here knows how they are shown."""
