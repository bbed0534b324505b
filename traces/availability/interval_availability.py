"""Availability from intervals: columns per device, and pure queries by binary search.

Defines the meaning of an interval. Intervals are half-open, [start, end). A device with a finite period
repeats its intervals for ever; one with an infinite period has each of them once. Virtual time starts at 0.
Shapes: D devices, I intervals, N clients, n ids in a query.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np

from emulator.arrays import Bools, Floats, Floats32, Ints
from emulator.assigning import DeviceIds
from emulator.errors import DataFileError

Result = TypeVar("Result", Bools, Floats)
Shown = Callable[[float], str]
Overlapping = Literal["refuse", "merge"]
"""What becomes of intervals of one device that overlap."""


@dataclass(frozen=True)
class DeviceIntervals:
    """The times at which each device is online.

    Device d's intervals are rows `offsets[d]` to `offsets[d + 1]`. They ascend, and neither overlap nor
    touch, so the device turns online at each start and offline at each end. Starts lie in [0, period). An
    interval that is cut by the period's end is stored whole: its end lies beyond the period. A device that is
    never offline has the single interval [0, inf) and an infinite period; one that is never online has no
    interval and an infinite period.
    """

    offsets: Ints  # (D + 1,)
    start_s: Floats  # (I,)
    end_s: Floats  # (I,)
    period_s: Floats  # (D,), inf where nothing repeats
    num_dropped_empty: int = 0
    ids: DeviceIds | None = None  # of the table that they come from

    @property
    def num_devices(self) -> int:
        return len(self.period_s)

    @property
    def num_intervals(self) -> Ints:
        """(D,) the number of intervals of each device."""
        return np.diff(self.offsets)

    @property
    def num_never_online(self) -> int:
        return int((self.num_intervals == 0).sum())

    def take(self, devices: Ints) -> DeviceIntervals:
        """The devices (n,) in this order, ascending, of which only ones without intervals are left out."""
        offsets = np.append(self.offsets[:-1][devices], self.offsets[-1])
        return replace(
            self,
            offsets=offsets,
            period_s=self.period_s[devices],
            ids=None if self.ids is None else self.ids.take(devices),
        )


def lay_out(
    device: Ints, start_s: Floats, end_s: Floats, period_s: Floats, num_dropped_empty: int = 0
) -> DeviceIntervals:
    """Lay out intervals in any order as columns; touching ones are merged, also across the end of the period.

    `device`, `start_s`, `end_s` are of shape (I,), `period_s` of shape (D,). The intervals must be valid
    already: not empty, starts in [0, period), and no overlap with another or with itself one period later.
    """
    order = np.lexsort((start_s, device))
    device, start_s, end_s = device[order], start_s[order], end_s[order]

    opens = np.ones(len(device), dtype=np.bool_)
    opens[1:] = (device[1:] != device[:-1]) | (start_s[1:] != end_s[:-1])
    closes = np.ones_like(opens)
    closes[:-1] = opens[1:]
    device, start_s, end_s = device[opens], start_s[opens], end_s[closes]

    offsets = np.searchsorted(device, np.arange(len(period_s) + 1))
    online = np.flatnonzero(np.diff(offsets))
    first, last = offsets[online], offsets[online + 1] - 1
    meets = end_s[last] == start_s[first] + period_s[online]
    whole = meets & (first == last)
    start_s[first[whole]], end_s[last[whole]] = 0.0, np.inf
    continued = meets & ~whole
    end_s[last[continued]] = end_s[first[continued]] + period_s[online[continued]]

    kept = np.ones(len(device), dtype=np.bool_)
    kept[first[continued]] = False
    repeats = np.full(len(period_s), np.inf)
    repeats[online[~whole]] = period_s[online[~whole]]
    return DeviceIntervals(
        np.searchsorted(device[kept], np.arange(len(period_s) + 1)),
        start_s[kept],
        end_s[kept],
        repeats,
        num_dropped_empty,
    )


def from_intervals(
    device: Ints,
    start_s: Floats,
    end_s: Floats,
    period_s: Floats,
    origin_s: Floats | None = None,
    phase_s: Floats | None = None,
    *,
    path: Path | str = "intervals",
    overlapping: Overlapping = "refuse",
    shown: Shown = "{:.15g}".format,
) -> DeviceIntervals:
    """Lay out the rows of a table, in any order, as columns; empty intervals are dropped and counted.

    `device` (I,) is the device's number in [0, D). `period_s` (D,) is above 0, and inf if nothing repeats.
    Virtual time 0 is the device's origin (D,; default 0), or `phase_s` (D,; default 0) seconds before it:
    intervals that then fall beyond the end of the period wrap around to its beginning. With
    `overlapping = "merge"` a device is online where any of its intervals is. `shown` writes instants.

    Raises DataFileError, naming `path` and the row (from 1, in the given order), for a value that is not
    finite, an end before its start, an interval outside the period that begins at the origin, and an overlap
    that is refused.
    """
    origin_s = np.zeros(len(period_s)) if origin_s is None else origin_s
    period, origin = period_s[device], origin_s[device]

    def refuse(bad: Bools, problem: str) -> None:
        if bad.any():
            i = int(np.flatnonzero(bad)[0])
            values = {"start": start_s[i], "end": end_s[i], "origin": origin[i], "period": period[i]}
            raise DataFileError(path, problem.format(**values), row=i + 1)

    refuse(~np.isfinite(start_s), "start_s = {start:.15g} must be a finite number")
    refuse(~np.isfinite(end_s), "end_s = {end:.15g} must be a finite number")
    refuse(end_s < start_s, "end_s = {end:.15g} is before start_s = {start:.15g}")
    refuse(
        start_s < origin,
        "start_s = {start:.15g} must be at least {origin:.15g}, where its device's trace begins",
    )
    start, end = start_s - origin, end_s - origin
    refuse(
        end > period,
        "end_s = {end:.15g} must be within the period of {period:.15g} s, which begins at {origin:.15g}",
    )

    rows = np.flatnonzero(end > start)
    rows = rows[np.lexsort((end[rows], start[rows], device[rows]))]
    num_dropped_empty = len(device) - len(rows)
    if overlapping == "refuse":
        _refuse_overlaps(device, start_s, end_s, rows, path, shown)
    device, start, end = device[rows], start[rows], end[rows]
    if overlapping == "merge":
        device, start, end = _unions(device, start, end)
    if phase_s is not None:
        turned = np.fmod(start + phase_s[device], period_s[device])
        start, end = turned, turned + (end - start)
    return lay_out(device, start, end, period_s, num_dropped_empty)


def _unions(device: Ints, start: Floats, end: Floats) -> tuple[Ints, Floats, Floats]:
    """The unions of intervals that overlap or touch, device by device.

    >>> unions = _unions(np.zeros(3, int), np.array([0.0, 2.0, 5.0]), np.array([4.0, 3.0, 6.0]))
    >>> [column.tolist() for column in unions]
    [[0, 0], [0.0, 5.0], [4.0, 6.0]]
    """
    who, at = np.append(device, device), np.append(start, end)
    turn = np.repeat([1, -1], len(device))
    order = np.lexsort((-turn, at, who))  # one that starts where another ends comes before that end
    ongoing = np.cumsum(turn[order])
    opens, closes = order[ongoing == turn[order]], order[ongoing == 0]
    return who[opens], at[opens], at[closes]


def _refuse_overlaps(
    device: Ints, start_s: Floats, end_s: Floats, rows: Ints, path: Path | str, shown: Shown
) -> None:
    """DataFileError if two of `rows`, sorted by device and start, overlap; touching is no overlap."""
    earlier, later = rows[:-1], rows[1:]
    overlaps = (device[later] == device[earlier]) & (start_s[later] < end_s[earlier])
    if overlaps.any():
        i = int(np.flatnonzero(overlaps)[0])
        first, second = sorted((int(earlier[i]), int(later[i])))
        interval, before = (f"[{shown(start_s[row])}, {shown(end_s[row])})" for row in (second, first))
        problem = f"{interval} overlaps {before} of the same device in row {first + 1}"
        remedy = 'devices.availability.overlapping = "merge" takes both together'
        raise DataFileError(path, f"{problem}; {remedy}", row=second + 1)


@dataclass(frozen=True)
class _Position:
    """The position of an instant among the intervals of each of n devices; shapes (n,)."""

    first: Ints  # the device's rows are [first, stop)
    stop: Ints
    later: Ints  # the first row that starts after the instant; `stop` without such a row
    period_s: Floats
    local_s: Floats  # the instant, counted from the beginning of the present period
    lap_s: Floats  # the beginning of the present period


class IntervalAvailability:
    """The `Availability` of N clients, each of which has a device of `intervals`.

    A query touches only the given ids, or each device once if those are fewer, in about log2(most intervals
    of a device) array passes. Results are exact if times and periods are whole seconds, or whole multiples of
    some 2**-k s. Otherwise adding whole periods rounds as float64 does, and the result of `next_...` is still
    strictly later.

    >>> nights = from_intervals(np.array([0]), np.array([79200.0]), np.array([86400.0]), np.array([86400.0]))
    >>> availability = IntervalAvailability(nights, device_of=np.array([0, 0]))
    >>> availability.online(np.array([1]), 79200.0), availability.next_online_s(np.array([1]), 79200.0)
    (array([ True]), array([165600.]))
    """

    def __init__(self, intervals: DeviceIntervals, device_of: Ints) -> None:
        self.num_devices = intervals.num_devices
        self.num_dropped_empty = intervals.num_dropped_empty
        self.num_never_online = intervals.num_never_online
        self.device_of = device_of.astype(np.int32)  # (N,)
        self._offsets = intervals.offsets
        self._period_s = intervals.period_s
        # One spare row stands in for the interval of a device without intervals.
        self._start_s = _narrowed(np.append(intervals.start_s, 0.0))
        self._end_s = _narrowed(np.append(intervals.end_s, 0.0))
        self._spare = len(intervals.start_s)

    @property
    def facts(self) -> Mapping[str, int]:
        return {
            "devices": self.num_devices,
            "devices never online": self.num_never_online,
            "empty intervals dropped": self.num_dropped_empty,
        }

    def online(self, ids: Ints, time_s: float) -> Bools:
        """(n,) whether each client is online at `time_s` >= 0."""
        return self._of_devices(self._online, ids, time_s)

    def next_offline_s(self, ids: Ints, time_s: float) -> Floats:
        """(n,) the next time, strictly later than `time_s`, at which each client turns offline; inf if never.

        For a client that is offline it is the end of its next interval.
        """
        return self._of_devices(self._next_offline_s, ids, time_s)

    def next_online_s(self, ids: Ints, time_s: float) -> Floats:
        """(n,) the next time, strictly later than `time_s`, at which each client turns online; inf if never.

        For a client that is online it is the start of the interval after the present one.
        """
        return self._of_devices(self._next_online_s, ids, time_s)

    def _of_devices(self, query: Callable[[Ints, float], Result], ids: Ints, time_s: float) -> Result:
        """(n,) the result of `query` for the devices of these clients."""
        device = self.device_of[ids].astype(np.int64)
        if len(device) <= self.num_devices:
            return query(device, time_s)
        # NOTE: with a million clients on a hundred thousand devices this is ten times as fast.
        return query(np.arange(self.num_devices), time_s)[device]

    def _online(self, device: Ints, time_s: float) -> Bools:
        position = self._locate(device, time_s)
        return position.local_s < self._row(self._end_s, position.later - 1, position)

    def _next_offline_s(self, device: Ints, time_s: float) -> Floats:
        position = self._locate(device, time_s)
        present = self._row(self._end_s, position.later - 1, position)
        following = self._row(self._end_s, position.later, position)
        local_s = np.where(position.local_s < present, present, following)
        return np.maximum(position.lap_s + local_s, np.nextafter(time_s, np.inf))

    def _next_online_s(self, device: Ints, time_s: float) -> Floats:
        position = self._locate(device, time_s)
        local_s = self._row(self._start_s, position.later, position)
        return np.maximum(position.lap_s + local_s, np.nextafter(time_s, np.inf))

    def _locate(self, device: Ints, time_s: float) -> _Position:
        period_s = self._period_s.take(device)
        local_s = np.fmod(time_s, period_s)  # exact, and `time_s` itself where the period is inf
        first, stop = self._offsets.take(device), self._offsets.take(device + 1)
        present = first - 1  # the last row known to start at or before the instant
        # NOTE: steps of powers of two instead of midpoints: for a hundred clients every array pass counts.
        for power in reversed(range(int((stop - first).max(initial=0)).bit_length())):
            row = present + (1 << power)
            starts_before = self._start_s.take(row, mode="clip") <= local_s
            starts_before &= row < stop
            np.putmask(present, starts_before, row)
        return _Position(first, stop, present + 1, period_s, local_s, time_s - local_s)

    def _row(self, column: Floats | Floats32, row: Ints, position: _Position) -> Floats:
        """(n,) `column` at `row` in [first - 1, stop].

        Beyond either end it is the value at the opposite end, one period away.
        """
        count = position.stop - position.first
        before, beyond = row < position.first, row >= position.stop
        row = np.where(before, row + count, np.where(beyond, row - count, row))
        away_s = np.where(before, -position.period_s, np.where(beyond, position.period_s, 0.0))
        time_s = column[np.where(count > 0, row, self._spare)]
        return np.add(time_s, away_s, dtype=np.float64)


def _narrowed(values: Floats) -> Floats | Floats32:
    """`values` as float32 if that is lossless, as with whole seconds up to half a year: half the memory."""
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float32)
    return narrow if np.array_equal(narrow, values) else values
