"""The one coordinator: a state machine that answers events with events.

A round is four procedures, called by events: `_renew` (data arrived), `_dispatch` (participants are picked),
`_cohort_due` (their visits begin), `_absorb` (updates came back). It holds no clock and does no I/O. Time
passes only through the events it schedules; what it decides, its parts decide.

Visits of abandoned and dropped clients cost no real compute: tasks are frozen at dispatch, nothing that
happens later can change their outcome, and so they are trained at absorption, when it is known who is kept.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from coordinator.assignment import Assignment
from coordinator.candidates import Pool
from coordinator.federation.bank import ModelBank
from coordinator.federation.cohort import Cohort, Picked
from coordinator.federation.divergence import Divergence
from coordinator.federation.faults import Faults, no_faults
from coordinator.federation.lanes import Lanes
from coordinator.federation.measurement import NOT_MEASURED, Measurement, measure, scored_clients
from coordinator.federation.method import Parts, RoundSettings
from coordinator.federation.progress import RoundProgress
from coordinator.federation.questions import Questions
from coordinator.federation.reports import Reports
from coordinator.federation.solver_state import SolverState
from coordinator.federation.stored_parts import StoredParts
from coordinator.federation.tasks import task_settings, visit_work
from coordinator.federation.window import Window
from coordinator.view import Part, View
from emulator.arrays import NO_IDS, Bools, Ints
from emulator.errors import RunError
from emulator.events import CohortDue, DispatchDue, Event, RoundDeadline, RoundOpened
from emulator.in_flight import VisitEnds
from emulator.latency import LatencyModel
from emulator.ledger import Ledger
from emulator.messages import (
    BYTES_PER_PARAMETER,
    BYTES_PER_REPORTED_NUMBER,
    TrainTasks,
    Work,
)
from emulator.ports import Availability, Executor, Reaction, SampleStream
from emulator.seeding import RandomStreams
from emulator.storage.runlog import RoundRecord
from emulator.storage.state_tree import Tree, as_tree, of_tree

SECONDS_PER_DAY = 86_400.0


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
        faults: Faults | None = None,
    ) -> None:
        self.parts = parts
        self.settings = settings
        self.bank = ModelBank(executor.num_parameters)
        self.ledger = Ledger()
        self._stream = stream
        self._availability = availability
        self._latency = latency
        self._executor = executor
        self._faults = faults or no_faults(stream.num_clients, stream.num_labels, streams)
        self.scored_clients = scored_clients(stream.num_clients, settings.evaluate_clients, streams)
        self._model_bytes = float(BYTES_PER_PARAMETER * executor.num_parameters)
        self._reports = Reports(stream.num_clients, stream.num_labels)
        self._window = Window(
            bank=self.bank,
            memory=parts.memory,
            reports=self._reports,
            stream=stream,
            executor=executor,
            streams=streams,
        )
        self._solver_state = SolverState(executor.state, executor.num_parameters)
        self._questions = Questions(
            stream.num_clients,
            bank=self.bank,
            executor=executor,
            availability=availability,
            latency=latency,
            ledger=self.ledger,
            streams=streams,
            resolve=self._window.samples_of,
            faults=self._faults,
        )
        self._round = RoundProgress(0, 0.0)
        self._lanes: Lanes | None = None  # of the present assignment and data step, once they were asked for
        self._picked: Picked | None = None  # who is sent out once the selector's questions are answered
        self._cohort: Cohort | None = None
        self._visits_opened = 0
        self._finished = False
        corrupts = self._faults.parameters.corrupt > 0
        self._divergence = Divergence(settings, " or fewer faults.corrupt" if corrupts else "")
        self._stored = StoredParts(
            {
                "bank": self.bank,
                "ledger": self.ledger,
                "reports": self._reports,
                "solver_state": self._solver_state,
                "questions": self._questions,
                "divergence": self._divergence,
                "clusterer": parts.clusterer,
                "selector": parts.selector,
                "memory": parts.memory,
                "aggregator": parts.aggregator,
                "pacing": parts.pacing,
                **{f"detector {name}": detector for name, detector in parts.detectors.items()},
                **{f"schedule {number}": schedule for number, schedule in enumerate(parts.schedules)},
            }
        )

    @property
    def finished(self) -> bool:
        return self._finished

    def state(self) -> dict[str, Tree]:
        """All that the rest of the run depends on; with the world and the configuration it is everything.

        RunError names a part that cannot be stored.
        """
        return {
            "round": as_tree(self._round),
            "renewed": self._window.round,
            "assignment": None if self._window.assignment is None else as_tree(self._window.assignment),
            "picked": None if self._picked is None else as_tree(self._picked),
            "cohort": None if self._cohort is None else self._cohort.state(),
            "visits_opened": self._visits_opened,
            "finished": self._finished,
            "parts": self._stored.state(),
        }

    def restore(self, state: Mapping[str, Tree]) -> None:
        """Go on from `state`; the coordinator must not have been started."""
        self._round = of_tree(RoundProgress, state["round"])
        self._window.round = state["renewed"]
        if state["assignment"] is not None:
            self._window.assignment = of_tree(Assignment, state["assignment"])
            # What a stream has counted follows from where it is.
            self._stream.advance_to_round(self._window.round)
        self._picked = None if state["picked"] is None else of_tree(Picked, state["picked"])
        self._cohort = None if state["cohort"] is None else Cohort.of_state(state["cohort"])
        self._visits_opened, self._finished = state["visits_opened"], state["finished"]
        self._stored.restore(state["parts"])

    def start(self) -> Reaction:
        """The first round opens at virtual time 0."""
        return Reaction([(0.0, RoundOpened(0))])

    def handle(self, event: Event, now_s: float) -> Reaction:
        """Answer one event. Events of rounds that are over are answered with nothing."""
        match event:
            case RoundOpened(round=number) | DispatchDue(round=number) if not self._awaits(number):
                return Reaction()
            case RoundOpened():
                return self._renew(now_s)
            case DispatchDue():
                return self._dispatch(now_s)
            case CohortDue(round=number):
                return self._cohort_due(number, now_s)
            case RoundDeadline(round=number):
                return self._deadline_passed(number, now_s)
        raise RunError(f"round {self._round.number}: the coordinator knows no {event}")

    def visits_ended(self, ends: VisitEnds) -> tuple[int, Reaction]:
        """Visits end, in order, up to the one that closes the round. Those of rounds that are over count for
        nothing."""
        if self._cohort is None:
            return len(ends), Reaction()
        count, closed_s = self._cohort.end(ends, self.parts.pacing.full)
        return count, Reaction() if closed_s is None else self._absorb(self._cohort, closed_s)

    def _awaits(self, number: int) -> bool:
        """Whether round `number` is the present one, and its participants have not been picked yet."""
        return number == self._round.number and self._picked is None and self._cohort is None

    # -- renew: data arrived ------------------------------------------------------------------------------

    def _renew(self, now_s: float) -> Reaction:
        """The trace advances, whoever drifted reports, the clusterer decides; then follows dispatch."""
        progress, clusterer = self._round, self.parts.clusterer
        self._window.round = progress.number
        # Everybody registers before the first round; after that, offline clients wait their turn.
        registering = self._window.assignment is None
        step = self._stream.step
        changed = self._stream.advance_to_round(progress.number)
        if self._stream.step != step:
            self._lanes = None
        self._solver_state.data_changed(changed)
        self._reports.data_changed(changed)
        news = self._who_has_news(registering, now_s)
        self._reports.taken(news)
        self._questions.open_round(progress.number)
        self._questions.open_moment(now_s)
        drift = self._hear(news) if clusterer.representation is not None else {}
        self._apply(clusterer.on_data(self._view(clusterer, drift=drift, changed=news)))
        self._claim()
        # The registration precedes the emulation: it costs bytes, and no virtual time.
        asked_s = 0.0 if registering else self._questions.slowest_s
        return Reaction([(now_s + asked_s, DispatchDue(progress.number))])

    def _who_has_news(self, registering: bool, now_s: float) -> Ints:
        """Ids, ascending, of the clients whose news can be heard now; of all if they are `registering`."""
        if not self.parts.clusterer.watches_data:
            return NO_IDS
        if registering:
            return self._reports.all_with_news()
        return self._reports.online_with_news(self._availability, now_s)

    def _hear(self, clients: Ints) -> dict[str, Bools]:
        """These clients look at their data; those that find a drift report it. Who drifted, by detector."""
        signal = self._faults.reported(clients, self._stream.label_histograms(clients))
        reporting, drift = self._reports.hear(clients, signal, self.parts.detectors)
        self._round.changed += len(clients)
        self._round.reported += len(reporting)
        if len(reporting) > 0:
            numbers = BYTES_PER_REPORTED_NUMBER * signal.shape[1]
            self._questions.charge(reporting, Work.of(len(reporting), upload_bytes=numbers))
        return drift

    def _claim(self) -> None:
        """The newest arrivals belong to the members of now."""
        self.parts.memory.claim(self._view(self.parts.memory))

    def _apply(self, assignment: Assignment | None) -> None:
        if assignment is None:
            return
        progress = self._round
        before = None if self._window.assignment is None else self._labels()
        if before is None or assignment.changes_models:
            self.bank.apply(assignment)
            self.parts.memory.remix(assignment)
            self._solver_state.models_changed(self.bank.ids)
        self._window.assignment, self._lanes = assignment, None
        after = self._labels()
        progress.members_changed |= before is None or not np.array_equal(before, after)
        progress.reclustered |= assignment.reclustered
        progress.fitted = assignment.fitted or progress.fitted
        if before is not None and not assignment.reclustered:
            progress.moved += int((before != after).sum())

    # -- dispatch: participants are picked ------------------------------------------------------------------

    def _dispatch(self, now_s: float) -> Reaction:
        """Pick participants, or wait until enough clients are online.

        They are sent out when the slowest answer to what the selector asked is in.
        """
        lanes = self._current_lanes()
        quota = self.parts.pacing.quota(lanes.sizes)
        asked = [ids if quota[row] > 0 else NO_IDS for row, ids in enumerate(lanes.ids)]
        eligible = sum(map(len, asked))
        if eligible == 0:
            raise RunError(self._why_nobody_is_eligible())
        pool = Pool(asked, lambda ids: self._availability.online(ids, now_s))
        # Lanes without a quota can leave fewer than min_online to ask: then all of them must be there.
        needed = min(self.settings.min_online, eligible)
        if not pool.holds(needed):
            return self._wait(np.concatenate([NO_IDS, *asked]), needed, now_s)

        wanted = self.parts.pacing.wanted(quota)
        self._questions.open_moment(now_s)
        selector = self.parts.selector
        chosen = selector.select(pool, wanted, self._view(selector))
        if len(chosen) == 0:
            raise RunError(f"round {self._round.number}: the selector chose none of the clients online")
        self._picked = Picked(chosen, lanes.lane[chosen], quota, now_s)
        return Reaction([(now_s + self._questions.slowest_s, CohortDue(self._round.number))])

    def _cohort_due(self, number: int, now_s: float) -> Reaction:
        """The visits of those picked begin; whoever went offline meanwhile drops out at once."""
        picked = self._picked
        if picked is None or number != self._round.number:
            return Reaction()
        self._picked = None
        self._cohort = self._open_cohort(picked, now_s)
        return self._send_out(self._cohort, picked.at_s)

    def _open_cohort(self, picked: Picked, now_s: float) -> Cohort:
        """Freeze the tasks of those picked and work out what their visits cost."""
        clients = picked.clients
        self._questions.open_moment(now_s)
        clusterer, memory = self.parts.clusterer, self.parts.memory
        assigned = clusterer.on_participants(self._view(clusterer, participants=clients))
        if assigned is not None:
            self._apply(assigned)
            self._claim()
        client, row, samples = memory.rows(clients, self._view(memory, participants=clients))
        visit = np.searchsorted(clients, client)  # of each task, its row among the visits
        views = [self._view(schedule, participants=clients) for schedule in self.parts.schedules]
        settings = task_settings(self.settings, self.parts.schedules, client, row, views)
        downloaded = self._questions.hold(client, row)
        payload = visit_work(visit, settings, downloaded, len(clients), self._model_bytes)
        work = self._faults.sent(payload, clients, self._round.number, 0)
        asked_s, phases = self._questions.busy_s(clients), self._latency.phases(clients, work)
        busy_s = asked_s + phases.total_s
        cohort = Cohort(
            first_visit=self._visits_opened,
            clients=clients,
            lanes=picked.lanes,
            quota=picked.quota,
            start_s=now_s,
            asked_s=asked_s,
            crash_s=self._faults.crash_s(self._round.number, clients, now_s, busy_s),
            payload=payload,
            work=work,
            phases=phases,
            tasks=TrainTasks(
                client=client,
                model=self.bank.ids[row],
                version=self.bank.versions[row],
                visit=self._visits_opened + visit,
                samples=samples,
                settings=settings,
                round=self._round.number,
                step=self._stream.step,
                state=self._solver_state.read(client, self.bank.ids[row]),
                tampering=self._faults.tampering(self._round.number, client, self.bank.ids[row]),
            ),
            models=self.bank.parameters,
            start=row,
        )
        self._visits_opened += len(clients)
        return cohort

    def _send_out(self, cohort: Cohort, picked_s: float) -> Reaction:
        """When each visit is due, or its client drops out before that; and the round's deadline.

        All were online at `picked_s`.
        """
        clients, start_s = cohort.clients, cohort.start_s
        offline_s = self._availability.next_offline_s(clients, start_s)
        if start_s > picked_s:
            offline_s = np.where(self._availability.online(clients, start_s), offline_s, start_s)
        deadline_s = self.parts.pacing.deadline_s
        if deadline_s is None:
            return Reaction(visits=cohort.ends(offline_s))
        deadline = RoundDeadline(self._round.number)
        return Reaction([(cohort.start_s + deadline_s, deadline)], cohort.ends(offline_s))

    def _wait(self, eligible: Ints, needed: int, now_s: float) -> Reaction:
        """Come back at the first instant at which enough clients could be online."""
        settings, progress = self.settings, self._round
        online = int(self._availability.online(eligible, now_s).sum())
        upcoming = np.sort(self._availability.next_online_s(eligible, now_s))
        next_s = float(np.append(upcoming, math.inf)[min(needed - online - 1, len(upcoming))])
        if next_s - progress.opened_s > settings.max_wait_days * SECONDS_PER_DAY:
            never = "never" if math.isinf(next_s) else f"not within {settings.max_wait_days:g} virtual days"
            raise RunError(
                f"round {progress.number}: {online} of {len(eligible)} clients are online at {now_s:.0f} s, "
                f"round.min_online = {settings.min_online} asks for {needed}, and {never} again are so many "
                f"online at once"
            )
        return Reaction([(next_s, RoundOpened(progress.number))])

    # -- absorb: updates came back --------------------------------------------------------------------------

    def _deadline_passed(self, number: int, now_s: float) -> Reaction:
        cohort = self._cohort
        if cohort is None or number != self._round.number:
            return Reaction()
        cohort.abandon(np.ones(len(cohort.quota), dtype=bool), now_s)
        return self._absorb(cohort, now_s)

    def _absorb(self, cohort: Cohort, now_s: float) -> Reaction:
        """Train what is kept, aggregate, publish, evaluate, record; then the next round opens."""
        self._cohort = None
        self._questions.open_moment(now_s)
        down, up = cohort.moved_bytes()
        self.ledger.charge_training(down, up, cohort.moved_payload_bytes() / self._model_bytes)
        self._round.crashed = cohort.crashed().tolist()
        train_loss = self._train_and_publish(cohort)
        record = self._record(cohort, train_loss, now_s)
        following = self._round.number + 1
        if following == self.settings.rounds:
            self._finished = True
            return Reaction(record=record)
        opens_s = now_s + self._questions.slowest_s
        self._round = RoundProgress(following, opened_s=opens_s)
        return Reaction([(opens_s, RoundOpened(following))], record=record)

    def _train_and_publish(self, cohort: Cohort) -> float | None:
        """The mean training loss over the kept tasks; None when nobody came back with samples to train on."""
        tasks, start = cohort.kept_tasks()
        if not tasks.samples.counts().any():
            return None
        aggregator, clusterer = self.parts.aggregator, self.parts.clusterer
        weights = aggregator.weights(tasks.model, tasks.samples.counts(), self._view(aggregator))
        trained = self._executor.train(tasks, cohort.models, start, weights)
        updates, self._round.rejected = self._divergence.usable(self._round.number, trained)
        with_samples = np.flatnonzero(updates.num_samples > 0)
        if len(with_samples) == 0:
            return None
        news = {"participants": cohort.clients, "updates": updates}
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is an error in a moment
            models = aggregator.aggregate(updates, self._view(aggregator, **news))
            train_loss = float(updates.metrics["loss"][with_samples].mean())
        self._divergence.refuse(self._round.number, models, train_loss)
        self.bank.publish(models, updated=(self.bank.ids[:, None] == updates.model).any(axis=1))
        self._solver_state.commit(updates)
        self._apply(clusterer.on_updates(self._view(clusterer, **news)))
        return train_loss

    def _record(self, cohort: Cohort, train_loss: float | None, now_s: float) -> RoundRecord:
        return self._round.record(
            cohort,
            now_s,
            step=self._stream.step,
            clusters=self.bank.labels,
            members=self._labels() if self._round.members_changed else None,
            train_loss=train_loss,
            measured=self._measure(),
            ledger=self.ledger,
        )

    def _measure(self) -> Measurement:
        """How the clients are served, if this round is one that is evaluated."""
        number, settings = self._round.number, self.settings
        if number + 1 < settings.rounds and (number + 1) % settings.evaluate_every != 0:
            return NOT_MEASURED
        if not self._stream.held(self.scored_clients, "test").counts().any():
            raise RunError(
                f"round {number}: no scored client holds test samples any more at data step "
                f"{self._stream.step}; a trace must last as long as round.rounds = {settings.rounds}"
            )
        plan = self.parts.clusterer.serve(self._view(self.parts.clusterer))
        measured = measure(
            self._executor,
            self.bank,
            plan,
            self._stream,
            self.scored_clients,
            of_each=settings.log_client_accuracy,
        )
        self._divergence.refuse(number, measured.loss or 0.0)
        return measured

    # -- shared ---------------------------------------------------------------------------------------------

    def _current(self) -> Assignment:
        if self._window.assignment is None:
            raise RunError("the clusterer answered its first call with no assignment")
        return self._window.assignment

    def _current_lanes(self) -> Lanes:
        """Those of the assignment, without clients that have nothing to train: they are no candidates."""
        if self._lanes is None:
            memory, lane = self.parts.memory, self._current().lane
            trains = memory.trains(np.arange(len(lane)), self._view(memory))
            self._lanes = Lanes(np.where(trains, lane, -1), len(self.bank))
        return self._lanes

    def _why_nobody_is_eligible(self) -> str:
        in_lanes = int((self._current().lane >= 0).sum())
        return (
            f"round {self._round.number}: nobody can be selected: of {self._stream.num_clients} clients "
            f"{in_lanes} are in a selection lane, and none of these has samples to train on at data step "
            f"{self._stream.step}; a trace must last as long as round.rounds = {self.settings.rounds}"
        )

    def _labels(self) -> Ints:
        """(N,) the label of the model that each client's newest data belong to, the first of several; -1."""
        labels: Ints = np.append(self.bank.labels, -1)[self._current().members[:, 0]]
        return labels

    def _view(self, part: Part, **news: Any) -> View:
        """What `part` may see now; `news` is as `Window.view` has it."""
        return self._window.view(part, self._questions.ask, self._round.asked, **news)
