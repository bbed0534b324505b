"""How much is read of a table: input files are untrusted."""

from __future__ import annotations

MOST_BYTES = 2**31
"""Largest table: its file, its text when decompressed, and its columns in memory, each."""

MOST_CELLS = 2**28
"""Most rows x columns: two gibibytes of numbers in double precision."""

MOST_COLUMNS = 2**14
"""Most columns: twenty times as many as MNIST as a table."""

MOST_REASON = 500
"""Most characters quoted from a library's error message, which may contain a whole line of the file."""
