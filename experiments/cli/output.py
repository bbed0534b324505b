"""Output of the commands: a table for people, or JSON on stdout for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import IO, TYPE_CHECKING

from emulator.errors import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


class OutputFormat(StrEnum):
    TABLE = "table"
    JSON = "json"


WIDTH_WITHOUT_TERMINAL = 140
"""Width of tables in letters where the output is no terminal."""

Rows = Sequence[Mapping[str, object]]


def say(text: str = "", *, aside: bool = False) -> None:
    """Print lines of text, a stranger's too: a terminal obeys none of it.

    Args:
        text: The lines.
        aside: Print on standard error, at once.
    """
    print(printable(text), file=sys.stderr if aside else None, flush=aside)


def note(text: str) -> None:
    """Print `text` on standard error."""
    say(text, aside=True)


def plain(text: str, style: str = "") -> Text:
    """Lines of text for a terminal, which obeys none of it."""
    from rich.text import Text

    return Text(printable(text), style=style)


def print_json(value: object) -> None:
    """Print `value` as JSON; ValueError for NaN and infinity, which JSON lacks."""
    print(json.dumps(value, indent=2, allow_nan=False))


def print_table(rows: Rows, title: str = "", output: OutputFormat = OutputFormat.TABLE) -> None:
    """Print a table with the first row's keys as headings; as JSON, the list of rows, without `title`."""
    if output is OutputFormat.JSON:
        print_json([dict(row) for row in rows])
        return
    from rich.table import Table

    table = Table(title=plain(title) if title else None, title_justify="left")
    for key in rows[0] if rows else ():
        numeric = all(isinstance(row[key], (int, float)) for row in rows)
        table.add_column(plain(key), justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(plain(as_text(value)) for value in row.values()))
    wide_console().print(table)


def wide_console() -> Console:
    """A console for tables, of `WIDTH_WITHOUT_TERMINAL` letters if the output is no terminal."""
    from rich.console import Console

    console = Console()
    return console if console.is_terminal else Console(width=WIDTH_WITHOUT_TERMINAL)


def text_console(file: IO[str]) -> Console:
    """A console that writes tables of `WIDTH_WITHOUT_TERMINAL` letters into `file`, as text without styles.

    Unlike others, it does so in a notebook too, where rich makes an output of all that it prints.
    """
    from rich.console import Console

    return Console(
        file=file,
        width=WIDTH_WITHOUT_TERMINAL,
        force_terminal=False,
        force_jupyter=False,
        color_system=None,
    )


def as_text(value: object) -> str:
    """A float with four significant digits, None as a dash, any other value as its str.

    From 10,000 on, a float is rounded to a whole number.
    """
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    return str(value)
