"""The one coordinator: a state machine that answers events with events.

A round is three procedures, called by events: `_renew` (data arrived), `_dispatch` (participants are picked),
`_absorb` (updates came back). It holds no clock and does no I/O. Time passes only through the events it
schedules; what it decides, its parts decide.

Visits of abandoned and dropped clients cost no real compute: tasks are frozen at dispatch, nothing that
happens later can change their outcome, and so they are trained at absorption, when it is known who is kept.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from coordinator.assignment import Assignment
from coordinator.bank import ModelBank
from coordinator.cohort import Cohort
from coordinator.measurement import Measurement, measure
from coordinator.method import Parts, RoundSettings
from coordinator.reports import Reports
from coordinator.selectors import Pool
from coordinator.view import View
from emulator.arrays import Bools, Floats32, Ints
from emulator.errors import RunError
from emulator.events import (
    ClientDropped,
    DispatchDue,
    Event,
    RoundDeadline,
    RoundOpened,
    VisitDue,
)
from emulator.latency import LatencyModel
from emulator.ledger import Ledger
from emulator.messages import (
    BYTES_PER_PARAMETER,
    BYTES_PER_REPORTED_NUMBER,
    Outcome,
    TrainTasks,
    Work,
)
from emulator.ports import Availability, Executor, Reaction, SampleStream
from emulator.runlog import RoundRecord
from emulator.seeding import RandomStreams

SECONDS_PER_DAY = 86_400.0


@dataclass
class _Progress:
    """What the round at hand has come to, until it is recorded."""

    number: int
    opened_s: float
    changed: int = 0
    reported: int = 0
    moved: int = 0
    reclustered: bool = False
    members_changed: bool = False


class SynchronousCoordinator:
    """Plays `settings.rounds` rounds over the clients of `stream`."""

    def __init__(
        self,
        parts: Parts,
        settings: RoundSettings,
        *,
        stream: SampleStream,
        availability: Availability,
        latency: LatencyModel,
        executor: Executor,
        streams: RandomStreams,
    ) -> None:
        self.parts = parts
        self.settings = settings
        self.bank = ModelBank(executor.num_parameters)
        self.ledger = Ledger()
        self.assignment: Assignment | None = None
        self._stream = stream
        self._availability = availability
        self._latency = latency
        self._executor = executor
        self._streams = streams
        self._everyone = np.arange(stream.num_clients)
        self._reports = Reports(stream.num_clients, stream.num_labels)
        self._round = _Progress(0, 0.0)
        self._cohort: Cohort | None = None
        self._visits_opened = 0
        self._finished = False

    @property
    def finished(self) -> bool:
        return self._finished

    def start(self) -> Reaction:
        """The first round opens at virtual time 0."""
        return Reaction([(0.0, RoundOpened(0))])

    def handle(self, event: Event, now_s: float) -> Reaction:
        """Answer one event. Events of visits and rounds that are over are answered with nothing."""
        match event:
            case RoundOpened(round=number) | DispatchDue(round=number) if not self._awaits(number):
                return Reaction()
            case RoundOpened():
                return self._renew(now_s)
            case DispatchDue():
                return self._dispatch(now_s)
            case VisitDue(visit=visit):
                return self._visit_ended(visit, Outcome.ABSORBED, now_s)
            case ClientDropped(visit=visit):
                return self._visit_ended(visit, Outcome.DROPPED, now_s)
            case RoundDeadline(round=number):
                return self._deadline_passed(number, now_s)
        raise RunError(f"round {self._round.number}: the coordinator knows no {event}")

    def _awaits(self, number: int) -> bool:
        """Whether round `number` is the present one, and its cohort has not been sent out yet."""
        return number == self._round.number and self._cohort is None

    # -- renew: data arrived ------------------------------------------------------------------------------

    def _renew(self, now_s: float) -> Reaction:
        """The trace advances, whoever drifted reports, the clusterer decides; then follows dispatch."""
        progress = self._round
        self._reports.data_changed(self._stream.advance_to_round(progress.number))
        # Everybody registers before the first round; after that, offline clients wait their turn to report.
        registering = self.assignment is None
        if self.parts.clusterer.representation is None:
            self._apply(self.parts.clusterer.on_data(self._view()))
            return Reaction([(now_s, DispatchDue(progress.number))])

        reachable = registering | self._availability.online(self._everyone, now_s)
        changed = self._reports.take_news(reachable)
        progress.changed += len(changed)
        signal = self._stream.label_histograms(changed)
        reporting, drift = self._reports.hear(changed, signal, self.parts.detectors)
        progress.reported += len(reporting)
        work = Work.of(len(reporting), upload_bytes=BYTES_PER_REPORTED_NUMBER * signal.shape[1])
        self.ledger.charge_control(work.download_bytes, work.upload_bytes)
        slowest_s = float(self._latency.phases(reporting, work).total_s.max(initial=0.0))
        self._apply(self.parts.clusterer.on_data(self._view(drift)))
        # The registration precedes the emulation: it costs bytes, and no virtual time.
        return Reaction([(now_s + (0.0 if registering else slowest_s), DispatchDue(progress.number))])

    def _apply(self, assignment: Assignment | None) -> None:
        if assignment is None:
            return
        progress = self._round
        before = None if self.assignment is None else self._labels()
        self.bank.apply(assignment)
        self.assignment = assignment
        after = self._labels()
        progress.members_changed |= before is None or not np.array_equal(before, after)
        progress.reclustered |= assignment.reclustered
        if before is not None and not assignment.reclustered:
            progress.moved += int((before != after).sum())

    # -- dispatch: participants are picked ------------------------------------------------------------------

    def _dispatch(self, now_s: float) -> Reaction:
        """Send a cohort out, or wait until enough clients are online."""
        lane = self._current().lane
        sizes = np.bincount(lane[lane >= 0], minlength=len(self.bank))
        quota = self.parts.pacing.quota(sizes)
        eligible = np.flatnonzero((lane >= 0) & (np.append(quota, 0)[lane] > 0))
        candidates = eligible[self._availability.online(eligible, now_s)]
        # Lanes without a quota can leave fewer than min_online to ask: then all of them must be there.
        needed = max(1, min(self.settings.min_online, len(eligible)))
        if len(candidates) < needed:
            return self._wait(eligible, len(candidates), needed, now_s)

        pool = Pool([candidates[lane[candidates] == row] for row in range(len(quota))])
        wanted = self.parts.pacing.wanted(quota)
        chosen = self.parts.selector.select(pool, wanted, self._view())
        if len(chosen) == 0:
            raise RunError(
                f"round {self._round.number}: the selector chose none of the {len(candidates)} clients online"
            )
        cohort = self._open_cohort(chosen, quota, now_s)
        self._cohort = cohort
        return Reaction(self._visit_ends(cohort))

    def _open_cohort(self, clients: Ints, quota: Ints, now_s: float) -> Cohort:
        """Freeze the tasks of `clients` and work out what their visits cost."""
        settings = self.settings
        client, model_row, samples = self.parts.memory.rows(clients, self._view())
        tasks = TrainTasks(
            client=client,
            model=self.bank.ids[model_row],
            version=self.bank.versions[model_row],
            visit=self._visits_opened + np.searchsorted(clients, client),
            samples=samples,
            settings={
                "learning_rate": np.full(len(client), settings.learning_rate),
                "local_steps": np.full(len(client), float(settings.local_steps)),
                "batch_size": np.full(len(client), float(settings.batch_size)),
            },
            round=self._round.number,
        )
        models = np.bincount(np.searchsorted(clients, client), minlength=len(clients)).astype(np.float64)
        model_bytes = float(BYTES_PER_PARAMETER * self._executor.num_parameters)
        work = Work(
            download_bytes=models * model_bytes,
            upload_bytes=models * model_bytes,
            forward_samples=np.zeros(len(clients)),
            trained_samples=models * settings.local_steps * settings.batch_size,
        )
        cohort = Cohort(
            first_visit=self._visits_opened,
            clients=clients,
            lanes=self._current().lane[clients],
            quota=quota,
            start_s=now_s,
            work=work,
            phases=self._latency.phases(clients, work),
            tasks=tasks,
            starts=self.bank.parameters[model_row],
        )
        self._visits_opened += len(clients)
        return cohort

    def _visit_ends(self, cohort: Cohort) -> list[tuple[float, Event]]:
        """When each visit is due, or its client drops out before that; and the round's deadline."""
        due_s = cohort.start_s + cohort.phases.total_s
        offline_s = self._availability.next_offline_s(cohort.clients, cohort.start_s)
        events: list[tuple[float, Event]] = []
        for row, client in enumerate(cohort.clients.tolist()):
            visit = cohort.first_visit + row
            if offline_s[row] < due_s[row]:
                events.append((float(offline_s[row]), ClientDropped(client, visit)))
            else:
                events.append((float(due_s[row]), VisitDue(client, visit)))
        if self.parts.pacing.deadline_s is not None:
            events.append((cohort.start_s + self.parts.pacing.deadline_s, RoundDeadline(self._round.number)))
        return events

    def _wait(self, eligible: Ints, online: int, needed: int, now_s: float) -> Reaction:
        """Come back at the first instant at which enough clients could be online."""
        settings, progress = self.settings, self._round
        missing = needed - online
        upcoming = np.sort(self._availability.next_online_s(eligible, now_s))
        next_s = float(upcoming[missing - 1]) if missing <= len(upcoming) else math.inf
        if next_s - progress.opened_s > settings.max_wait_days * SECONDS_PER_DAY:
            never = "never" if math.isinf(next_s) else f"not within {settings.max_wait_days:g} virtual days"
            raise RunError(
                f"round {progress.number}: {online} of {len(eligible)} clients are online at {now_s:.0f} s, "
                f"round.min_online = {settings.min_online} asks for {needed}, and {never} again are so many "
                f"online at once"
            )
        return Reaction([(next_s, RoundOpened(progress.number))])

    # -- absorb: updates came back --------------------------------------------------------------------------

    def _visit_ended(self, visit: int, outcome: Outcome, now_s: float) -> Reaction:
        cohort = self._cohort
        if cohort is None or not cohort.is_out(visit):
            return Reaction()
        cohort.end(visit, outcome, now_s)
        cohort.abandon(self.parts.pacing.full(cohort.quota, cohort.back()), now_s)
        return Reaction() if cohort.any_out else self._absorb(cohort, now_s)

    def _deadline_passed(self, number: int, now_s: float) -> Reaction:
        cohort = self._cohort
        if cohort is None or number != self._round.number:
            return Reaction()
        cohort.abandon(np.ones(len(cohort.quota), dtype=bool), now_s)
        return self._absorb(cohort, now_s)

    def _absorb(self, cohort: Cohort, now_s: float) -> Reaction:
        """Train what is kept, aggregate, publish, evaluate, record; then the next round opens."""
        self._cohort = None
        self.ledger.charge_training(*cohort.moved_bytes())
        train_loss = self._train_and_publish(cohort)
        record = self._record(cohort, train_loss, now_s)
        following = self._round.number + 1
        if following == self.settings.rounds:
            self._finished = True
            return Reaction(record=record)
        self._round = _Progress(following, opened_s=now_s)
        return Reaction([(now_s, RoundOpened(following))], record)

    def _train_and_publish(self, cohort: Cohort) -> float | None:
        """The mean training loss over the kept tasks; None when nobody came back with samples to train on."""
        tasks, starts = cohort.kept_tasks()
        tasks_with_samples = np.flatnonzero(tasks.samples.counts() > 0)
        if len(tasks_with_samples) == 0:
            return None
        updates = self._executor.train(tasks, starts)
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is an error in a moment
            models = self.parts.aggregator.aggregate(updates, self._view())
            train_loss = float(updates.metrics["loss"][tasks_with_samples].mean())
        self._refuse_divergence(models, train_loss)
        self.bank.publish(models, updated=np.isin(self.bank.ids, updates.model))
        return train_loss

    def _record(self, cohort: Cohort, train_loss: float | None, now_s: float) -> RoundRecord:
        progress, measured = self._round, self._measure()
        return RoundRecord(
            round=progress.number,
            step=self._stream.step,
            opened_s=progress.opened_s,
            dispatched_s=cohort.start_s,
            closed_s=now_s,
            participants=cohort.clients.tolist(),
            kept=cohort.ids(Outcome.ABSORBED).tolist(),
            dropped=cohort.ids(Outcome.DROPPED).tolist(),
            changed=progress.changed,
            reported=progress.reported,
            moved=progress.moved,
            reclustered=progress.reclustered,
            clusters=self.bank.labels.tolist(),
            members=self._labels().tolist() if progress.members_changed else None,
            train_loss=train_loss,
            accuracy=measured.accuracy if measured else None,
            accuracy_std=measured.accuracy_std if measured else None,
            loss=measured.loss if measured else None,
            mean_client_distance=measured.mean_client_distance if measured else None,
            unclustered_distance=measured.unclustered_distance if measured else None,
            download_bytes=self.ledger.download_bytes,
            upload_bytes=self.ledger.upload_bytes,
            control_bytes=self.ledger.control_bytes,
        )

    def _measure(self) -> Measurement | None:
        """How the clients are served, if this round is one that is evaluated."""
        number, settings = self._round.number, self.settings
        if number + 1 < settings.rounds and (number + 1) % settings.evaluate_every != 0:
            return None
        samples = self._stream.held(self._everyone, "test")
        if not samples.counts().any():
            raise RunError(
                f"round {number}: no client holds test samples any more at data step {self._stream.step}; "
                f"a trace must last as long as round.rounds = {settings.rounds}"
            )
        serves = self.parts.clusterer.serve(self._view())
        histograms = self._stream.label_histograms(self._everyone)
        measured = measure(self._executor, self.bank.parameters, serves, samples, histograms)
        self._refuse_divergence(measured.loss)
        return measured

    def _refuse_divergence(self, *values: float | Floats32) -> None:
        """RunError unless everything is finite."""
        if not all(np.isfinite(value).all() for value in values):
            raise RunError(
                f"round {self._round.number}: training diverged, a model or a loss is not finite; "
                f"a lower training.learning_rate than {self.settings.learning_rate:g} may help"
            )

    # -- shared ---------------------------------------------------------------------------------------------

    def _current(self) -> Assignment:
        if self.assignment is None:
            raise RunError("the clusterer answered its first call with no assignment")
        return self.assignment

    def _labels(self) -> Ints:
        """(N,) the label of each client's lane, -1 where it has none."""
        labels: Ints = np.append(self.bank.labels, -1)[self._current().lane]
        return labels

    def _view(self, drift: Mapping[str, Bools] | None = None) -> View:
        return View(
            round=self._round.number,
            step=self._stream.step,
            num_clients=len(self._everyone),
            streams=self._streams,
            assignment=self.assignment,
            models=self.bank.parameters,
            model_ids=self.bank.ids,
            reports=self._reports.latest,
            drift=drift or {},
            initial=self._executor.initial,
            held=lambda ids: self._stream.held(ids, "train"),
        )
