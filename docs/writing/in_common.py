"""Rows that several tables of a page have in common: described once, and named where they belong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from docs.writing.markdown import anchor, heading, table

Row = tuple[str, str, str, str]
"""Name, type, default and meaning: of a setting, an option; or of a column, which has other cells."""


class InCommon:
    """What several tables of settings or options have in common, and what each has of its own."""

    def __init__(self, title: str, headings: Sequence[str], tables: Sequence[Sequence[Row]]) -> None:
        """Compare the rows of `tables`, all of which have these headings; `title` is of what they share."""
        self.title, self.headings, self._tables = title, headings, tables

    @cached_property
    def rows(self) -> dict[str, Row]:
        """The rows that several tables have alike, with the commonest default; none if it is one row."""
        shared = {}
        for name in dict.fromkeys(row[0] for rows in self._tables for row in rows):
            found = [row for rows in self._tables for row in rows if row[0] == name]
            alike = max(([row for row in found if _alike(row, first)] for first in found), key=len)
            if len(alike) > 1:
                shared[name] = max(alike, key=alike.count)
        return shared if len(shared) > 1 else {}

    def section(self, level: int) -> Iterator[str]:
        """The heading and the table of the rows that are shared; nothing without any."""
        if self.rows:
            yield heading(level, self.title)
            yield table(self.headings, list(self.rows.values()))

    def own(self, rows: Sequence[Row]) -> Iterator[str]:
        """The table of what one has of its own, and what it shares by name, with defaults that differ."""
        own = [row for row in rows if not _alike(row, self.rows.get(row[0]))]
        yield table(self.headings, own)
        names = [
            row[0] if row == self.rows[row[0]] else f"{row[0]} ({row[2] or 'not set'})"
            for row in rows
            if row not in own
            and f"{row[0].partition('.')[0]}`" not in self.rows  # that is, no key of a table
        ]
        if names:
            yield f"[{self.title}](#{anchor(self.title)}): {', '.join(names)}."


def _alike(row: Row, other: Row | None) -> bool:
    """Whether two rows differ in their defaults at most."""
    return other is not None and (row[:2], row[3]) == (other[:2], other[3])
