"""The procedures of a round: open it, select and dispatch participants, aggregate updates, close it.

`open_round` (the trace advances and the clusterer decides), `select` and `dispatch` (participants are sent
out), `aggregate` (a server step: updates make new models), `close_round` (measure and record). The federation
holds the assignment in force and what the parts see; the numbers of the round, of the dispatch and of the
server step, and every instant, are arguments. All its decisions are those of its parts. Visits that are
abandoned or dropped cost no real compute: tasks are frozen at dispatch, nothing later can change their
outcome, and so they are trained in `aggregate`, when it is known which visits completed. Where clients stop
early, how long a visit lasts is known only after training: then all tasks are trained at dispatch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from operator import attrgetter
from typing import Any

import numpy as np

from coordinator.adaptations import Adaptation
from coordinator.adaptations.none import NoAdaptation
from coordinator.aggregators.fedavg import MODELS_AT_ONCE
from coordinator.assignment import Assignment
from coordinator.federation.bank import ModelBank
from coordinator.federation.base import Base
from coordinator.federation.client_requests import ClientRequests
from coordinator.federation.cohort import Cohort, Picked, SentOut
from coordinator.federation.divergence import Divergence
from coordinator.federation.evaluation.adapting import NO_ADAPTATION, Adapting
from coordinator.federation.evaluation.kept import Own, own_tensors
from coordinator.federation.evaluation.measurement import (
    NOT_MEASURED,
    ClientVectors,
    Evaluate,
    Measurement,
    measure,
    of_evaluation,
    scored_clients,
)
from coordinator.federation.evaluation.personal import IMPERSONAL, Personal, PersonalFigures
from coordinator.federation.evaluation.uses import Use, UseError, Uses
from coordinator.federation.faults import Faults, no_faults
from coordinator.federation.flight import Flight
from coordinator.federation.hearing.client_data import ClientData, Reference
from coordinator.federation.hearing.hearing import Hearing
from coordinator.federation.membership import Membership
from coordinator.federation.method import Parts, RoundSettings
from coordinator.federation.round_progress import RoundProgress
from coordinator.federation.run import Run
from coordinator.federation.selectable import Selectable
from coordinator.federation.solver_state import SolverState
from coordinator.federation.stored_parts import StoredParts
from coordinator.federation.tasks import TaskCosts, relative_samples, task_settings, visit_work
from coordinator.federation.training.arriving import Arriving
from coordinator.federation.training.at_dispatch import AtDispatch
from coordinator.federation.training.pushing import Pushing
from coordinator.federation.training.reading import Reading
from coordinator.federation.training.trained import Trained
from coordinator.federation.training.watching import watch_training
from coordinator.federation.views import Views
from coordinator.view import Part, Samples, ScoreResponse, View
from emulator.arrays import NO_IDS, Bools, Floats, Floats32, Ints
from emulator.counts import samples_of_steps
from emulator.errors import RunError
from emulator.latency import LatencyModel
from emulator.ledger import Ledger
from emulator.messages import (
    BYTES_PER_PARAMETER,
    EndedVisits,
    InferencePlan,
    KeptModels,
    Metric,
    SampleRanges,
    TrainTasks,
    Updates,
    VisitRows,
    Work,
)
from emulator.ports import Availability, Executor, Meter, SampleStream, unmeasured
from emulator.seeding import RandomStreams
from emulator.storage.runlog import RoundRecord
from emulator.storage.state_tree import Tree, as_tree, from_tree
from emulator.storage.stateful import Stateful
from traces.ways import Ways


@dataclass(frozen=True)
class Followed:
    """Visits in flight after models were replaced, by ascending id, and the lane of each; -1: abandoned."""

    visit: Ints
    lane: Ints


class Federation(Stateful):
    """A method, made of `parts`, that trains models with the clients of `stream`.

    State: that of its collaborators and parts, the round's progress, the assignment in force, and instants.
    """

    state_fields = (
        *("_stored", "_progress", "_picked", "_trace_round", "_answered_s", "_stepped_s", "_evaluated_s"),
        "_last_plan",
    )

    def __init__(
        self,
        parts: Parts,
        settings: RoundSettings,
        *,
        stream: SampleStream,
        availability: Availability,
        latency: LatencyModel,
        executor: Executor,
        reference: Reference | None = None,
        measuring: Reference | None = None,
        streams: RandomStreams,
        faults: Faults | None = None,
        ways: Ways | None = None,
        meter: Meter = unmeasured,
        uses: Sequence[Use] = (),
    ) -> None:
        """`ways` are what `executor` reads, if the adaptation chooses in which ways samples are read.

        Besides the adaptation of `parts`, the models have these other `uses`.
        """
        run = Run(
            stream=stream,
            availability=availability,
            latency=latency,
            executor=executor,
            streams=streams,
            faults=faults or no_faults(stream.num_clients, streams),
            settings=settings,
            meter=meter,
            base=Base(stream.num_clients, executor.solver.base),
        )
        self.parts, self.settings = parts, settings
        self.scored_clients = scored_clients(stream.num_clients, settings.evaluate_clients, streams)
        self._stream, self._executor, self._meter = stream, executor, meter
        self._availability, self._latency, self._faults = availability, latency, run.faults
        self._measured = parts.needs
        self._watching = parts.detectors_on("training")
        for part in (*parts.all, *(use.adaptation for use in uses)):
            if not hasattr(part, "streams"):  # else the name is its author's
                part.streams = streams
        for detector in parts.detectors.values():
            detector.open(stream.num_clients)
        aggregator, solver, federates = parts.aggregator, executor.solver, parts.adaptation.federates
        # A local rule that reads what the aggregator sends along, or that remembers what it averages.
        self._has_other_half = bool(aggregator.broadcasts or aggregator.averages)
        self._model_bytes = float(BYTES_PER_PARAMETER * executor.num_parameters)
        self._costs = TaskCosts.of(solver, executor.num_parameters)

        # The collaborators. Each attribute that is `Stateful` is stored under its name; see `_stored` below.
        self.bank = ModelBank(executor.num_parameters)
        self.ledger, self._base = Ledger(), run.base
        num_parameters = executor.num_parameters - solver.statistics
        self._solver_state = SolverState(solver.state, num_parameters, aggregator.averages)
        self._membership = Membership(self.bank, parts.all, self._solver_state)
        self._flight = Flight(self._measured)  # dispatched, until aggregated
        self._at_dispatch = AtDispatch(executor) if solver.stops else None
        self._announced_from = _announced_from(parts, settings, executor)
        hints = " or fewer faults.corrupt" if run.faults.settings.corrupt > 0 else ""
        self._divergence = Divergence(settings, hints)

        def measuring_at(model: Reference | None, meter: Meter = meter) -> ClientData:
            return ClientData(
                stream=stream,
                bank=self.bank,
                executor=executor,
                reference=model,
                streams=streams,
                meter=meter,
            )

        # Requests are for training: without, they are not in the ledger.
        self._requests = ClientRequests(run, self.bank, self.ledger if federates else Ledger())
        self._hearing = Hearing(run, parts, measuring_at(reference), self._requests)
        self._views = Views(
            run,
            bank=self.bank,
            memory=parts.memory,
            reports=self._hearing.reports,
            distance=parts.representation.distance,
            costs=self._costs,
        )
        self.selectable = Selectable(run, self._membership, parts.memory, self._views)
        self._arriving = Arriving(run, parts.detectors_on("arrivals") if federates else {})
        self._pushing = Pushing(
            parts.pacing.push if federates else "none",
            bank=self.bank,
            availability=availability,
            ledger=self.ledger,
            base=self._base,
            model_bytes=self._costs.model_bytes + self._costs.broadcast_bytes,
            whole_bytes=self._model_bytes,
        )
        # Through the reference model of `round.client_distance`; its seconds are evaluation's.
        self._vectors = ClientVectors(settings.client_distance, measuring_at(measuring, unmeasured))
        self._personal = Personal(executor, self._solver_state, self.bank, stream)
        labels: Hearing | None = None
        if parts.of_label_shares is not None:  # for which no reference model is sent
            labels = Hearing(run, parts.of_label_shares, measuring_at(None), self._requests)
        self._adapting, self._ways = self._build_adapting(run, labels, ways, parts.adaptation), ways
        self._reading = self._requests.reading = Reading(
            self._adapting,
            ways,
            stream=stream,
            executor=executor,
            in_flight=[part.first_rows for part in (self._flight, self._at_dispatch) if part is not None],
        )
        own = {name.lstrip("_"): held for name, held in vars(self).items() if isinstance(held, Stateful)}
        self._stored = StoredParts({**own, **parts.by_name, "client distance": settings.client_distance})
        self._uses = Uses(uses, partial(self._build_adapting, run, None, ways), self._stored.parts)

        # What is stored besides.
        self._progress = RoundProgress()
        self._picked: Picked | None = None  # selected, until the selector's requests are served
        self._trace_round = 0  # of the trace's timetable
        # When the last response to the requests of the round's server steps arrives; and when the clients
        # were last evaluated.
        self._answered_s, self._evaluated_s = 0.0, 0.0
        self._stepped_s: float | None = None  # of the last server step, unless requests were made since
        self._last_plan: InferencePlan | None = None  # of the last evaluation of the run
        # What follows from it, or is empty whenever the state is stored.
        self._num_holding = 0  # clients that hold data at the present data step
        self._followed: Followed | None = None  # since `followed` was called

    def _build_adapting(
        self, run: Run, labels: Hearing | None, ways: Ways | None, adaptation: Adaptation
    ) -> Adapting | None:
        """What applies an adaptation, if it is one; `labels` hears shares of labels, if it needs them."""
        if isinstance(adaptation, NoAdaptation):
            return None
        return Adapting(
            adaptation,
            stream=run.stream,
            bank=self.bank,
            executor=run.executor,
            latency=run.latency,
            settings=run.settings,
            participants=self.parts.pacing.cohort.participants,
            scored=self.scored_clients,
            reports=self._hearing.reports,
            hearing=labels,
            ways=ways,
            meter=run.meter,
        )

    def state(self) -> dict[str, Tree]:
        """The state of the federation and its parts, for a checkpoint.

        Raises RunError, naming the part, if a part cannot be stored.
        """
        return {
            **super().state(),
            "_progress": as_tree(self._progress),
            "_picked": as_tree(self._picked),
            "_last_plan": as_tree(self._last_plan),
            "assignment": as_tree(self._membership.assignment),
        }

    def restore(self, state: Mapping[str, Tree]) -> None:
        """Resume from `state`."""
        own = dict(state)
        assignment, picked = own.pop("assignment"), own["_picked"]
        own["_progress"] = from_tree(RoundProgress, own["_progress"])
        own["_picked"] = None if picked is None else from_tree(Picked, picked)
        if (plan := own["_last_plan"]) is not None:
            own["_last_plan"] = from_tree(InferencePlan, plan)
        super().restore(own)
        if assignment is not None:
            self._membership.assignment = from_tree(Assignment, assignment)
            # The state of a stream follows from its round.
            self._stream.advance_to_round(self._trace_round)
            self._num_holding = int(np.count_nonzero(self._stream.holding))

    @property
    def num_clients(self) -> int:
        """N, the number of clients."""
        return self._stream.num_clients

    # -- open a round: data arrived ------------------------------------------------------------------------

    def open_round(self, round_: int, now_s: float) -> float:
        """Advance the trace, hear the clients, and let the clusterer decide.

        Returns the instant of the slowest response. That clients register takes no virtual time.
        """
        self._requests.open_moment(now_s)
        self._stepped_s = None
        # Step 1: clients that checked in since the last opening report the data that they held then; after
        # that, the trace advances to the round's data step.
        hearing, adapting = self._hearing, self._adapting
        checked_in = hearing.check_ins(round_, now_s)
        before = None if adapting is None else adapting.before_opening(round_, now_s)
        others = self._uses.before_opening(round_, now_s)
        step, registering = self._stream.step, self._membership.assignment is None
        held_before = self._stream.holding
        self._trace_round = self.settings.trace_round(round_, now_s)
        changed = self._stream.advance_to_round(self._trace_round)
        holding = self._stream.holding
        if self._stream.step != step:
            self._num_holding = int(np.count_nonzero(holding))
            self._membership.data_changed(holding)
        joined, left = (NO_IDS, NO_IDS) if registering else _turnover(held_before, holding)
        if self._executor.solver.state:
            self._solver_state.data_changed(changed)
            self._solver_state.clients_left(left)
            self._flight.data_changed(changed, left)
        if len(left) > 0:
            self._forget(left)
        self._progress.members_changed |= len(joined) + len(left) > 0
        if len(changed) > 0:
            hearing.data_changed(changed, holding, left)
        # Step 2: clients with new data check it, and report a drift: those online, or all if `round.hear` is
        # "everyone". All clients that hold data register before the first round, later those that joined.
        if registering:
            heard = checked_in.and_then(hearing.register_first(round_))
        else:
            registered = hearing.register(round_, joined)
            heard = checked_in.among(holding, changed).and_then(registered)
            heard = heard.and_then(hearing.new_data(round_, now_s, holding, joined))
        self._progress.heard(heard, detection=self.settings.log_detection)
        if adapting is not None and before is not None:
            self._progress.heard(adapting.opens(round_, now_s, before, changed, joined, left))
        if others:
            self._uses.opens(round_, now_s, others, changed, joined, left)
        if registering:  # this precedes the emulation: it costs bytes, and no virtual time
            self._requests.open_moment(now_s)
        # Step 3: the clusterer places the clients that joined, and decides which models exist and who belongs
        # to which.
        clusterer, representation = self.parts.clusterer, self.parts.representation
        news: dict[str, Any] = {
            "drift": heard.drift,
            "changed": heard.changed,
            "rebased": heard.reported > 0 and representation.at_present_models,
            "joined": joined,
        }
        if len(joined) > 0:
            with self._meter("cluster_s"):
                assigned = clusterer.on_joined(self._view(clusterer, round_, **news))
            self._apply(assigned, joined)
        with self._meter("cluster_s"):
            assigned = clusterer.on_data(self._view(clusterer, round_, **news, left=left))
        self._apply(assigned, joined)
        # Step 4: the memory claims the arrivals for the models that their clients belong to now.
        self._claim(round_)
        return now_s + self._requests.slowest_s

    def _forget(self, left: Ints) -> None:
        """Let detectors forget the clients that have left."""
        self._arriving.forget(left)
        for detector in self.parts.detectors.values():
            detector.forget(left)

    # -- dispatch: participants are selected and sent out --------------------------------------------------

    def select(
        self, round_: int, dispatch: int, wanted: Ints, now_s: float, busy: Bools | None = None
    ) -> float | None:
        """Select `wanted` (lanes,) participants, for the dispatch of that number.

        While visits are in flight, `busy` (N,) are their clients: then whoever is idle and online will do.
        Returns the instant at which they can be dispatched, after the slowest response to the selector's
        requests; None if too few clients are online. Raises RunError if no client can be selected.
        """
        # Step 1: candidates are the idle clients of these lanes that have something to train and are online.
        candidates = self.selectable.candidates(round_, wanted, now_s, busy)
        if candidates is None:
            return None
        # Step 2: the selector chooses participants among them.
        self._requests.open_moment(now_s)
        self._stepped_s = None
        selector = self.parts.selector
        clients = selector.select(candidates, wanted, self._view(selector, round_, dispatch))
        lanes = self.selectable.lanes(round_).lane_of_client[clients]
        self._picked = Picked(clients, lanes, now_s)
        return now_s + self._requests.slowest_s

    def dispatch(self, round_: int, dispatch: int, first_visit: int, now_s: float) -> SentOut:
        """Begin the visits of the selected participants, with ids from `first_visit` on.

        The number of the `dispatch` is in the keys of their random streams and faults.

        A client that went offline since it was selected counts as offline from the beginning of its visit.
        """
        picked = self._picked
        assert picked is not None, "dispatch follows select"
        self._picked = None
        clients = picked.clients
        self._requests.open_moment(now_s)
        self._stepped_s = None
        # Step 3: the clusterer may still move participants.
        clusterer = self.parts.clusterer
        with self._meter("cluster_s"):
            assigned = clusterer.on_participants(
                self._view(clusterer, round_, dispatch, participants=clients)
            )
        lanes = picked.lanes
        if assigned is not None:
            num_models = len(self.bank)
            self._apply(assigned)
            self._claim(round_, dispatch)
            if len(self.bank) != num_models and not self.parts.pacing.whole_rounds:
                lanes = np.maximum(self._membership.in_force.lane_of_client[clients], 0)
        # Step 4: their tasks are frozen: models, samples, settings, solver state and faults; and
        # step 5: the latency model and the availability say when each visit ends.
        offline_s = self._availability.next_offline_s(clients, now_s)
        if now_s > picked.at_s:
            offline_s = np.where(self._availability.online(clients, now_s), offline_s, now_s)
        cohort = self._frozen(round_, dispatch, clients, first_visit, now_s, offline_s)
        self._flight.add(cohort)
        if self._progress.dispatched_s is None:
            self._progress.dispatched_s = now_s
        ends = cohort.ends(self.parts.pacing.timeout_s)
        if cohort.base is not None:
            # Noted now, and not as it lands: the client may be sent out again before that.
            self._base.lost(clients[cohort.base_lost(ends.time_s)])
        return SentOut(clients, lanes, ends)

    def _frozen(
        self, round_: int, dispatch: int, clients: Ints, first_visit: int, now_s: float, offline_s: Floats
    ) -> Cohort:
        """The cohort of `clients` (ascending): their frozen tasks, and the costs and ends of their visits.

        They are offline from `offline_s` (clients,) on.
        """
        memory, schedules = self.parts.memory, self.parts.schedules
        view = self._view(memory, round_, dispatch, participants=clients)
        client, row, samples = memory.rows(clients, view)
        of_visit = visit = first_visit + np.arange(len(clients))
        row_of_visit = clients.searchsorted(client)
        if len(client) != len(clients) or (client != clients).any():
            of_visit = visit[row_of_visit]  # of each task
        model = self.bank.ids[row]
        samples, choosing = self._reading.of_tasks(round_, client, self.bank.parameters, row, samples)
        news, checked = self._checked(client, row, samples) if self._arriving.is_watched else ({}, None)
        views = [self._view(part, round_, dispatch, participants=clients, **news) for part in schedules]
        solver = self._executor.solver
        settings = task_settings(self.settings, schedules, client, row, samples, views, solver)
        if solver.reads_samples:
            settings["relative_samples"] = relative_samples(client, view)
        tasks = TrainTasks(
            client=client,
            model=model,
            visit=of_visit,
            samples=samples,
            settings=settings,
            dispatch=client * 0 + dispatch,
            step=client * 0 + self._stream.step,
            state=self._solver_state.read(client, model, lambda new: self.bank.parameters[row[new]]),
            measure=self._measured,
            broadcast=self._broadcast(round_, dispatch) if self._has_other_half else {},
        )
        trained, predicted = self._samples_of(dispatch, len(clients), tasks, row)
        if checked is not None:
            predicted = checked if predicted is None else predicted + checked
        downloaded = self._requests.hold(client, row)
        payload = visit_work(row_of_visit, trained, predicted, downloaded, len(clients), self._costs)
        if choosing is not None:
            choosing = Work.of(len(clients)).plus(choosing, row_of_visit)
            payload = payload.plus(choosing, np.arange(len(clients)))
        base: Floats | None = None
        if self._base.num_bytes > 0:
            base = self._base.sent(clients)
            payload = replace(payload, download_bytes=payload.download_bytes + base)
        faults = self._faults.visits(dispatch, clients, payload)
        requests_s, phases = self._requests.busy_s(clients), self._latency.phases(clients, faults.work)
        if faults.factors is not None:
            phases = phases.times(*faults.factors)
        sent_before: Floats | None = None
        if self._pushing.pushes:
            sent_before = self._pushing.held_shares(row_of_visit, client, row, downloaded, len(clients))
        start_s, busy_s = requests_s * 0 + now_s, requests_s + phases.total_s
        crash_s, due_s = faults.crash_s(now_s, busy_s), start_s + requests_s + phases.total_s
        drop_out_s = self._latency.drop_out_s(clients, now_s, due_s, offline_s, self._availability)
        return Cohort(
            visit=visit,
            clients=clients,
            dispatch=visit * 0 + dispatch,
            start_s=start_s,
            requests_s=requests_s,
            crash_s=crash_s,
            gone_s=np.minimum(drop_out_s, crash_s),
            sent_before=sent_before,
            base=base,
            ways=choosing,
            payload=None if faults.work is payload else payload,
            work=faults.work,
            phases=phases,
            tasks=tasks,
            models=self.bank.parameters,
            start=row,
            version=self.bank.versions[row],
            label=self.bank.labels[row],
            row=row,
            bound=row >= 0,  # all are
            stayed=row >= 0,
        )

    def _checked(self, client: Ints, row: Ints, samples: SampleRanges) -> tuple[dict[str, Any], Floats]:
        """What the detectors that watch arrivals find, as news for schedules, at the dispatch of n tasks.

        These are of `client` (n,), ascending, and start from `row` (n,) of the bank; of a client's several
        models it scores the one that it belongs to first, or else the lowest, and reads what has arrived as
        that task reads its `samples`. Also returns (n,) the samples that each task predicts for that.
        """
        order = np.lexsort((row != self._membership.in_force.members[client, 0], client))
        clients, first = np.unique(client[order], return_index=True)
        first = order[first]
        shift = self._reading.shift_of(samples)[first]
        checked = self._arriving.check(clients, row[first], self.bank.parameters, shift)
        if self.settings.log_detection:
            self._progress.detected("arrivals", checked.clients, checked.drift)
        predicted = np.zeros(len(client))
        predicted[first[np.searchsorted(clients, checked.clients)]] = checked.samples
        return {"drift": checked.drift, "changed": checked.clients}, predicted

    def _samples_of(
        self, dispatch: int, visits: int, tasks: TrainTasks, row: Ints
    ) -> tuple[Floats, Floats | None]:
        """(n,) the samples that each of `tasks` trains on, once for each use, and those that it predicts.

        If the solver stops, the tasks are trained for that, from the models in rows `row` (n,) of the bank;
        they are those of so many `visits`.
        """
        settings = tasks.settings
        if self._at_dispatch is None:
            steps, batch_size, last = settings["local_steps"], settings["batch_size"], self.settings.last
            if last == "filled":  # whatever the clients hold
                return steps * batch_size, None
            return samples_of_steps(steps, tasks.samples.counts(), batch_size, last), None
        with self._meter("train_s"):
            tampered, models = self._tampered(tasks), self.bank.parameters
            updates = self._at_dispatch.train(dispatch, visits, tampered, models, row)
        metrics = updates.metrics
        held_out = metrics["held_out"]
        self._progress.stopped(updates.client, metrics["epochs"], held_out, updates.num_samples)
        return metrics["trained_samples"], metrics["forward_samples"]

    def _tampered(self, tasks: TrainTasks) -> TrainTasks:
        """The tasks with what happens to their updates before they arrive."""
        tampering = self._faults.tampering(tasks.dispatch, tasks.client, tasks.model)
        return replace(tasks, tampering=tampering) if tampering else tasks

    def _broadcast(self, round_: int, dispatch: int) -> dict[str, Floats32]:
        """What the aggregator sends along with each model, by name (M, P)."""
        aggregator = self.parts.aggregator
        self._forget_untrained(round_, dispatch)
        view = self._view(aggregator, round_, dispatch, remembered=self._remembered())
        return dict(aggregator.broadcast(view.of_parameters()))

    def _remembered(self) -> dict[str, Floats]:
        """By slot that the aggregator averages (M, width) its mean over the clients of each model."""
        return self._solver_state.means(self.bank.ids, self._membership.in_force.members)

    def _forget_untrained(self, round_: int, dispatch: int) -> None:
        """Delete what clients remember of models that they neither belong to nor train any more."""
        client, row = self._solver_state.strays(self.bank.ids, self._membership.in_force.members)
        if len(client) == 0:
            return
        memory, clients = self.parts.memory, np.unique(client)
        view = self._view(memory, round_, dispatch, participants=clients)
        trains, model, samples = memory.rows(clients, view)
        trained = (trains * len(self.bank) + model)[samples.counts() > 0]  # a number for each pair
        ended = ~np.isin(client * len(self.bank) + row, trained)
        self._solver_state.drop(client[ended], self.bank.ids[row[ended]])

    # -- aggregate: updates came back --------------------------------------------------------------------

    def aggregate(
        self, round_: int, step: int, ended: EndedVisits, now_s: float, out: Ints = NO_IDS
    ) -> VisitRows | None:
        """Make the server step of that number from `ended` visits, those of them that completed.

        `out` (n,) are the clients whose visits go on. Returns the ended visits for the log, if they are
        logged.
        """
        self._requests.open_moment(now_s)
        self._stepped_s = now_s
        # Step 1: the bytes that crossed the wire are charged, unless there is no federation to pay for.
        cohort, logged = self._landed(round_, ended)
        # Step 2: the tasks of completed visits are trained, as one wave.
        self._progress.steps += 1
        federates = self.parts.adaptation.federates
        trained = self._trained(round_, step, cohort, ended) if federates else None
        if self._at_dispatch is not None:
            self._at_dispatch.over(cohort.dispatch)
        updates = None if trained is None else trained.updates
        news = {"participants": cohort.clients, "updates": updates}
        # Step 3: clients remember what they learned, of which an aggregator may read the mean; the aggregator
        # makes the new models, which the bank publishes.
        if trained is not None and updates is not None:
            if "trained" in self.settings.accuracies:
                self._measure_trained(round_, trained, cohort.models, now_s)
            if updates.state:
                valid = trained.valid(self._membership.in_force.members)
                forgotten = self._solver_state.commit(updates, round_, valid)
                self._progress.forgotten += self._divergence.forgotten(round_, forgotten)
            seen: dict[str, Any] = {"received": cohort.models, "started": trained.start}
            if self._has_other_half:
                seen["remembered"] = self._remembered()
            updated = self._publish(
                round_, trained, self._view(self.parts.aggregator, round_, step, **news, **seen)
            )
            if self._pushing.pushes:
                self._pushing.published(updated, self._membership.in_force.members, out, now_s)
        # Step 4: the detectors that watch training see its batches, the selector learns how the visits ended,
        # and the clusterer sees the updates.
        drift = self._watch(trained) if self._watching and trained is not None else {}
        self.parts.selector.feedback(ended, updates)
        for schedule in self.parts.schedules:
            schedule.feedback(ended)
        if updates is not None:
            clusterer = self.parts.clusterer
            with self._meter("cluster_s"):
                assigned = clusterer.on_updates(self._view(clusterer, round_, step, drift=drift, **news))
            self._apply(assigned)
        self._answered_s = max(self._answered_s, now_s + self._requests.slowest_s)
        return logged

    def _watch(self, trained: Trained) -> dict[str, Bools]:
        """What the detectors that watch training flag, by name (N,)."""
        with self._meter("cluster_s"):
            decided, drift = watch_training(self._watching, trained, self._stream.num_clients)
        if self.settings.log_detection:
            self._progress.detected("training", decided, drift)
        return drift

    def abandon(self, round_: int, ended: EndedVisits, now_s: float) -> VisitRows | None:
        """Charge the visits that end with the run; returns them for the log, if they are logged."""
        if len(ended.visit) == 0:
            return None
        cohort, logged = self._landed(round_, ended)
        if self._at_dispatch is not None:
            self._at_dispatch.over(cohort.dispatch)
        return logged

    def _landed(self, round_: int, ended: EndedVisits) -> tuple[Cohort, VisitRows | None]:
        """Take `ended` visits out of the flight, charge and record them; also returns them for the log."""
        cohort, whole = self._flight.take(ended.visit), self.parts.pacing.whole_rounds
        down, up, payload = cohort.moved_bytes(ended, self.parts.pacing.max_staleness)
        models = payload
        if cohort.base is not None:
            models = payload - cohort.moved_base(ended, self.parts.pacing.max_staleness)
            cancelled = ended.end_s < cohort.ends(self.parts.pacing.timeout_s).time_s
            self._base.lost(cohort.clients[cohort.base_lost(ended.end_s) & cancelled])
        if not self.parts.adaptation.federates:
            down = up = payload = models = np.zeros(len(ended.visit))
        self._progress.landed(ended, cohort.crashed(ended), whole_round=whole)
        logged: VisitRows | None = None
        if self.settings.log_visits:
            logged = cohort.logged(round_, ended, down, up, payload, whole_rounds=whole)
        if cohort.ways is not None and self.parts.adaptation.federates:
            told, heard = cohort.moved_ways(ended, self.parts.pacing.max_staleness)
            down, up, models = down - told, up - heard, models - told - heard
            self.ledger.charge_control(told, heard)
        self.ledger.charge_training(down, up, float(models.sum()) / self._model_bytes)
        return cohort, logged

    def _trained(self, round_: int, step: int, cohort: Cohort, ended: EndedVisits) -> Trained | None:
        """The usable updates of the completed visits; None if no client has one."""
        rows, visits = cohort.absorbable(ended)
        tasks, start = cohort.tasks.take(rows), cohort.start[rows]
        num_samples = tasks.samples.counts()
        if not num_samples.any():
            return None
        model, staleness = self.bank.ids[cohort.row[rows]], ended.staleness[visits]
        aggregator, weights = self.parts.aggregator, None
        # With many models their updates are summed some at a time.
        if len(rows) >= self._announced_from and len(self.bank) <= MODELS_AT_ONCE:
            view = self._view(aggregator, round_, step, staleness=staleness)
            weights = aggregator.weights(model, num_samples, view.of_parameters())
        with self._meter("train_s"):
            if self._at_dispatch is None:
                trained = self._executor.train(self._tampered(tasks), cohort.models, start, weights)
            else:
                trained = self._at_dispatch.take(tasks)
        if not self.parts.pacing.whole_rounds:
            trained = trained.absorbed(model, staleness)
        usable, rejected = self._divergence.usable(round_, trained)
        self._progress.rejected += rejected
        found = Trained(
            trained,
            start,
            row=cohort.row[rows],
            bound=cohort.bound[rows],
            stayed=cohort.stayed[rows],
            same=model == tasks.model,
            samples=tasks.samples,
        )
        if rejected:
            found = found.take(usable.nonzero()[0])
        return found if (found.updates.num_samples > 0).any() else None

    def _publish(self, round_: int, trained: Trained, view: View) -> Bools:
        """Make the models of the next version from updates, as the aggregator with this `view` decides.

        The aggregator makes their parameters; statistics of batch norm are averaged here, by samples. Returns
        (M,) which models have one.
        """
        updates = trained.updates
        with np.errstate(over="ignore", invalid="ignore"):  # `refuse` raises if a model is not finite
            models = self.parts.aggregator.aggregate(updates, view.of_parameters())
            if self._executor.solver.statistics > 0:
                models = np.hstack([models, trained.mean_statistics(view.models[:, models.shape[1] :])])
            self._progress.trained(updates.metrics["loss"][updates.num_samples > 0])
        if noted := self.parts.aggregator.noted:
            self._progress.note(noted)
        self._divergence.refuse(round_, models, self._progress.train_loss or 0.0)
        updated = np.zeros(int(self.bank.ids.max()) + 1, dtype=bool)  # by id
        updated[updates.model] = True
        rows: Bools = updated[self.bank.ids]
        self.bank.publish(models, rows)
        return rows

    def close_round(
        self,
        round_: int,
        opened_s: float,
        now_s: float,
        *,
        in_flight: int | None = None,
        is_last: bool = False,
    ) -> tuple[RoundRecord, float]:
        """End the round; returns its record, and the instant at which the next round can open.

        That is when the last client has responded to the requests made since the updates were aggregated.
        `in_flight` are the visits that go on, None if there are none between rounds.
        """
        if self._stepped_s != now_s:  # other requests were made since the last server step
            self._requests.open_moment(now_s)
        self._divergence.round_closes(round_)
        self._hearing.round_closed(np.array(sorted(set(self._progress.completed)), dtype=np.int64))
        # Step 5: the clients are evaluated, in rounds that are due for it, and the round is recorded.
        serving: Callable[[], InferencePlan] = partial(self._serving, round_)
        if self._uses.all:  # which ask, too
            serving = cache(serving)
        measured, personal = self._measure(round_, now_s, is_last, serving)
        evaluated = measured is not NOT_MEASURED
        adaptation = NO_ADAPTATION
        if self._adapting is not None:
            adaptation = self._adapting.round_closes(round_, serving, evaluated)
        settings = self.settings
        record = partial(
            self._progress.record,
            round_,
            opened_s,
            now_s,
            step=self._stream.step,
            clusters=self.bank.labels,
            members=self._membership.labels() if self._progress.members_changed else None,
            personal=personal,
            ledger=self.ledger,
            num_holding=self._num_holding,
            num_clients=self._stream.num_clients,
            in_flight=in_flight,
            clipped=self._clipped() if settings.log_detection else None,
        )
        for use in self._uses.all:
            if not use.goes_on:
                continue
            with use.alone():
                others = measured
                if evaluated:
                    others = replace(measured, **self._evaluated(use, round_, serving(), is_last))
                figures = NO_ADAPTATION
                if use.adapting is not None:
                    figures = use.adapting.round_closes(round_, serving, evaluated)
                use.tell(record(measured=others, adaptation=figures))
        closed = record(measured=measured, adaptation=adaptation)
        self._progress = RoundProgress()
        self._requests.close_round()
        opens_s = max(self._answered_s, now_s + self._requests.slowest_s)
        return closed, opens_s

    def _clipped(self) -> dict[str, int]:
        """The values that each detector has clipped so far, by name."""
        return {name: detector.clipped for name, detector in self.parts.detectors.items()}

    def _is_due(self, round_: int, now_s: float) -> bool:
        """Whether a round that closes now, and is not the last one, is evaluated."""
        settings = self.settings
        if settings.evaluate_every_s is None:
            return (round_ + 1) % settings.evaluate_every == 0
        newest_s = now_s - math.fmod(now_s, settings.evaluate_every_s)  # the last multiple up to now
        return newest_s > self._evaluated_s

    def _measure_trained(self, round_: int, trained: Trained, models: Floats32, now_s: float) -> None:
        """Measure the participants with what they have just trained, if the round may be evaluated."""
        settings = self.settings
        may_be_last = settings.seconds_per_round is not None or round_ + 1 == settings.rounds
        if may_be_last or self._is_due(round_, now_s):
            first = trained.first(self._membership.in_force.members)
            with self._meter("evaluate_s"):
                shift = self._reading.shift_of(trained.samples)
                self._progress.trained_accuracy = self._personal.trained_accuracy(
                    trained.updates, models, trained.start, first, self.scored_clients, shift
                )

    def _measure(
        self, round_: int, now_s: float, is_last: bool, serving: Callable[[], InferencePlan]
    ) -> tuple[Measurement, PersonalFigures]:
        """The evaluation of the clients; NOT_MEASURED if this round is not one that is evaluated."""
        settings = self.settings
        if not (is_last or self._is_due(round_, now_s)):
            self._progress.trained_accuracy = None
            return NOT_MEASURED, IMPERSONAL
        self._evaluated_s = now_s
        tested = self._stream.held(self.scored_clients, "test").counts() > 0
        if not (tested & self._stream.holding[self.scored_clients]).any():
            raise RunError(
                f"round {round_}: no scored client holds test samples any more at data step "
                f"{self._stream.step}; a trace must last as long as round.rounds = {settings.rounds}"
            )
        plan = serving()
        self._last_plan = plan if is_last else None
        evaluate: Evaluate | None = None
        by_concept = settings.log_model_accuracy and self.parts.adaptation.federates
        if self._adapting is not None:
            evaluate = partial(self._adapting.evaluate, round_, plan, is_last=is_last)
        try:
            measured, evaluation = measure(
                self._executor,
                self.bank,
                plan,
                self._stream,
                self._vectors,
                self.scored_clients,
                evaluate=evaluate,
                log_clients=settings.log_client_accuracy,
                pooled="pooled" in settings.accuracies,
                score=partial(self._reading.score, round_ + 1) if by_concept else None,
                meter=self._meter,
            )
            self._divergence.refuse(round_, measured.loss or 0.0)
        except RunError as error:
            raise self._ends(error, round_, plan) from error
        if not self._executor.solver.personal:
            return measured, IMPERSONAL
        clients = self.scored_clients
        with self._meter("evaluate_s"):
            return measured, self._personal.figures(round_, plan.take(clients), clients, evaluation)

    def _evaluated(self, use: Use, round_: int, plan: InferencePlan, is_last: bool) -> dict[str, Any]:
        """What the evaluation of the clients in another use says; RunError if a loss is not finite."""
        clients, adapting = self.scored_clients, use.adapting
        samples = self._stream.held(clients, "test")
        with self._meter("evaluate_s"):
            if adapting is None:
                evaluation = self._executor.evaluate(self.bank.parameters, plan.take(clients), samples)
            else:
                evaluation = adapting.evaluate(round_, plan, clients, samples, is_last=is_last)
        found = of_evaluation(
            evaluation,
            samples,
            plan.take(clients).first(),
            self._stream,
            clients,
            log_clients=self.settings.log_client_accuracy,
            pooled="pooled" in self.settings.accuracies,
        )
        self._divergence.refuse(round_, found["loss"])
        return found

    def _ends(self, error: RunError, round_: int, plan: InferencePlan) -> RunError:
        """The `error` of the evaluation of a round: of this use alone, if there are others.

        The others are evaluated, so that those that end at this round, too, are known.
        """
        if not self._uses.all:
            return error
        for use in filter(attrgetter("goes_on"), self._uses.all):
            with use.alone():
                self._evaluated(use, round_, plan, is_last=False)
        return UseError(str(error))

    def _serving(self, round_: int) -> InferencePlan:
        """Which models serve the clients that hold data."""
        with self._meter("cluster_s"):
            plan = self.parts.clusterer.serve(self._view(self.parts.clusterer, round_))
            return plan.among(self._stream.holding)

    def kept_models(self, most_bytes: float, use: Use | None = None) -> KeptModels:
        """The models of the run, or of another `use` of them, after its last round.

        With what clients have of their own, if it fits.

        It fits if it takes at most `most_bytes` together with the models. Nothing is exchanged with other
        ranks, and no client is asked.
        """
        plan, bank = self._last_plan, self.bank
        parts: Iterable[Own] = ()
        assert plan is not None, "the last round is evaluated"
        adapting = self._adapting if use is None else use.adapting
        if adapting is not None and adapting.kept is not None:
            clients, models = adapting.kept
            parts = [Own(clients, plan.first()[clients], models)]
        elif self._executor.solver.personal:
            parts = self._personal.own(plan)
        labels = np.where(plan.used, np.append(bank.labels, -1)[plan.models], -1)
        left = most_bytes - bank.parameters.nbytes
        own = own_tensors(parts, bank.parameters, self._executor.layout, left)
        common = self.parts.adaptation.federates
        return KeptModels(bank.labels, bank.parameters, labels, plan.weights, plan.combine, common, *own)

    # -- shared --------------------------------------------------------------------------------------------

    def _apply(self, assignment: Assignment | None, joined: Ints = NO_IDS) -> None:
        """Put `assignment` in force; None changes nothing, and is a RunError at the first call.

        Clients that have `joined` at this opening do not count as moved.
        """
        if assignment is not None:
            if len(self._flight) > 0 and assignment.changes_models:
                visit, client, row = self._flight.follow(assignment.successor)
                lane = row if assignment.lanes is None else np.maximum(assignment.lanes[client], 0)
                self._followed = Followed(visit, np.where(row < 0, -1, lane))
            moved = self._membership.apply(assignment, self._stream.holding, joined)
            if self._picked is not None and assignment.changes_models:
                # By a server step of other visits, between selection and dispatch.
                lanes = self._membership.in_force.lane_of_client[self._picked.clients]
                self._picked = replace(self._picked, lanes=np.maximum(lanes, 0))
            self._progress.assigned(assignment, moved)
        elif self._membership.assignment is None:
            raise RunError("the clusterer returned no assignment from its first call")

    def followed(self) -> Followed | None:
        """What became of the visits in flight as models were replaced, since the last call; None: nothing."""
        followed, self._followed = self._followed, None
        return followed

    def _claim(self, round_: int, dispatch: int | None = None) -> None:
        """Let the memory claim the newest arrivals for the present members."""
        self.parts.memory.claim(self._view(self.parts.memory, round_, dispatch))

    def _view(self, part: Part, round_: int, moment: int | None = None, **news: Any) -> View:
        """The view of `part` now; `news` are keyword arguments of `Views.view`.

        `moment` is the number of the dispatch or of the server step; None: of the round, as it is opened.
        """
        assignment = self._membership.assignment

        def score(
            clients: Ints,
            models: Ints,
            samples: Samples,
            metrics: frozenset[Metric] = frozenset({"correct"}),
            limit: int | None = None,
        ) -> ScoreResponse:
            def resolve(responding: Ints) -> SampleRanges:
                return self._views.samples_of(samples, responding, round_, assignment)

            return self._requests.score(round_, clients, models, resolve, metrics, limit)

        def train(clients: Ints, start: Floats32, steps: int) -> Updates:
            def resolve(responding: Ints) -> SampleRanges:
                return self._stream.held(responding, "train")

            trained = self._requests.train(round_, self._stream.step, clients, start, steps, resolve)
            return self._divergence.requested(round_, trained)

        log_trigger = self._progress.log_trigger
        return self._views.view(part, round_, assignment, score, train, log_trigger, moment=moment, **news)


def _announced_from(parts: Parts, settings: RoundSettings, executor: Executor) -> float:
    """How many tasks a wave has at least whose weights the executor is told; inf: updates are read.

    Few numbers an executor may as well keep.
    """
    reads = "trained" in settings.accuracies or any(part.reads_updates for part in parts.all)
    numbers = getattr(executor, "weights_from", 0)
    return math.inf if reads or executor.solver.stops else numbers / max(executor.num_parameters, 1)


def _turnover(before: Bools, holding: Bools) -> tuple[Ints, Ints]:
    """Ids, ascending, of the clients that hold data now (N,), but did not `before` (N,), and the converse."""
    if holding is before:
        return NO_IDS, NO_IDS
    return np.flatnonzero(holding & ~before), np.flatnonzero(before & ~holding)
