"""The windows in which the rows of a trace folder arrive: steps, intervals of time, or stretches of ranks."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import NamedTuple

import numpy as np

from emulator.arrays import Bools, Ints
from emulator.errors import ConfigurationError, DataFileError
from traces.calendar import CALENDAR, CalendarWidth, microseconds, window_numbers, windows_of
from traces.files.arrivals import ArrivalRows
from traces.files.expiry import never
from traces.tables.base import NEVER


class Windows(NamedTuple):
    """The windows of the rows of a trace folder.

    Attributes:
        kept: (rows,) whether a row lies between `since` and `until`; at least one does.
        window: (rows,) the window of each row that is kept: those of times and ranks are counted from 0,
            steps of the file are divided by the width. Of no meaning for the others. It may be a view of
            `rows.at`.
        expiry: (rows,) the window from which on each row that is kept is held no longer, counted as `window`;
            `NEVER` to the end. None if the file does not say.
    """

    kept: Bools
    window: Ints
    expiry: Ints | None = None


def windows_of_rows(
    rows: ArrivalRows,
    path: Path,
    *,
    width: float | CalendarWidth | None,
    since: date | int | None,
    until: date | int | None,
    key: Callable[[str], str],
) -> Windows:
    """The window in which each row arrives, and that in which it expires.

    A row that expires in the window in which it arrives is never held, and not kept.

    Args:
        rows: the rows.
        path: the file they are from, for messages.
        width: of a window: days or a unit of the calendar for times (None: a day), ranks, or steps (None: 1).
        since: a date, step or rank; earlier rows are left out, and windows of times and ranks begin there
            (None: at the earliest row).
        until: rows from that date, step or rank on are left out.
        key: makes the name of a setting, as its user knows it, of `step_width`, `since` or `until`.

    Raises:
        ConfigurationError: a setting does not fit the column that says when rows arrive.
        DataFileError: no row is left.
    """
    first, last = (_bound(rows, value, key(name)) for name, value in (("since", since), ("until", until)))
    kept = np.ones(len(rows), dtype=np.bool_)
    if first is not None:
        kept &= rows.at >= first
    if last is not None:
        kept &= rows.at < last
    if not kept.any():
        raise DataFileError(path, f"no row is left between {key('since')} and {key('until')}")
    # Rows that are left out need no window of their own: they may be centuries away.
    at = rows.at if kept.all() else np.where(kept, rows.at, rows.at[np.argmax(kept)])
    origin = int(at.min()) if first is None else first
    if rows.when == "time":
        days = 1.0 if width is None else width
        return _held(
            rows,
            path,
            Windows(kept, windows_of(at, days, origin, key("step_width"))),
            lambda times: window_numbers(times, days, origin),
            key,
        )
    if width is None and rows.when == "order":
        raise ConfigurationError(
            f"{key('step_width')}: missing; the trace has a column order, so it must say how many samples of "
            f"a client arrive at a data step"
        )
    if isinstance(width, str) or (width is not None and width != int(width)):
        raise ConfigurationError(
            f"{key('step_width')} = {width!r}: the trace has a column {rows.when}, so it must be a whole "
            f"number; {', '.join(CALENDAR)} and fractions of a day are for a column time"
        )
    start, size = origin if rows.when == "order" else 0, 1 if width is None else int(width)
    shifted: Ints = at.astype(np.int64) - start if start else at
    windows = Windows(kept, shifted if size == 1 else shifted // size)
    return _held(rows, path, windows, lambda steps: (steps.astype(np.int64) - start) // size, key)


def _held(
    rows: ArrivalRows,
    path: Path,
    windows: Windows,
    window_of: Callable[[Ints], Ints],
    key: Callable[[str], str],
) -> Windows:
    """`windows` with those of expiry, and without the rows that are never held."""
    if rows.expiry is None:
        return windows
    is_never = rows.expiry == never(rows.expiry)
    window = window_of(np.where(is_never | ~windows.kept, rows.at[np.argmax(windows.kept)], rows.expiry))
    expiry = np.where(is_never, NEVER, np.minimum(window, NEVER))
    kept = windows.kept & (expiry > windows.window)
    if not kept.any():
        raise DataFileError(
            path,
            f"every row expires in the window in which it arrives; a smaller {key('step_width')} tells them "
            f"apart",
        )
    return Windows(kept, windows.window, expiry)


def _bound(rows: ArrivalRows, value: date | int | None, key: str) -> int | None:
    """A bound in the unit of `rows.at`; ConfigurationError if it is of another kind."""
    if value is None:
        return None
    if isinstance(value, date) != (rows.when == "time"):
        wanted = "a date, as in 2015-01-01" if rows.when == "time" else "a whole number"
        raise ConfigurationError(
            f"{key} = {value}: the trace has a column {rows.when}, so it must be {wanted}"
        )
    return microseconds(value) if isinstance(value, date) else value
