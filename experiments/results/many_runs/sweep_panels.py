"""The layout of a sweep as small multiples: a key on the x axis, a panel for each combination of the others.

Pure: it knows the swept keys and values of a section, and nothing of accuracies or of plotly.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from emulator.errors import shorten
from experiments.results.many_runs.directories import MeasuredDirectory
from experiments.results.reading.differing_keys import short_names
from experiments.results.reading.recorded import written
from experiments.results.reading.swept_values import canonical, given_ranks

MOST_PANELS = 48
MOST_COLUMNS = 6
USUAL_COLUMNS = 4

MOST_VALUE_LETTERS = 24
"""Most letters of a value on the axis and in a title."""


@dataclass(frozen=True)
class SweepLayout:
    """The layout of the cells of a sweep.

    Attributes:
        key: Short name of the key of the x axis.
        values: Its values as text, in the order of the axis.
        others: Short names of the other keys that have several values.
        panels: The title and the members of each panel, ordered by the values of `others`, those of the last
            key changing fastest. A title has these values, as "mixes 4, hear online"; the members are the run
            directory at each position on the axis, without positions that have none.
        columns: Number of panels side by side.
    """

    key: str
    values: list[str]
    others: list[str]
    panels: list[tuple[str, Mapping[int, str]]]
    columns: int


def sweep_layout(members: Sequence[MeasuredDirectory]) -> SweepLayout:
    """The layout of the cells `members`, at least one, of one sweep.

    The x axis is the first swept key with several values, or the first one if no key has them. Values are in
    the order given, as far as it was recorded (`given_ranks`); numbers follow, ascending, and then other
    values, sorted by their text. A cell without a key is treated as if the key had the value None. Of two
    cells with the same values, the first has the place.
    """
    keys = list(dict.fromkeys(key for member in members for key in member.cell.keys))
    values = {key: _values_of(key, members) for key in keys}
    names = dict(zip(keys, short_names([tuple(key.split(".")) for key in keys]), strict=True))
    varied = [key for key in keys if len(values[key]) > 1]
    axis = varied[0] if varied else keys[0]
    others = [key for key in varied if key != axis]
    cells: dict[tuple[int, ...], dict[int, str]] = {}
    for member in members:
        position = {key: values[key].index(canonical(member.cell.keys.get(key))) for key in keys}
        panel = cells.setdefault(tuple(position[key] for key in others), {})
        panel.setdefault(position[axis], member.name)
    texts = {key: [_text(json.loads(value)) for value in of_key] for key, of_key in values.items()}

    def title(place: tuple[int, ...]) -> str:
        return ", ".join(f"{names[key]} {texts[key][at]}" for key, at in zip(others, place, strict=True))

    return SweepLayout(
        key=names[axis],
        values=texts[axis],
        others=[names[key] for key in others],
        panels=[(title(place), cells[place]) for place in sorted(cells)],
        columns=_columns(len(cells), len(values[others[-1]]) if others else 1),
    )


def _columns(num_panels: int, period: int) -> int:
    """The number of columns; a multiple of `period`, the number of values of the last key, if it is small.

    >>> _columns(18, 2), _columns(18, 5), _columns(18, 9), _columns(2, 2)
    (6, 5, 4, 2)
    """
    aligned = MOST_COLUMNS // period * period
    return min(num_panels, aligned or USUAL_COLUMNS)


def _values_of(key: str, members: Sequence[MeasuredDirectory]) -> list[str]:
    """The distinct values of a swept key as canonical JSON.

    Those that were given come first, in their order, then numbers, ascending, then others by their text.
    """
    ranks = given_ranks([member.cell.order[key] for member in members if key in member.cell.order])

    def position(text: str) -> tuple[int, float, str]:
        if text in ranks:
            return 0, ranks[text], ""
        value = json.loads(text)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return (1, float(value), "") if is_number else (2, 0.0, _text(value))

    distinct = dict.fromkeys(canonical(member.cell.keys.get(key)) for member in members)
    return sorted(distinct, key=position)


def _text(value: Any) -> str:
    if value is None:
        return "not swept"
    return shorten(f"{value:g}" if isinstance(value, float) else written(value), MOST_VALUE_LETTERS)
