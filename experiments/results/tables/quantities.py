"""A quantity of an arm, declared once: how it is measured, how it is shown, and what it means.

`summary.json`, `table.json`, the tables, the frames and their reference read the declaration. Most quantities
are functions of a run, made into them by the decorator `quantity`: the name is the key, the doc the meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from experiments.results.statistics.comparisons import Compared, Comparison, Run
from experiments.results.statistics.intervals import (
    Estimate,
    Gain,
    amount_estimate,
    gain_estimate,
    mean_estimate,
    share_estimate,
)
from experiments.results.statistics.medians import MedianEstimate
from experiments.results.statistics.scales import (
    PickScale,
    bytes_scale,
    count_scale,
    percent_scale,
    points_scale,
    time_scale,
)
from experiments.results.tables.cells import Cell, largest, show_estimate, show_median, show_share_of_seeds

SECONDS, WALL, BYTES, POINTS, SHARE = (
    "virtual seconds",
    "wall seconds",
    "bytes",
    "percentage points",
    "share, 0 to 1",
)
"""Units that many quantities have."""

IS_REFERENCE = "for the reference arm"
NO_EVENT = "unless every run has a mass event before the horizon"
UNLOGGED = "without round.log_client_accuracy"

Measure = Callable[[Comparison, Compared], Any]
"""Measures a figure of an arm: an `Estimate` or a `MedianEstimate` over its seeds, None for a comparison of
the reference arm with itself, or plain JSON, which has no column."""

OfRun = Callable[[Run], float | None]
"""The value of a quantity in one run; None if it was not measured."""

Estimator = Callable[[Sequence[float | None]], Estimate]

ESTIMATORS: Mapping[str, Estimator] = {SHARE: share_estimate, POINTS: mean_estimate}
"""How quantities of these units are estimated: with intervals cut at 0 and 1, or not; others are cut at 0."""

SCALES: Mapping[str, PickScale] = {
    SECONDS: time_scale,
    WALL: time_scale,
    BYTES: bytes_scale,
    POINTS: points_scale,
    SHARE: percent_scale,
}
"""How numbers of these units are written; others are counts."""

REFERENCE_CELL = Cell("reference")


@dataclass(frozen=True)
class Quantity:
    """A figure of an arm, and its column in tables.

    Attributes:
        key: Its name in `summary.json`, in frames and in exports.
        measure: Measures it; None for one that its table measures with others, as those of targets.
        unit: The unit of its values; empty for names and truth values.
        heading: The heading of its column.
        pick_scale: Picks the scale of the column by its largest number; None for that of the unit.
        in_terminal: Whether the terminal shows the column too, and not the page alone.
        only_if: Whether the column is shown, from the figure of each row; by default it always is.
        show: Shows the figures of the rows; by default as estimates, all in one scale.
        of_run: The value in one run, of a quantity that is one of runs.
        note: The note on its column in tables of many runs.
        meaning: What its values say; empty for plain JSON, which no frame has.
        missing: When a value is missing; empty if it never is.
    """

    key: str
    measure: Measure | None
    unit: str = ""
    heading: str = ""
    pick_scale: PickScale | None = None
    in_terminal: bool = True
    only_if: Callable[[Sequence[Any]], bool] = lambda figures: True
    show: Callable[[Quantity, Sequence[Comparison]], list[Cell]] | None = None
    of_run: OfRun | None = None
    note: str = ""
    meaning: str = ""
    missing: str = ""

    def __call__(self, run: Run) -> float | None:
        assert self.of_run is not None, f"{self.key} is not of single runs"
        return self.of_run(run)

    def cells(self, rows: Sequence[Comparison]) -> list[Cell]:
        """A cell for each row."""
        if self.show is not None:
            return self.show(self, rows)
        return self.estimates([row[self.key] for row in rows])

    def estimates(self, figures: Sequence[Estimate | MedianEstimate | None]) -> list[Cell]:
        """A cell for each of these figures."""
        return column_cells(self.pick_scale or SCALES.get(self.unit, count_scale), figures)

    def means(self, meaning: str, missing: str = "") -> Quantity:
        """The same with what its values say, and when one is missing."""
        return replace(self, meaning=meaning, missing=missing)

    def if_measured(self, *, in_terminal: bool = True) -> Quantity:
        """The same, whose column is left out if it was measured in no row."""
        return replace(self, only_if=any_measured, in_terminal=in_terminal)

    def headed(self, heading: str, **changes: Any) -> Quantity:
        """The same with another heading, and with these changes."""
        return replace(self, heading=heading, **changes)

    def noted(self, note: str, **changes: Any) -> Quantity:
        """The same as tables of many runs show it, with a note."""
        return replace(self, note=note, **changes)


def quantity(
    unit: str,
    heading: str = "",
    pick_scale: PickScale | None = None,
    *,
    missing: str = "",
    estimate: Estimator | None = None,
    **shown: Any,
) -> Callable[[OfRun], Quantity]:
    """Makes a function of a run the quantity that is `estimate` over its values; `shown` are further fields.

    Its unit says how it is estimated, unless `estimate` does. Its meaning is the first line of its doc,
    without capital and full stop.
    """

    def made(of_run: OfRun) -> Quantity:
        line = (of_run.__doc__ or "").split("\n")[0].removesuffix(".")
        measure = over_seeds(of_run, estimate or ESTIMATORS.get(unit, amount_estimate))
        made = Quantity(of_run.__name__, measure, unit, heading, pick_scale, of_run=of_run, **shown)
        return made.means(line[:1].lower() + line[1:], missing)

    return made


def means(meaning: str, missing: str = "") -> Callable[[Quantity], Quantity]:
    """A decorator above `quantity`, for a meaning that is longer than a line of a doc."""
    return lambda of: of.means(meaning, missing)


def gain(of_run: OfRun, key: str, heading: str = "", scale: float = 100.0, unit: str = POINTS) -> Quantity:
    """The quantity that is `scale` x the value minus that of the reference arm, paired by seed."""
    return Quantity(key, gain_over_reference(of_run, scale), unit, heading)


def over_seeds(of_run: OfRun, estimate: Estimator) -> Measure:
    """Measures `estimate` over the values of the arm's runs."""
    return lambda arm, compared: estimate([of_run(run) for run in arm.measured])


def gain_over_reference(of_run: OfRun, scale: float = 1.0) -> Measure:
    """Measures `scale` x the value minus that of the reference arm, paired by seed."""

    def measure(arm: Comparison, compared: Compared) -> Gain | None:
        if arm.is_reference:
            return None
        values, reference = ([of_run(run) for run in runs] for runs in (arm.measured, arm.reference))
        return gain_estimate(values, reference, scale=scale, comparisons=compared.num_gains)

    return measure


def beside_reference(of_pair: Callable[[Run, Run], float | None], estimate: Estimator) -> Measure:
    """Measures `estimate` over the values of (run, run of the reference arm), paired by seed."""

    def measure(arm: Comparison, compared: Compared) -> Estimate | None:
        if arm.is_reference:
            return None
        found = estimate([of_pair(*pair) for pair in zip(arm.measured, arm.reference, strict=True)])
        return arm.stated(found, is_beside_reference=True)

    return measure


def stated(found: Any, arm: Comparison) -> Any:
    """What was measured of an arm; an estimate is by seed if the arm has a trigger."""
    if not isinstance(found, Estimate):
        return found
    return arm.stated(found, is_beside_reference=type(found) is Gain)


def column_cells(pick_scale: PickScale, found: Sequence[Estimate | MedianEstimate | None]) -> list[Cell]:
    """A cell for each of these, all in the scale that suits the largest number; None is the reference arm."""
    scale = pick_scale(max((largest(value) for value in found if value is not None), default=0.0))
    return [
        REFERENCE_CELL
        if value is None
        else show_estimate(value, scale)
        if isinstance(value, Estimate)
        else show_median(value, scale)
        for value in found
    ]


def show_tally(of: Quantity, rows: Sequence[Comparison]) -> list[Cell]:
    """Whole numbers out of all seeds, such as 3/5."""
    return [Cell(f"{row[of.key]}/{row['seeds']}") for row in rows]


def show_happened(of: Quantity, rows: Sequence[Comparison]) -> list[Cell]:
    """Shares of seeds, as numbers of them: 3/5, with the interval of the share below it."""
    return [show_share_of_seeds(row[of.key]) for row in rows]


def is_measured(figure: Estimate | MedianEstimate | None) -> bool:
    """Whether a figure has a value in some seed."""
    return figure is not None and any(value is not None for value in figure.per_seed)


def any_measured(figures: Sequence[Estimate | MedianEstimate | None]) -> bool:
    """Whether some row has the figure in some seed: an `only_if` of columns."""
    return any(map(is_measured, figures))


def is_ever_above_0(figures: Sequence[Estimate]) -> bool:
    """Whether the figure is above 0 in some seed of some row: an `only_if` of columns."""
    return any(any(figure.per_seed) for figure in figures)
