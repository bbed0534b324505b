"""ADWIN, adaptive windowing: a window of numbers whose older part has another mean than its newer part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import numpy as np
from pydantic import Field

from coordinator.detectors.columns import Column, Columns, Rows, TrainingSettings
from emulator.arrays import Bools, Floats, Ints
from emulator.numbers import Count, InnerShare, Number


class AdwinSettings(TrainingSettings):
    """How sure a drift has to be, how often windows are compared, and how finely."""

    delta: InnerShare = Field(0.002, description="the greater, the smaller a difference of means is a drift")
    clock: Count = Field(32, description="numbers of a client from one comparison to the next", examples=[8])
    max_buckets: Annotated[int, Number(ge=2, le=100)] = Field(
        5, description="buckets of each size; more are more cuts of the window"
    )
    min_window_length: Count = Field(5, description="numbers that either part of the window has at least")
    grace_period: Count = Field(10, description="numbers of a client before it can be flagged")
    two_sided: bool = Field(
        True,
        description="whether a client is also flagged if its numbers have fallen, as they do while a model "
        "learns; if not, it is then forgotten without a flag",
        examples=[False],
    )


class Adwin(Columns):
    """Flags a client if the window of its numbers can be cut into two parts of different means.

    The window is kept as sums of 1, 2, 4, … numbers, the newest in the smallest: at most `max_buckets` of
    each size, beyond which the two oldest of a size become one of the next. At every number divisible by
    `clock`, each cut between two sums is tried, into parts of n and m numbers, of `min_window_length` at
    least. With d = ln(2 ln(n + m) / `delta`), v the variance of the window and
    r = 1 / (n - `min_window_length` + 1) + 1 / (m - `min_window_length` + 1), a client is flagged if their
    means differ by more than sqrt(2 r v d) + 2/3 d r. It forgets everything after a flag, as river does;
    the published ADWIN drops the oldest sums only. Without `two_sided`, only a newer part of a greater mean
    is a flag; a lesser one is forgotten like a flag.

    Memory grows with the logarithm of the most numbers of a client, for all clients: 8 bytes for each sum.

    Source: Bifet and Gavaldà, "Learning from time-changing data with adaptive windowing", SIAM International
    Conference on Data Mining 2007; in the form of river's `ADWIN`.

    >>> detector = Adwin(AdwinSettings(clock=8))
    >>> detector.open(2)
    >>> numbers = np.array([[0.1] * 96, [0.1] * 48 + [0.9] * 48])
    >>> detector.detect(np.array([0, 1]), numbers, None)
    array([False,  True])
    """

    Settings = AdwinSettings
    settings: AdwinSettings
    threshold = "delta"

    # What a flagged client has remembered is never used again. So its window need not shrink at a flag, only
    # the sums are needed of the buckets, and which of them there are follows from the count alone.

    @property
    def columns(self) -> Mapping[str, Column]:
        sums = Column(entries=self.settings.max_buckets)
        return {"count": Column(0, np.int32), "total": Column(), "squares": Column(), "sums": sums}

    def detect(self, clients: Ints, signal: Floats, last: Floats | None) -> Bools:
        most = int(self._columns["count"][clients].max(initial=0)) + signal.shape[1]
        self._widen("sums", self.settings.max_buckets * self._sizes(most))
        return super().detect(clients, signal, last)

    def update(self, rows: Rows, number: Floats) -> Bools:
        count, total = rows["count"], rows["total"]
        older = count.astype(np.float64)
        deviation = number - total / np.maximum(older, 1)
        count += 1
        rows["squares"] += older * deviation * deviation / count
        total += number
        self._insert(rows["sums"], count, number)
        tested = (count % self.settings.clock == 0) & (count > self.settings.grace_period)
        found: Bools = np.zeros(len(number), dtype=bool)
        some = np.flatnonzero(tested)
        if len(some) == 0:
            return found
        rises, falls = self._differs(rows.of(some))
        found[some] = rises | falls if self.settings.two_sided else rises
        fallen = some[falls & ~found[some]]
        for name, column in self.columns.items() if len(fallen) > 0 else ():
            rows[name][..., fallen] = column.start
        return found

    def _merged(self, received: Ints) -> Ints:
        """The buckets (k,) that `received` (k,) buckets of the size below have become.

        The two oldest of the first `max_buckets` + 1 become one, and so at every second after these.
        """
        return np.maximum(received - self.settings.max_buckets + 1, 0) // 2

    def _sizes(self, count: int) -> int:
        """Sizes of which a client of this count has had a bucket; at least 1."""
        sizes, received = 1, count
        while (received := max(received - self.settings.max_buckets + 1, 0) // 2) > 0:
            sizes += 1
        return sizes

    def _insert(self, sums: Floats, count: Ints, number: Floats) -> None:
        """Add the newest number of each of k clients to the sums, of which they have `count` now, in place.

        The i-th bucket of a size is in entry i modulo `max_buckets` of those of this size: where one must
        leave for the next, it is the oldest.
        """
        size = self.settings.max_buckets
        who, received = np.arange(len(count)), count
        for first in range(0, len(sums), size):
            newest = first + (received - 1) % size
            merge = np.flatnonzero((received > size) & ((received - size) % 2 == 1))
            oldest, second, of = newest[merge], first + received[merge] % size, who[merge]
            merged = sums[oldest, of] + sums[second, of]
            sums[newest, who] = number
            if len(merge) == 0:
                return
            who, number, received = of, merged, self._merged(received[merge])

    def _differs(self, rows: Rows) -> tuple[Bools, Bools]:
        """(k,) whether any cut of each client's window has a greater mean after it; whether a lesser one."""
        size, least = self.settings.max_buckets, self.settings.min_window_length
        sums, who = rows["sums"], np.arange(len(rows["count"]))
        width, total = rows["count"].astype(np.float64), rows["total"]
        variance, doubt = rows["squares"] / width, np.log(2.0 * np.log(width) / self.settings.delta)
        older, older_total, newer, newer_total = np.zeros(len(who)), np.zeros(len(who)), width, total.copy()
        rises, falls = np.zeros(len(who), dtype=bool), np.zeros(len(who), dtype=bool)
        received = [rows["count"]]
        for _ in range(len(sums) // size):
            received.append(self._merged(received[-1]))
        for level in reversed(range(len(sums) // size)):
            oldest = 2 * received[level + 1]
            for place in range(size):
                there = oldest + place < received[level]
                if not there.any():
                    break
                bucket = np.where(there, sums[level * size + (oldest + place) % size, who], 0.0)
                older = older + there * 2.0**level
                newer = width - older
                older_total += bucket
                newer_total -= bucket
                one, other = np.maximum(older, least), np.maximum(newer, least)
                rise = newer_total / other - older_total / one
                parts = 1.0 / (one - least + 1.0) + 1.0 / (other - least + 1.0)
                limit = np.sqrt(2.0 * parts * variance * doubt) + 2.0 / 3.0 * doubt * parts
                tried = there & (one == older) & (other == newer)
                rises |= tried & (rise > limit)
                falls |= tried & (-rise > limit)
        return rises, falls
