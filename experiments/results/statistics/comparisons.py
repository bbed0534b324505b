"""Arms compared with the reference arm seed by seed, on the seeds that both have, up to one horizon."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import Any, NoReturn, TypeVar

import numpy as np

from emulator.arrays import Floats
from emulator.errors import abbreviated
from emulator.storage.runlog import RoundRecord
from experiments.results.reading.configured_arms import ConfiguredArm
from experiments.results.reading.run_directory import ReportedRun
from experiments.results.statistics.clients.accuracy import ClientAccuracy, at_the_horizon
from experiments.results.statistics.horizon import Horizon
from experiments.results.statistics.intervals import Estimate
from experiments.results.statistics.medians import MedianEstimate
from experiments.results.statistics.time_to_accuracy import ACCURACIES, AccuracyCurve, curve_of

T = TypeVar("T")
K = TypeVar("K")
E = TypeVar("E", bound=Estimate)


TIE, ROUNDING = 0.002, 1e-12
"""How far evaluations of arms that tie are from each other at most, and what subtraction adds to that."""

Columns = Mapping[str, Floats]
"""Numbers of rounds, arrays (n,) by name; `closed_s` has when each of these rounds closed, ascending."""


def once(find: Callable[[K], T]) -> Callable[[K], T]:
    """`find`, computed at the first call for each object, which keeps it."""

    @wraps(find)
    def found(of: K) -> T:
        known: dict[Any, T] = vars(of).setdefault("known", {})
        if find not in known:
            known[find] = find(of)
        return known[find]

    return found


class _Gone:
    """In the place of a header and of records that were let go: whatever reads them fails."""

    def _fail(self, *_: object) -> NoReturn:
        raise AssertionError("tables of many runs keep no log: what reads it is decorated with `once`")

    __getattr__ = __getitem__ = __iter__ = __len__ = _fail


def let_go(log: ReportedRun) -> ReportedRun:
    """The run without its header and its records; what is known `once` of them stays.

    Tables of many runs keep no more.
    """
    kept = copy(log)  # with its cache
    for name in ("header", "records"):
        object.__setattr__(kept, name, _Gone())
    return kept


@once
def personal_curve(log: ReportedRun) -> AccuracyCurve | None:
    """The curve of the personal accuracy of a run, not smoothed; None if it has none."""
    return curve_of(log, "personal_accuracy", window=1)


@dataclass(frozen=True, eq=False)
class Run:
    """A finished run with its accuracy curve, the horizon up to which it is compared, and its mass events.

    `events_s` has when its configured mass events took effect, ascending, also after the horizon.
    """

    log: ReportedRun
    curve: AccuracyCurve
    horizon: Horizon
    events_s: Sequence[float]

    @classmethod
    def of(cls, log: ReportedRun, curve: AccuracyCurve, horizon: Horizon) -> Run:
        """The run with the mass events of the horizon."""
        return cls(log, curve, horizon, horizon.events_s(log))

    @property
    def arm(self) -> str:
        """The name of its arm."""
        return self.log.arm

    @property
    def seed(self) -> int:
        """Its seed."""
        return self.log.seed

    @property
    def event_s(self) -> float | None:
        """When its first configured mass event opened; None without one before the horizon."""
        return next((time_s for time_s in self.events_s if time_s < self.horizon.horizon_s), None)

    @cached_property
    def curves(self) -> dict[str, AccuracyCurve]:
        """The curves of those of the `ACCURACIES` that it has, by name, all smoothed alike."""
        others = [name for name in ACCURACIES if name != "accuracy"]
        found = {name: curve_of(self.log, name, self.curve.window) for name in others}
        return {"accuracy": self.curve, **{name: curve for name, curve in found.items() if curve is not None}}

    @property
    def used(self) -> AccuracyCurve:
        """The curve of what clients use: of the personal accuracy, or of the accuracy of a run without."""
        return self.curves.get("personal_accuracy", self.curve)

    def mean_of(self, curve: AccuracyCurve | None) -> float | None:
        """A curve averaged over virtual time, from where runs are compared to the horizon; None without."""
        horizon = self.horizon
        return None if curve is None else curve.mean_accuracy(horizon.start_s, horizon.horizon_s)

    def rounds(self, columns_of: Callable[[ReportedRun], Columns]) -> Columns:
        """The columns that a function of the log, decorated with `once`, makes of its rounds.

        They are cut to the rounds that closed by the horizon.
        """
        columns = columns_of(self.log)
        count = int(np.searchsorted(columns["closed_s"], self.horizon.horizon_s, side="right"))
        return {name: column[:count] for name, column in columns.items()}

    @cached_property
    def records(self) -> list[RoundRecord]:
        """Its rounds that closed by the horizon; not for quantities that tables of many runs have."""
        return self.horizon.records(self.log)

    @cached_property
    def clients(self) -> ClientAccuracy | None:
        """The last evaluation of its clients by the horizon; None if their accuracies are not logged.

        Raises InputError if the log is damaged.
        """
        return at_the_horizon(self.log, self.horizon.horizon_s)


@dataclass(frozen=True)
class Comparison:
    """The runs of an arm, those of the reference arm with the same seeds in the same order, and its figures.

    `configured` is None if the configuration of the runs is not known; `is_beside_trigger` is whether the
    reference arm has a trigger. `figures` has what was measured of it, by the names of quantities.
    """

    arm: str
    measured: list[Run]
    reference: list[Run]
    is_reference: bool
    configured: ConfiguredArm | None = None
    is_beside_trigger: bool = False
    figures: dict[str, Any] = field(default_factory=dict, repr=False)

    def __getitem__(self, quantity: str) -> Any:
        return self.figures[quantity]

    @property
    def has_trigger(self) -> bool:
        """Whether a trigger decides in each run whether all clients are clustered anew, as far as known."""
        return self.configured is not None and self.configured.has_trigger

    @property
    def runs(self) -> list[ReportedRun]:
        return [run.log for run in self.measured]

    @property
    def curves(self) -> list[AccuracyCurve]:
        return [run.curve for run in self.measured]

    @property
    def seed_ids(self) -> list[int]:
        return [run.seed for run in self.measured]

    def stated(self, estimate: E, *, is_beside_reference: bool = False) -> E:
        """An estimate of the arm: by seed, without a t interval, if the arm has a trigger.

        With `is_beside_reference` it compares the arm with the reference arm, which may have one too.
        """
        has_trigger = self.has_trigger or (is_beside_reference and self.is_beside_trigger)
        return estimate.by_seed() if has_trigger else estimate

    def with_figures(self, figures: Mapping[str, Any]) -> Comparison:
        """The same runs with these figures in the place of others, as those of a target."""
        return replace(self, figures=dict(figures))

    def estimates(self) -> Iterable[tuple[str, Estimate | MedianEstimate]]:
        """The figures that are estimates; without comparisons of the reference arm with itself."""
        for key, value in self.figures.items():
            if isinstance(value, Estimate | MedianEstimate):
                yield key, value

    def as_json(self) -> dict[str, object]:
        """Its figures, as `summary.json` and `table.json` have them."""
        return {
            key: value.as_json() if isinstance(value, Estimate | MedianEstimate) else value
            for key, value in self.figures.items()
        }


@dataclass(frozen=True)
class Compared:
    """Arms that are compared up to one horizon; in a row of a table of many runs, one arm by itself.

    `configured` has all configured arms by name, also those without a finished run; it is empty if they are
    not known. `left_out` has the names of those that no command asked for.
    """

    arms: Sequence[Comparison]
    horizon: Horizon
    configured: Mapping[str, ConfiguredArm] = field(default_factory=dict)
    left_out: Sequence[str] = ()

    @property
    def num_gains(self) -> int:
        """The number of comparisons for which joint intervals hold at once."""
        return max(1, len(self.arms) - 1)

    @property
    def runs(self) -> list[Run]:
        """The runs of all arms."""
        return [run for arm in self.arms for run in arm.measured]

    @cached_property
    def has_event(self) -> bool:
        """Whether every run has a mass event before the horizon."""
        return all(run.event_s is not None for run in self.runs)

    @cached_property
    def has_personal(self) -> bool:
        """Whether some run has a personal accuracy."""
        return any(personal_curve(run.log) is not None for run in self.runs)

    @property
    def reference(self) -> Comparison:
        """The reference arm, which must be among the arms."""
        return next(arm for arm in self.arms if arm.is_reference)

    @cached_property
    def has_baselines(self) -> bool:
        """Whether some arm is configured as a baseline, be it finished or not."""
        return any(arm.is_baseline for arm in self.configured.values())

    def names_whose(self, is_so: Callable[[ConfiguredArm], bool]) -> list[str]:
        """The names of the configured arms that fulfil `is_so`, be they finished or not."""
        return [name for name, arm in self.configured.items() if is_so(arm)]

    @cached_property
    def ties(self) -> list[list[str]]:
        """Names of two or more arms that tie, in their order; an arm ties with all before it in its group.

        They do if they were compared on the same seeds, and in each every evaluation up to the horizon is
        within `TIE` of the other's, of which there are as many.
        """
        groups: list[list[Comparison]] = []
        for arm in self.arms:
            group = next((group for group in groups if all(_is_tie(one, arm) for one in group)), None)
            if group is None:
                groups.append([arm])
            else:
                group.append(arm)
        return [[arm.arm for arm in group] for group in groups if len(group) > 1]

    def find(self, name: str | None) -> Comparison | None:
        """The arm of that name; None if it shares no seed with the reference arm."""
        return next((arm for arm in self.arms if arm.arm == name), None)


def _is_tie(arm: Comparison, other: Comparison) -> bool:
    return arm.seed_ids == other.seed_ids and all(
        len(one) == len(two) and bool((abs(one - two) <= TIE + ROUNDING).all())
        for pair in zip(arm.measured, other.measured, strict=True)
        for one, two in [
            [run.curve.accuracy[: run.curve.num_evaluations(run.horizon.horizon_s)] for run in pair]
        ]
    )


def comparisons(
    measured: Sequence[Run], reference_arm: str, configured: Mapping[str, ConfiguredArm] | None = None
) -> list[Comparison]:
    """A comparison for each arm that shares a seed with the reference arm.

    They are in the order of the arms' first runs in `measured`. `configured` has the arms by name, as far as
    their configuration is known.
    """
    by_arm: dict[str, dict[int, Run]] = {}
    for run in measured:
        by_arm.setdefault(run.arm, {})[run.seed] = run
    reference, of_arm = by_arm.get(reference_arm, {}), configured or {}
    base = of_arm.get(reference_arm)
    shared = {arm: [seed for seed in runs if seed in reference] for arm, runs in by_arm.items()}
    return [
        Comparison(
            arm,
            [by_arm[arm][seed] for seed in seeds],
            [reference[seed] for seed in seeds],
            is_reference=arm == reference_arm,
            configured=of_arm.get(arm),
            is_beside_trigger=base is not None and base.has_trigger,
        )
        for arm, seeds in shared.items()
        if seeds
    ]


def start_clauses(arms: Iterable[Comparison]) -> list[str]:
    """A clause on each file that arms start from."""
    by_file: dict[str, dict[str, None]] = {}
    for arm in arms:
        by_file.setdefault("" if arm.configured is None else arm.configured.start, {})[arm.arm] = None
    clauses = []
    for file, names in by_file.items():
        if file:
            start, its = ("starts", "its") if len(names) == 1 else ("start", "their")
            known = abbreviated(list(names), ", ")
            clauses.append(f"{known} {start} from {file}: what trained it is not in {its} time and bytes")
    return clauses
