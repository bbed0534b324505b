"""The facts on the page of a trace, besides its plots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Rows = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class TraceFacts:
    """The facts on the page of a trace, besides its plots.

    Attributes:
        name: the heading.
        lead: one sentence on the trace.
        tables: a title and the rows of each table.
        one: the word for a client: "client" or "group".
        of_windows: the title of axes of windows.
        window: the words for a window in captions, as in "window of 7 days".
    """

    name: str
    lead: str
    tables: Sequence[tuple[str, Rows]]
    one: str
    of_windows: str
    window: str = "window"
