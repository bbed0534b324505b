"""The finished runs and the summary from which a page and the figures of a notebook are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from experiments.results.drawing.arms import Arm
from experiments.results.reading.clusters_in_force import num_clients
from experiments.results.reading.run_directory import ReportedRun, RunDirectory
from experiments.results.statistics.clients.accuracy import ClientAccuracy
from experiments.results.statistics.intervals import Estimate
from experiments.results.statistics.summary import Summary

E = TypeVar("E", bound=Estimate)


@dataclass(frozen=True)
class Report:
    """The finished runs of a run directory with their summary, in which at least one arm is compared."""

    directory: RunDirectory
    runs: Sequence[ReportedRun]
    summary: Summary

    @cached_property
    def experiment(self) -> dict[str, Any]:
        """The configuration as it was recorded."""
        return self.directory.experiment()

    @cached_property
    def order(self) -> list[str]:
        """The names of all arms in the configured order."""
        return [str(arm["name"]) for arm in self.experiment["arm"]]

    @cached_property
    def arms(self) -> list[Arm]:
        """The arms that are compared, as they are drawn, the reference arm first."""
        return [
            Arm(
                arm.arm,
                arm.runs,
                arm.curves,
                self.order.index(arm.arm),
                arm.has_trigger,
                ties=any(arm.arm in names[1:] for names in self.summary.comparison.ties),
            )
            for arm in self.summary.rows
        ]

    @property
    def most_seeds(self) -> int:
        """The number of seeds of the arm that has most."""
        return max(len(arm.runs) for arm in self.arms)

    @property
    def seeds(self) -> str:
        """The numbers of seeds of the arms, as "3 seeds", or as "1 to 3 seeds" if they differ."""
        fewest = min(len(arm.runs) for arm in self.arms)
        return f"{'' if fewest == self.most_seeds else f'{fewest} to '}{self.most_seeds} seeds"

    @property
    def num_clients(self) -> int:
        """The number of clients, by the log of the first run; 0 if it does not have them."""
        return num_clients(self.arms[0].runs[0])

    @property
    def scored(self) -> int | None:
        """The configured number of clients that are scored; None for all."""
        scored: int | None = self.experiment.get("round", {}).get("evaluate_clients")
        return scored

    @property
    def scores_a_sample(self) -> bool:
        """Whether only a sample of the clients is scored."""
        return self.scored is not None and self.scored < self.num_clients

    @property
    def clients(self) -> dict[str, list[ClientAccuracy | None]]:
        """By arm, the last evaluation of the clients of each seed by the horizon (`Run.clients`)."""
        return {arm.arm: [run.clients for run in arm.measured] for arm in self.summary.rows}

    def stated(self, estimate: E, arm: str) -> E:
        """An estimate of the arm of that name: by seed, without a t interval, if it has a trigger."""
        return next(found for found in self.summary.rows if found.arm == arm).stated(estimate)
