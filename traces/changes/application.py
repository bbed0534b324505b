"""Changes applied to rows: the labels that they come to have, and what is done to their features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from emulator.arrays import Bools, Ints
from emulator.errors import ConfigurationError
from emulator.seeding import RandomStreams
from traces.changes.chosen import Samples
from traces.changes.features import FeatureChanges
from traces.changes.mixing import check_mix
from traces.changes.rows import Applied, RowColumns, Times, curve_at, curve_steps, is_on
from traces.changes.settings import Change, Mix, OfFeatures


class Reached(NamedTuple):
    """For each row, (n,): whether a change is on for it, the value of its span, and the steps since then."""

    is_on: Bools
    value: Ints
    elapsed: Ints


@dataclass(frozen=True)
class Application:
    """What changes are applied to: the rows that differ, their samples, times and streams of the run.

    `own` are the streams of the trace's own data.
    """

    rows: RowColumns
    samples: Samples
    times: Times
    streams: RandomStreams
    own: RandomStreams

    def reached(self, change: Applied) -> Reached:
        """For which rows a change is on; ConfigurationError if it is for none."""
        span = is_on(change, self.rows, self.times)
        some = span >= 0
        refuse_without_effect(change, some)
        at = self.rows.carried(change.settings, self.times)
        value, start = change.spans.value[span], change.spans.start[span]
        return Reached(some, np.where(some, value, 0), np.where(some, at - start, 0))

    def relabelled(self, labels: Ints, change: Applied, number: int, maps: Ints, key: Ints) -> Ints:
        """(n,) the labels of all rows after the `number`-th change: that of a row's `key` (n,) in its map.

        `maps` (k, keys) has a map for each value of a span.
        """
        reached = self.reached(change)
        changed = reached.is_on & self._chosen(change.settings, reached.elapsed, number)
        refuse_without_effect(change, changed)
        return np.where(changed, maps[reached.value, key], labels)

    def chained(self, chain: Ints, change: Applied, number: int, features: FeatureChanges) -> Ints:
        """(n,) the chains of all rows after the `number`-th change, one of features.

        If it is cumulative, each data step of its curves adds an entry, on samples drawn anew; otherwise a
        sample has the entry of the present one.
        """
        settings, reached = change.settings, self.reached(change)
        last = min(curve_steps(settings, self.times.rounds_per_step), self.times.steps)
        magnitude = curve_at(settings.magnitude, np.arange(last + 1), self.times.rounds_per_step)
        operations = [operation for operation in settings.what if isinstance(operation, OfFeatures)]
        for operation in operations:
            if isinstance(operation, Mix):
                check_mix(operation.mix, features.shape, last + 1, change.key)
        starts = self._starts(operations, number, last + 1)
        if not settings.cumulative:
            starts = np.repeat(starts[:1], last + 1, axis=0)
        first = features.add_entries(operations, magnitude, starts)
        longer = chain
        for step in np.flatnonzero(magnitude > 0).tolist() if settings.cumulative else (None,):
            key: tuple[int, ...]
            if step is None:
                level, changed, key = np.minimum(reached.elapsed, last), reached.is_on, (number,)
            else:
                level, changed = np.full(len(chain), step), reached.is_on & (reached.elapsed >= step)
                key = (number, step)
            changed = changed & (magnitude[level] > 0) & self._chosen(settings, level, *key)
            longer = features.extended(longer, changed, first + level * len(operations) + reached.value)
        refuse_without_effect(change, longer != chain)
        return longer

    def _starts(self, operations: Sequence[OfFeatures], number: int, levels: int) -> Ints:
        """(levels, operations) where random numbers of the `number`-th change begin, a mix's own each."""
        run = self.streams.generator("changed features", number).integers(0, 2**32, size=levels)
        columns = [
            self.own.generator("mixed features", number, place).integers(0, 2**32, size=levels)
            if isinstance(operation, Mix)
            else run
            for place, operation in enumerate(operations)
        ]
        return np.stack(columns, axis=1)

    def _chosen(self, change: Change, elapsed: Ints, *key: int) -> Bools:
        """(n,) whether each row's sample is of the share that changes, `elapsed` (n,) steps after onset."""
        if change.samples.is_constant and change.samples.start == 1:
            return np.ones(len(elapsed), dtype=np.bool_)
        return self.samples.chosen(curve_at(change.samples, elapsed, self.times.rounds_per_step), *key)


def refuse_without_effect(change: Applied, changed: Bools) -> None:
    """ConfigurationError if a change changes none of the rows, `changed` (n,)."""
    for name in ("samples", "magnitude"):
        curve = getattr(change.settings, name)
        if curve.start == curve.end == 0:
            raise ConfigurationError(f"{change.key}.{name} = 0: changes nothing; must be above 0")
    if not changed.any():
        raise ConfigurationError(
            f"{change.key}: {', '.join(change.settings.names)} changes no sample: of its clients and splits "
            f"none is held or arrives while it is on, or its share or magnitude is too small"
        )
