"""How wide windows have to be for clients to be observed in them: the narrowest ones of a ladder of widths.

As in `label_shift`, a client is observed in a window with at least `min_samples`. Windows show a client if it
is observed in at least two of them, which have at least half of its samples.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from typing import NamedTuple

import numpy as np

from emulator.arrays import Bools, Ints
from traces.calendar import MICROSECONDS_PER_DAY, CalendarWidth, periods
from traces.inspection.observations import Observations, counted
from traces.inspection.presence import samples_of_clients

DAYS: tuple[int | CalendarWidth, ...] = (1, 2, 7, 14, "month", "quarter", "year")

Width = float | CalendarWidth


class Rung(NamedTuple):
    """A width of windows, and (num_windows,) the wider window of each window that was counted, ascending."""

    width: Width
    window_of: Ints


class Choice(NamedTuple):
    """The width that was chosen.

    Attributes:
        width: the narrowest width that shows at least half of the clients `able`; None if none does.
        shown: the clients that it shows, or the most that any width shows.
        able: the clients with enough samples for two windows, twice `min_samples`.
    """

    width: Width | None
    shown: int
    able: int


def choose_width(observations: Observations, ladder: Iterable[Rung], min_samples: int) -> Choice:
    """The narrowest width of a ladder, from narrow to wide, that shows at least half of the clients.

    Args:
        observations: the counts of labels.
        ladder: the widths.
        min_samples: observations that a client needs in a window, at least 1.

    Returns:
        The choice; clients without enough samples for two windows do not count in it.

    Ten times two samples of one client, of which ten are needed:

    >>> from traces.inspection.observations import counted
    >>> window = np.repeat(np.arange(10), 2)
    >>> rows = counted(np.zeros(20, int), window, np.zeros(20, int), shape=(1, 10, 1))
    >>> choose_width(rows, steps_ladder(10), min_samples=10)
    Choice(width=5, shown=1, able=1)
    """
    able = int((samples_of_clients(observations) >= 2 * min_samples).sum())
    most = 0
    for rung in ladder:
        shown = int(shown_clients(observations, rung.window_of, min_samples).sum())
        if shown and 2 * shown >= able:
            return Choice(rung.width, shown, able)
        most = max(most, shown)
    return Choice(None, most, able)


def shown_clients(observations: Observations, window_of: Ints, min_samples: int) -> Bools:
    """(num_clients,) whether each client is shown by the windows `window_of` (num_windows,), ascending."""
    clients = observations.num_clients
    client, window = observations.client, window_of[observations.window]
    is_first = np.ones(len(client), np.bool_)
    is_first[1:] = (client[1:] != client[:-1]) | (window[1:] != window[:-1])
    size = np.bincount(np.cumsum(is_first) - 1, weights=observations.count)
    is_observed = size >= min_samples
    of_cell = client[is_first]
    windows = np.bincount(of_cell[is_observed], minlength=clients)
    samples = np.bincount(of_cell, weights=size * is_observed, minlength=clients)
    shown: Bools = (windows >= 2) & (2 * samples >= samples_of_clients(observations))
    return shown


def steps_ladder(num_windows: int, first: int = 0) -> Iterator[Rung]:
    """The widths 1, 2, 5, 10, 20, 50, ... of `num_windows` windows of width 1, numbered from `first`.

    Wider windows begin at multiples of their width. All but the first width make at least two of them.

    >>> [rung.width for rung in steps_ladder(15)], list(steps_ladder(4, first=3))[1].window_of.tolist()
    ([1, 2, 5, 10], [0, 1, 1, 2])
    """
    window = first + np.arange(num_windows)
    for width in (factor * 10**power for power in count() for factor in (1, 2, 5)):
        if width > 1 and width >= num_windows:
            return
        yield Rung(width, window // width - first // width)


def days_ladder(num_windows: int, first: int, origin: int) -> Iterator[Rung]:
    """The widths `DAYS` of `num_windows` windows of a day.

    Args:
        num_windows: the number of windows.
        first: the number of the first of them.
        origin: microseconds since 1970-01-01 at which window 0 begins.

    Yields:
        The widths: of days, counted from `origin`, or units of the calendar. All but the first make at least
        two windows.

    >>> [rung.width for rung in days_ladder(40, 0, 0)]
    [1, 2, 7, 14, 'month']
    """
    day = first + np.arange(num_windows)
    for width in DAYS:
        wider = (
            periods(origin // MICROSECONDS_PER_DAY + day, width) if isinstance(width, str) else day // width
        )
        if width == 1 or wider[-1] > wider[0]:
            yield Rung(width, wider - wider[0])


def grouped(observations: Observations, width: int) -> Observations:
    """The counts of every `width` windows together, from the first on.

    >>> from traces.inspection.observations import counted
    >>> rows = counted(np.array([0, 0, 0]), np.array([0, 1, 4]), np.array([2, 2, 2]), shape=(1, 5, 3))
    >>> grouped(rows, 2).window.tolist(), grouped(rows, 2).count.tolist(), grouped(rows, 2).num_windows
    ([0, 2], [2.0, 1.0], 3)
    """
    windows = -(-observations.num_windows // width)
    return counted(
        observations.client,
        observations.window // width,
        observations.label,
        observations.count,
        shape=(observations.num_clients, windows, observations.num_labels),
        client_names=observations.client_names,
        label_names=observations.label_names,
    )
