"""Arms compared with the reference arm seed by seed, on the seeds that both have, up to one horizon."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from emulator.errors import abbreviated
from emulator.storage.runlog import RoundRecord
from experiments.results.reading.configured_arms import ConfiguredArm
from experiments.results.reading.run_directory import ReportedRun
from experiments.results.statistics.client_accuracy import ClientAccuracy, at_the_horizon
from experiments.results.statistics.horizon import Horizon
from experiments.results.statistics.intervals import Estimate
from experiments.results.statistics.time_to_accuracy import ACCURACIES, AccuracyCurve, curve_of

T = TypeVar("T")
E = TypeVar("E", bound=Estimate)


def personal_curve(run: ReportedRun) -> AccuracyCurve | None:
    """The curve of the personal accuracy of a run, not smoothed; None if it has none."""
    return curve_of(run, "personal_accuracy", window=1)


@dataclass(frozen=True, eq=False)
class MeasuredRun:
    """A finished run, with its accuracy curve and the horizon up to which it is compared.

    `finished` is None in tables of many runs, which keep no records: a quantity that asks for the run, its
    records or its clients fails there; `known_event_s` has its `event_s`, and `known` the results of `once`
    for the table's reductions.
    """

    arm: str
    seed: int
    curve: AccuracyCurve
    horizon: Horizon
    finished: ReportedRun | None
    known_event_s: float | None = None
    known: dict[Callable[..., Any], Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, run: ReportedRun, curve: AccuracyCurve, horizon: Horizon) -> MeasuredRun:
        """The run with all that it has logged."""
        return cls(run.arm, run.seed, curve, horizon, run)

    @property
    def run(self) -> ReportedRun:
        """The finished run."""
        assert self.finished is not None, (
            "tables of many runs keep no records: only what `InManyRuns.reductions` makes of them"
        )
        return self.finished

    @cached_property
    def event_s(self) -> float | None:
        """When its first configured mass event opened; None without one before the horizon."""
        return self.known_event_s if self.finished is None else self.horizon.event_s(self.finished)

    @cached_property
    def curves(self) -> dict[str, AccuracyCurve]:
        """The curves of those of the `ACCURACIES` that it has, by name, all smoothed alike."""
        others = [name for name in ACCURACIES if name != "accuracy"]
        found = {name: curve_of(self.run, name, self.curve.window) for name in others}
        return {"accuracy": self.curve, **{name: curve for name, curve in found.items() if curve is not None}}

    @property
    def used(self) -> AccuracyCurve:
        """The curve of what clients use: of the personal accuracy, or of the accuracy of a run without.

        In tables of many runs that of the personal accuracy is not smoothed.
        """
        if self.finished is not None:
            return self.curves.get("personal_accuracy", self.curve)
        return self.once(personal_curve) or self.curve

    @cached_property
    def records(self) -> list[RoundRecord]:
        """Its rounds that closed by the horizon."""
        return self.horizon.records(self.run)

    @cached_property
    def clients(self) -> ClientAccuracy | None:
        """The last evaluation of its clients by the horizon; None if their accuracies are not logged.

        Raises InputError if the log is damaged.
        """
        return at_the_horizon(self.run, self.horizon.horizon_s)

    def once(self, reduce: Callable[[ReportedRun], T]) -> T:
        """`reduce(self.run)`, computed at the first call; `reduce` is a function of a module."""
        if reduce not in self.known:
            self.known[reduce] = reduce(self.run)
        found: T = self.known[reduce]
        return found

    def beside(self, base: MeasuredRun, find: Callable[[MeasuredRun, MeasuredRun], T]) -> T:
        """`find(self, base)`, computed at the first call; `base` is the reference arm's run of its seed."""
        if find not in self.known:
            self.known[find] = find(self, base)
        found: T = self.known[find]
        return found


@dataclass(frozen=True)
class Comparison:
    """The runs of an arm, and those of the reference arm with the same seeds, in the same order.

    `configured` is None if the configuration of the runs is not known; `is_beside_trigger` is whether the
    reference arm has a trigger.
    """

    arm: str
    measured: list[MeasuredRun]
    reference: list[MeasuredRun]
    is_reference: bool
    configured: ConfiguredArm | None = None
    is_beside_trigger: bool = False

    @property
    def has_trigger(self) -> bool:
        """Whether a trigger decides in each run whether all clients are clustered anew, as far as known."""
        return self.configured is not None and self.configured.has_trigger

    def stated(self, estimate: E, *, is_beside_reference: bool = False) -> E:
        """An estimate of the arm: by seed, without a t interval, if the arm has a trigger.

        With `is_beside_reference` it compares the arm with the reference arm, which may have one too.
        """
        has_trigger = self.has_trigger or (is_beside_reference and self.is_beside_trigger)
        return estimate.by_seed() if has_trigger else estimate

    @property
    def runs(self) -> list[ReportedRun]:
        return [item.run for item in self.measured]

    @property
    def curves(self) -> list[AccuracyCurve]:
        return [item.curve for item in self.measured]

    @property
    def seed_ids(self) -> list[int]:
        return [item.seed for item in self.measured]

    @property
    def by_seed(self) -> dict[int, MeasuredRun]:
        return {item.seed: item for item in self.measured}


@dataclass(frozen=True)
class Compared:
    """Arms that are compared up to one horizon; in a row of a table of many runs, one arm by itself.

    `configured` has all configured arms by name, also those without a finished run; it is empty if they are
    not known.
    """

    arms: Sequence[Comparison]
    horizon: Horizon
    configured: Mapping[str, ConfiguredArm] = field(default_factory=dict)
    _found: dict[Callable[[Compared], Any], Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def num_gains(self) -> int:
        """The number of comparisons for which joint intervals hold at once."""
        return max(1, len(self.arms) - 1)

    @cached_property
    def has_event(self) -> bool:
        """Whether every run has a mass event before the horizon."""
        return all(item.event_s is not None for arm in self.arms for item in arm.measured)

    @cached_property
    def has_personal(self) -> bool:
        """Whether some run has a personal accuracy."""
        runs = (item for arm in self.arms for item in arm.measured)
        return any(item.once(personal_curve) is not None for item in runs)

    @property
    def reference(self) -> Comparison:
        """The reference arm, which must be among the arms."""
        return next(arm for arm in self.arms if arm.is_reference)

    def whose(self, is_so: Callable[[ConfiguredArm], bool]) -> list[Comparison]:
        """The arms whose configuration is known and fulfils `is_so`."""
        return [arm for arm in self.arms if arm.configured is not None and is_so(arm.configured)]

    @cached_property
    def has_baselines(self) -> bool:
        """Whether some arm is configured as a baseline, be it finished or not."""
        return any(arm.is_baseline for arm in self.configured.values())

    def names_whose(self, is_so: Callable[[ConfiguredArm], bool]) -> list[str]:
        """The names of the configured arms that fulfil `is_so`, be they finished or not."""
        return [name for name, arm in self.configured.items() if is_so(arm)]

    def find(self, name: str) -> Comparison | None:
        """The arm of that name; None if it shares no seed with the reference arm."""
        return next((arm for arm in self.arms if arm.arm == name), None)

    def once(self, find: Callable[[Compared], T]) -> T:
        """`find(self)`, computed at the first call; `find` is a function of a module."""
        if find not in self._found:
            self._found[find] = find(self)
        found: T = self._found[find]
        return found


def comparisons(
    measured: Sequence[MeasuredRun],
    reference_arm: str,
    configured: Mapping[str, ConfiguredArm] | None = None,
) -> list[Comparison]:
    """A comparison for each arm that shares a seed with the reference arm.

    They are in the order of the arms' first runs in `measured`. `configured` has the arms by name, as far as
    their configuration is known.
    """
    by_arm: dict[str, dict[int, MeasuredRun]] = {}
    for item in measured:
        by_arm.setdefault(item.arm, {})[item.seed] = item
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
