"""Builds the views of the parts, and resolves the samples that client requests are about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NoReturn

import numpy as np

from coordinator.assignment import Assignment
from coordinator.distances import DistanceName
from coordinator.federation.bank import ModelBank
from coordinator.federation.hearing.reports import Reports
from coordinator.federation.run import Run
from coordinator.federation.tasks import TaskCosts, expected_phases
from coordinator.memories import Memory
from coordinator.view import NO_MODELS, ClaimedBy, Part, Samples, ScoreRequest, TrainRequest, View
from emulator.arrays import NO_IDS, Bools, Floats, Floats32, Ints
from emulator.errors import RunError
from emulator.messages import AnyTrigger, SampleRanges, Updates


class Views:
    """Builds the views of one run; the caller supplies the round and the assignment in force."""

    def __init__(
        self,
        run: Run,
        *,
        bank: ModelBank,
        memory: Memory,
        reports: Reports,
        distance: DistanceName,
        costs: TaskCosts,
    ) -> None:
        self._run = run
        self._bank = bank
        self._memory = memory
        self._reports = reports
        self._distance = distance
        self._costs = costs
        self._everyone = np.arange(run.stream.num_clients)
        self._num_labels = run.stream.num_labels
        self._layout = run.executor.layout

    def samples_of(
        self, samples: Samples, clients: Ints, round_: int, assignment: Assignment | None
    ) -> SampleRanges:
        """The samples, a row for each of `clients`, that a request with `samples` is about."""
        if isinstance(samples, ClaimedBy):
            return self._memory.samples(clients, samples.model, self.of_memory(round_, assignment))
        if samples == "held":
            return self._run.stream.held(clients, "train")
        return self._run.stream.arrived(clients, self._run.stream.step, self._run.stream.step)

    def of_memory(self, round_: int, assignment: Assignment | None) -> View:
        """The view of the memory, where it is asked who trains, or on what: it can request nothing."""
        refused = _not_of_a_memory
        return self.view(self._memory, round_, assignment, refused, refused, refused)

    def _claimed(self, round_: int, assignment: Assignment | None) -> Ints:
        """(M,) the number of samples that the memory holds for each model, over all clients."""
        claims = [ClaimedBy(row) for row in range(len(self._bank))]
        samples = [self.samples_of(claim, self._everyone, round_, assignment) for claim in claims]
        return np.array([ranges.counts().sum() for ranges in samples], dtype=np.int64)

    def view(
        self,
        part: Part,
        round_: int,
        assignment: Assignment | None,
        score: ScoreRequest,
        train: TrainRequest,
        log_trigger: Callable[[AnyTrigger], None],
        *,
        moment: int | None = None,
        drift: Mapping[str, Bools] | None = None,
        changed: Ints = NO_IDS,
        participants: Ints = NO_IDS,
        updates: Updates | None = None,
        rebased: bool = False,
        joined: Ints = NO_IDS,
        left: Ints = NO_IDS,
        staleness: Ints = NO_IDS,
        remembered: Mapping[str, Floats] | None = None,
        received: Floats32 = NO_MODELS,
        started: Ints = NO_IDS,
    ) -> View:
        """The view of `part` now; the keyword arguments are the facts that only some calls see."""
        return View(
            round=round_,
            step=self._run.stream.step,
            num_clients=len(self._everyone),
            num_labels=self._num_labels,
            streams=self._run.streams,
            assignment=assignment,
            models=self._bank.parameters,
            model_ids=self._bank.ids,
            cluster_labels=self._bank.labels,
            layout=self._layout,
            reports=self._reports.latest,
            holding=self._run.stream.holding,
            distance=self._distance,
            drift=drift or {},
            changed=changed,
            participants=participants,
            updates=updates,
            truth=lambda: self._concepts_for(part),
            onset_truth=lambda: self._newest_onset_for(part),
            initial=self._run.executor.initial,
            held=lambda ids: self._run.stream.held(ids, "train"),
            arrived=self._run.stream.arrived,
            claimed=lambda: self._claimed(round_, assignment),
            score=score,
            train=train,
            expected_s=lambda ids: self._expected_s(ids, assignment),
            local_steps=self._run.settings.local_steps if self._run.settings.local_epochs is None else None,
            batch_size=self._run.settings.batch_size,
            learning_rate=self._run.settings.learning_rate,
            log_trigger=log_trigger,
            rebased=rebased,
            joined=joined,
            left=left,
            moment=moment,
            staleness=staleness,
            remembered=remembered or {},
            received=received,
            started=started,
        )

    def _expected_s(self, ids: Ints, assignment: Assignment | None) -> Floats:
        """(n,) virtual seconds of a visit to each of `ids` that trains the models it belongs to, or one."""
        models = np.ones(len(ids))
        if assignment is not None and assignment.members.shape[1] > 1:
            models = np.maximum((assignment.members[ids] >= 0).sum(axis=1), 1).astype(np.float64)
        samples = self._run.settings.visit_samples(self._run.stream.held(ids, "train").counts())
        return expected_phases(ids, models, samples, self._costs, self._run.latency.expected).total_s

    def _concepts_for(self, part: Part) -> Ints | None:
        _refuse_unless_oracle(part, "concepts")
        return self._run.stream.concepts

    def _newest_onset_for(self, part: Part) -> Ints | None:
        _refuse_unless_oracle(part, "onsets")
        return self._run.stream.newest_onset


def _refuse_unless_oracle(part: Part, truth: str) -> None:
    if not part.oracle:
        raise RunError(
            f"{part.name} reads the true {truth}, which only parts that declare `oracle = True` may do"
        )


def _not_of_a_memory(*arguments: object, **keywords: object) -> NoReturn:
    raise AssertionError(
        "Memory.samples and Memory.trains must neither make client requests nor log a trigger"
    )
