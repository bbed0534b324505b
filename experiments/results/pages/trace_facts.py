"""What the page of a trace says besides its plots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Rows = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class TraceFacts:
    """What a trace's page says besides its plots.

    Attributes:
        name: the heading.
        lead: one sentence on what is shown.
        tables: a title and the rows of each table.
        one: what a client is called: "client" or "group".
        of_windows: what the windows are, as a title of axes.
    """

    name: str
    lead: str
    tables: Sequence[tuple[str, Rows]]
    one: str
    of_windows: str
