"""Output of the commands: a table for people, or JSON on stdout for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


class OutputFormat(StrEnum):
    TABLE = "table"
    JSON = "json"


WIDTH_WITHOUT_TERMINAL = 140
"""Width of tables in letters where the output is no terminal."""

Rows = Sequence[Mapping[str, object]]


def print_json(value: object) -> None:
    """Print `value` as JSON; ValueError for NaN and infinity, which JSON lacks."""
    print(json.dumps(value, indent=2, allow_nan=False))


def print_table(rows: Rows, title: str = "", output: OutputFormat = OutputFormat.TABLE) -> None:
    """Print a table with the first row's keys as headings; as JSON, the list of rows, without `title`."""
    if output is OutputFormat.JSON:
        print_json([dict(row) for row in rows])
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title) if title else None, title_justify="left")
    for key in rows[0] if rows else ():
        numeric = all(isinstance(row[key], (int, float)) for row in rows)
        table.add_column(Text(key), justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(as_text(value)) for value in row.values()))
    wide_console().print(table)


def wide_console() -> Console:
    """A console for tables, of `WIDTH_WITHOUT_TERMINAL` letters if the output is no terminal."""
    from rich.console import Console

    console = Console()
    return console if console.is_terminal else Console(width=WIDTH_WITHOUT_TERMINAL)


def printable(text: str) -> str:
    """The text, with its characters as escapes if it has control characters that a terminal acts on.

    >>> printable("0.5"), printable(chr(27) + "[2J")
    ('0.5', '\\\\x1b[2J')
    """
    from emulator.storage.bounded import has_controls

    return ascii(text)[1:-1] if has_controls(text) else text


def as_text(value: object) -> str:
    """A float with four significant digits, None as a dash, any other value as its str.

    From 10,000 on, a float is rounded to a whole number.
    """
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    return str(value)
