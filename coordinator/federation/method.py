"""The parts that make up a method, and the round settings that all methods of an experiment share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np

from coordinator.adaptations import Adaptation
from coordinator.adaptations.none import NoAdaptation
from coordinator.aggregators import Aggregator
from coordinator.clusterers import Clusterer
from coordinator.clusterers.single import Single
from coordinator.detectors import Detector
from coordinator.detectors.base import Watches
from coordinator.detectors.changed import Changed
from coordinator.memories import Memory
from coordinator.pacing import Pacing
from coordinator.population import Hear
from coordinator.representations import Representation
from coordinator.representations.label import Label
from coordinator.schedules import Schedule
from coordinator.selectors import Selector
from coordinator.view import Part
from emulator.arrays import Floats, Ints
from emulator.counts import LastBatch, epoch_steps, samples_of_steps
from emulator.messages import FurtherAccuracy, TaskMetric
from emulator.plugins import NoSettings


class _Listening(Single):
    """Makes clients report each change of their data, and does nothing with that."""

    @property
    def needs_reports(self) -> bool:
        return True


@dataclass(frozen=True)
class Parts:
    """The parts of one method; detectors by name."""

    clusterer: Clusterer
    detectors: Mapping[str, Detector]
    selector: Selector
    memory: Memory
    aggregator: Aggregator
    pacing: Pacing
    schedules: tuple[Schedule, ...] = ()
    representation: Representation = field(default_factory=lambda: Label(NoSettings()))
    adaptation: Adaptation = field(default_factory=lambda: NoAdaptation(NoSettings()))

    @cached_property
    def by_name(self) -> dict[str, Part]:
        """Every part, once, by a name of its own."""
        named = {name: part for name, part in vars(self).items() if isinstance(part, Part)}
        detectors = {f"detector {name}": detector for name, detector in self.detectors.items()}
        schedules = {f"schedule {number}": schedule for number, schedule in enumerate(self.schedules)}
        return {**named, **detectors, **schedules}

    @property
    def all(self) -> tuple[Part, ...]:
        """Every part, once."""
        return tuple(self.by_name.values())

    def detectors_on(self, watched: Watches) -> dict[str, Detector]:
        """The detectors by name that watch this."""
        return {name: found for name, found in self.detectors.items() if found.watches == watched}

    @property
    def needs(self) -> frozenset[TaskMetric]:
        """The metrics of training that any part reads, besides `loss`."""
        return frozenset[TaskMetric]().union(*(part.needs for part in self.all))

    @property
    def needs_reports(self) -> bool:
        """Whether any part needs the reports of clients now."""
        return self.clusterer.needs_reports or self.others_need_reports

    @property
    def others_need_reports(self) -> bool:
        """Whether any part but the clusterer needs the reports of clients now."""
        return (
            self.selector.needs_reports
            or self.memory.needs_reports
            or self.aggregator.needs_reports
            or self.pacing.needs_reports
            or any(schedule.needs_reports for schedule in self.schedules)
            or self._adaptation_listens
        )

    @cached_property
    def _adaptation_listens(self) -> bool:
        """Whether the adaptation needs reports, and those that clients send anyway will do."""
        return self.adaptation.needs_label_shares and self._reports_labels

    @property
    def _reports_labels(self) -> bool:
        """Whether at the start of a run clients report shares of labels anyway, as `round.hear` says.

        It says nothing where the clusterer sends requests, to which only clients online respond.
        """
        without = replace(self, adaptation=NoAdaptation(NoSettings()))
        to_others = without.others_need_reports and not self.clusterer.watches_data
        return isinstance(self.representation, Label) and (self.clusterer.needs_reports or to_others)

    @property
    def always_reports_labels(self) -> bool:
        """Whether clients report shares of labels throughout, whatever the adaptation needs."""
        without = replace(self, adaptation=NoAdaptation(NoSettings()))
        may_cease = isinstance(type(self.clusterer).needs_reports, property)
        always = self.clusterer.needs_reports and not may_cease
        return isinstance(self.representation, Label) and (always or without.others_need_reports)

    @property
    def of_label_shares(self) -> Parts | None:
        """The parts by which clients report their shares of labels for the adaptation, if they have to."""
        if self._adaptation_listens or not self.adaptation.needs_label_shares:
            return None
        return replace(
            self,
            clusterer=_Listening(NoSettings()),
            detectors={"changed": Changed(NoSettings())},
            representation=Label(NoSettings()),
        )


@dataclass(frozen=True)
class RoundSettings:
    """The settings of rounds, local training and evaluation that all methods of an experiment share.

    With `seconds_per_round`, `rounds` counts nominal rounds of that many virtual seconds: data steps and the
    end of the run follow virtual time, and the number of rounds depends on seed and arm. With
    `evaluate_every_s`, clients are evaluated in the first round that closes at or after each multiple of that
    many virtual seconds, and in the last one, instead of every `evaluate_every` rounds.

    With `local_epochs` a task takes so many passes over its samples, instead of `local_steps`; at most, if
    its solver `stops` early. `last` is the last batch of such a pass.
    """

    rounds: int
    local_steps: int
    batch_size: int
    learning_rate: float
    local_epochs: int | None = None
    stops: bool = False
    last: LastBatch = "filled"
    seconds_per_round: float | None = None
    evaluate_every: int = 1
    evaluate_every_s: float | None = None
    evaluate_clients: int | None = None
    accuracies: frozenset[FurtherAccuracy] = frozenset()
    log_client_accuracy: bool = False
    log_model_accuracy: bool = False
    log_visits: bool = False
    min_online: int = 1
    max_wait_days: float = 30.0
    nonfinite_updates: Literal["drop", "stop"] = "drop"
    log_detection: bool = False
    hear: Hear = "online"
    client_distance: Representation = field(default_factory=lambda: Label(NoSettings()))

    def steps_of(self, samples: Ints, epochs: int | None = None) -> Ints:
        """(n,) the local steps of tasks over so many `samples` (n,), of these `epochs` if any are."""
        if self.local_epochs is None:
            return np.full(len(samples), self.local_steps)
        return (epochs or self.local_epochs) * epoch_steps(samples, self.batch_size)

    def visit_samples(self, samples: Ints) -> Floats:
        """(n,) the samples that tasks over so many `samples` (n,) train on, each once for each use.

        Of clients that stop early it is those of one epoch, which all of them take.
        """
        epochs = 1 if self.stops else None
        return samples_of_steps(self.steps_of(samples, epochs), samples, self.batch_size, self.last)

    @property
    def ends_s(self) -> float | None:
        """The instant at which the run ends; None: with its last round."""
        return None if self.seconds_per_round is None else self.rounds * self.seconds_per_round

    def trace_round(self, round_: int, now_s: float) -> int:
        """The round of the trace's timetable at `now_s`, as `round_` is opened."""
        if self.seconds_per_round is None:
            return round_
        return min(int(now_s // self.seconds_per_round), self.rounds - 1)
