"""The atlas: methods beside one rival and beside the best, drift by drift.

A column is what the runs under one drift say of each method, seed by seed; all else is computed from columns.
A cell depends on the runs of its method and of the rival alone; only its regret depends on other cells, as it
is counted from the best of the column.

The words speak of the mean difference where there is a t interval, and of the median where there is none
(`intervals.py`). 'Level' is said of a true one of a point or more in at most 2.5 % of all experiments, and so
is 'ahead' of one that is not above 0 (for medians 1.1 % with ten seeds, of any law in which no single value
is likely: if most seeds differ by exactly a point, that is within a point); a test simulates it. A median
does not show what a trigger does in a minority of the seeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from experiments.results.statistics.intervals import Interval, mean_estimate
from experiments.results.statistics.medians import exactly, median_estimate

REGION_PP = 1.0
"""Percentage points up to which two methods are level."""

LEVEL = 0.95
"""The least level of an interval by which a word is said."""

WORDS = AHEAD, EVEN, BEHIND, OPEN = "ahead", "level", "behind", "open"
RIVAL = "rival"

DECIMALS = 9
"""Decimals of points: what subtraction adds to them is rounded off, so that a point is a point."""


@dataclass(frozen=True)
class Figures:
    """An arm under a drift, up to the horizon.

    Attributes:
        accuracy: Mean accuracy over time of what clients use, in [0, 1], by seed: the personal one, if they
            have parameters of their own.
        has_trigger: Whether a trigger decides in each run whether all clients are clustered anew.
        sent_bytes: Bytes sent in a run, for training and control, both ways: mean over seeds.
        samples: Samples trained per client, mean over seeds; None if not known.
        worst_tenth: Mean accuracy of the worst tenth of clients, mean over seeds; None if it is not logged,
            as where they have parameters of their own.
    """

    accuracy: list[float]
    has_trigger: bool
    sent_bytes: float
    samples: float | None
    worst_tenth: float | None

    @property
    def mean(self) -> float:
        """The mean accuracy over seeds."""
        return sum(self.accuracy) / len(self.accuracy)


@dataclass(frozen=True)
class Column:
    """The methods under one drift. Its `asdict` is its entry in `atlas.json`.

    Attributes:
        name: The name of the drift.
        report: Its report.html, relative to the atlas; None without one.
        shared: What all columns of an atlas share, by name, such as the number of clients; None if unknown.
        seeds: The seeds of every accuracy, in their order.
        chosen_on: The seeds on which best uses and the rival were chosen.
        rival: The arm that all methods are compared with.
        rows: By method, the arm that is its best use, in the order of the configuration.
        oracles: Those of the methods that are told the true concepts.
        figures: By arm; there are none of an arm that is not finished in every seed.
        failed: Arms of which a run has failed.
        untuned: Methods of which no use was chosen: they have the one that is named as they are.
    """

    name: str
    report: str | None
    shared: Mapping[str, Any]
    seeds: list[int]
    chosen_on: list[int]
    rival: str
    rows: Mapping[str, str]
    oracles: list[str]
    figures: Mapping[str, Figures]
    failed: list[str] = field(default_factory=list)
    untuned: list[str] = field(default_factory=list)

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Column:
        """The column of an entry in `atlas.json`."""
        return cls(**{**entry, "figures": {arm: Figures(**found) for arm, found in entry["figures"].items()}})

    @property
    def best(self) -> float:
        """The highest mean accuracy of a finished method that is no oracle; 0 without one."""
        arms = [arm for row, arm in self.rows.items() if row not in self.oracles and arm in self.figures]
        return max((self.figures[arm].mean for arm in arms), default=0.0)


@dataclass(frozen=True)
class Paired:
    """The difference from the rival in percentage points, paired by seed, and the word for it.

    `centre_pp` is the mean, or with `by_ranks` the median; `interval` holds it at `level`, None without one.
    """

    centre_pp: float
    interval: Interval | None
    level: float | None
    by_ranks: bool

    @property
    def word(self) -> str:
        """One of `WORDS`."""
        if self.interval is None:
            return OPEN
        low, high = self.interval
        if low > 0 and self.centre_pp >= REGION_PP:
            return AHEAD
        if high < 0 and self.centre_pp <= -REGION_PP:
            return BEHIND
        return EVEN if low >= -REGION_PP and high <= REGION_PP else OPEN


@dataclass(frozen=True)
class Verdict:
    """A cell of the atlas.

    Attributes:
        arm: The best use of the method.
        mean: Its mean accuracy over seeds, in [0, 1].
        seeds: Their number.
        regret_pp: Points below the best cell of the column; None for an oracle.
        word: That of `paired`, or `RIVAL`; empty for an oracle, and where the rival has no figures.
        paired: Its difference from the rival; None for the rival itself, and without a word.
    """

    arm: str
    mean: float
    seeds: int
    regret_pp: float | None = None
    word: str = ""
    paired: Paired | None = None


@dataclass(frozen=True)
class Standing:
    """A method over all drifts in which it has a cell: their number is `cells`.

    Attributes:
        words: How often each word is said, `RIVAL` included.
        cells: The number of its cells.
        mean_regret_pp: Its mean regret; None without a cell.
        worst_regret_pp: Its largest regret, and `worst_in` the drift in which it has it.
        near_best: In how many its regret is a point or less.
        sent_bytes, samples, worst_tenth: Means over these drifts; None if one of them lacks it.
    """

    words: Mapping[str, int]
    cells: int
    mean_regret_pp: float | None
    worst_regret_pp: float | None
    worst_in: str
    near_best: int
    sent_bytes: float | None
    samples: float | None
    worst_tenth: float | None


def paired(ours: Sequence[float], theirs: Sequence[float], *, by_ranks: bool) -> Paired:
    """The difference of accuracies in [0, 1], paired by position, as the mean with a t interval.

    With `by_ranks` it is the median, with the interval from the k-th lowest to the k-th highest difference:
    the largest k whose level is at least 95 %, which six seeds or more have.

    >>> paired([0.5] * 10, [0.48] * 10, by_ranks=True)
    Paired(centre_pp=2.0, interval=(2.0, 2.0), level=0.978515625, by_ranks=True)
    """
    points = [round(100 * (one - other), DECIMALS) for one, other in zip(ours, theirs, strict=True)]
    if by_ranks:
        found = median_estimate([exactly(value) for value in points])
        known = found.interval if found.level is not None and found.level >= LEVEL else None
        ends = None if known is None else (known.low, known.high)
        return Paired(found.median.low, ends, None if known is None else found.level, by_ranks=True)
    ends = mean_estimate(points).ci95
    return Paired(sum(points) / len(points), ends, None if ends is None else LEVEL, by_ranks=False)


def methods(columns: Sequence[Column], *, oracles: bool = False) -> list[str]:
    """The rows, in the order of the first column that has each; with `oracles` those that are oracles."""
    told = {row for column in columns for row in column.oracles}
    return [
        row for row in dict.fromkeys(row for of in columns for row in of.rows) if (row in told) == oracles
    ]


def verdict(column: Column, row: str) -> Verdict | None:
    """The cell of a row; None if the column has no such arm, or no figures of it."""
    arm = column.rows.get(row, "")
    found, rival = column.figures.get(arm), column.figures.get(column.rival)
    if found is None:
        return None
    if row in column.oracles:
        return Verdict(arm, found.mean, len(column.seeds))
    alone = Verdict(arm, found.mean, len(column.seeds), round(100 * (column.best - found.mean), DECIMALS))
    if rival is None or arm == column.rival:
        return alone if rival is None else replace(alone, word=RIVAL)
    by_ranks = found.has_trigger or rival.has_trigger
    beside = paired(found.accuracy, rival.accuracy, by_ranks=by_ranks)
    return replace(alone, word=beside.word, paired=beside)


def standing(columns: Sequence[Column], row: str) -> Standing:
    """How a method that is no oracle stands over these columns."""
    cells = [(column, found) for column in columns if (found := verdict(column, row)) is not None]
    regrets = {column.name: found.regret_pp for column, found in cells if found.regret_pp is not None}
    figures = [column.figures[found.arm] for column, found in cells]
    worst_in = max(regrets, key=lambda name: regrets[name], default="")
    return Standing(
        words={word: sum(found.word == word for _, found in cells) for word in (*WORDS, RIVAL)},
        cells=len(cells),
        mean_regret_pp=_mean(list(regrets.values())),
        worst_regret_pp=regrets.get(worst_in),
        worst_in=worst_in,
        near_best=sum(regret <= REGION_PP for regret in regrets.values()),
        sent_bytes=_mean([found.sent_bytes for found in figures]),
        samples=_mean([found.samples for found in figures]),
        worst_tenth=_mean([found.worst_tenth for found in figures]),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None
