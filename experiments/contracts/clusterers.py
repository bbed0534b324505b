"""Contract of clusterers: their assignments, their inference plans, and what they may do at each moment."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from coordinator.assignment import Assignment
from coordinator.checks import check_assigned, check_plan
from coordinator.clusterers import Clusterer
from coordinator.view import View
from emulator.arrays import Bools, Floats
from emulator.messages import InferencePlan, TaskMetric
from experiments.contracts.generators import and_no_global_generator
from experiments.contracts.ports import HELD_STEPS, NUM_LABELS, LabelStream
from experiments.contracts.rounds import Rounds
from experiments.contracts.watched import Watch
from experiments.sameness import left_alone, resumed, same

ROUNDS_PER_STEP = 2
SILENT_STEPS = (None, 1, 2)


@and_no_global_generator
def check_clusterer(make: Callable[[], Clusterer]) -> None:
    """Check a clusterer in federations of several data steps, with and without clients that do not respond.

    In some of them clients begin to hold data in a later step, cease to, and hold data again.

    * The first call of `on_data` returns an assignment; every assignment passes `check_assignment`, in which
      the rows of clients that hold no data do not count.
    * Two fresh clusterers behave the same on equal views, one of them stored and restored all the time.
    * It does not write to the views.
    * Its plans pass `check_plan`, and combine several models only if it declares `serves_several`; `serve`
      sends no client requests, logs no trigger and changes nothing.
    * Its client requests and triggers are such that a run can execute and log them.
    * With `fixed_clusters`, all assignments have so many models, each its own successor.
    * It reads the true concepts and onsets only if it declares `oracle = True`.

    Args:
        make: Makes a fresh clusterer.

    Raises:
        AssertionError: The clusterer breaks a rule, which the message names.
        RunError: The clusterer's state cannot be stored, or changes in an attribute that is not declared.
    """
    for labels in _stories():
        for silent_step in SILENT_STEPS:
            _play(make, labels, silent_step)
    for number, turnover in enumerate(_turnovers()):
        steps, clients = map(np.arange, turnover.shape)
        labels = np.eye(NUM_LABELS)[np.add.outer(steps // 2, clients) % 3]
        for silent_step in SILENT_STEPS[: 2 if number == 0 else 1]:
            _play(make, labels, silent_step, turnover)


def _stories() -> list[Floats]:
    """Several scenarios of drift: in each, the label shares of N clients in S data steps, (S, N, L).

    Two groups that drift and return; one client that leaves all others; two clients; no visible groups; a
    single client.
    """
    eye = np.eye(NUM_LABELS)
    spread = np.random.default_rng(0).dirichlet(np.ones(NUM_LABELS), size=12)
    before, after = [0, 0, 0, 1, 1, 1, 1, 0], [0, 2, 0, 1, 1, 2, 1, 0]
    return [
        eye[[before, after, after, before, [3, 2, 3, 1, 1, 2, 1, 3]]],
        eye[[[0, 0, 0, 0, 0], [0, 0, 3, 0, 0], [0, 0, 3, 0, 0], [3, 3, 3, 3, 3]]],
        eye[[[0, 1], [1, 1], [1, 0], [1, 0]]],
        np.stack([spread, spread[::-1], spread[::-1], np.roll(spread, 5, axis=0)]),
        eye[[[0], [1], [1], [0]]],
    ]


def _turnovers() -> list[Bools]:
    """Several scenarios of clients that come and go: in each, whether samples of N clients arrive, (S, N).

    A client holds them for `HELD_STEPS` steps. Two clients stay, one joins at step 2, one leaves at step 3,
    one is away at that step; all leave as others join; all but one leave, and one of them returns.
    """
    mixed = np.ones((6, 5), dtype=bool)
    mixed[:2, 1], mixed[1:, 2], mixed[1:4, 3] = False, False, False
    replaced = np.zeros((5, 4), dtype=bool)
    replaced[0, :2], replaced[HELD_STEPS:, 2:] = True, True
    deserted = np.zeros((5, 3), dtype=bool)
    deserted[0], deserted[:, 1], deserted[4:, 0] = True, True, True
    return [mixed, replaced, deserted]


def _play(
    make: Callable[[], Clusterer], labels: Floats, silent_step: int | None, turnover: Bools | None = None
) -> None:
    """Run two fresh clusterers side by side in equal federations and compare them.

    The second serves twice as often, and is stored and restored before every call.
    """
    rounds = len(labels) * ROUNDS_PER_STEP
    twins = []
    for clusterer, times in ((make(), 1), (resumed(make), 2)):
        watched = _Watched(clusterer, times)
        stream = LabelStream(labels, ROUNDS_PER_STEP, silent_step, turnover)
        twins.append((watched, Rounds(stream, _online(stream, silent_step), clusterer=watched)))
    left, right = (watched for watched, _ in twins)
    for _ in range(rounds):
        for _, played in twins:
            played.play()
        assert same(left.outputs, right.outputs), "two fresh clusterers behave differently on equal views"
        assert same(left.watch.requests, right.watch.requests), (
            "two fresh clusterers send different requests to equal clients"
        )
        assert same(left.watch.logged, right.watch.logged), "two fresh clusterers log different triggers"
        for watched in (left, right):
            watched.forget()


def _online(stream: LabelStream, silent_step: int | None) -> Bools | None:
    """(slots, N) whether each client is online; None, which stands for always, if there is no silent step.

    Every third client is offline when a data step begins, except before the first round, and client 1 is
    offline when visits begin and afterwards. In the silent step all clients are offline when updates have
    been aggregated, and also when visits begin in its first round.
    """
    if silent_step is None:
        return None
    clients = np.arange(stream.num_clients)
    slots = []
    for round_ in range(stream.num_steps * ROUNDS_PER_STEP):
        step, later = divmod(round_, ROUNDS_PER_STEP)
        silent = step == silent_step
        slots += [
            (clients + step) % 3 != 0 if round_ > 0 and not later else np.ones(len(clients), dtype=bool),
            (clients != 1) & (not silent or later > 0),
            (clients != 1) & (not silent),
        ]
    return np.array(slots)


class _Watched(Clusterer):
    """Wraps a clusterer: checks and records what it returns; passes each call of `serve` on `times` times."""

    oracle = True  # for the federation; the watch checks whether the wrapped part declares it

    def __init__(self, clusterer: Clusterer, times: int) -> None:
        self.clusterer = clusterer
        self.times = times
        self.watch = Watch(clusterer)
        self.outputs: list[Assignment | InferencePlan | None] = []

    def forget(self) -> None:
        """Clear the records of a round."""
        for records in (self.outputs, self.watch.requests, self.watch.logged):
            records.clear()

    @property
    def needs_reports(self) -> bool:
        needs_reports = self.clusterer.needs_reports
        assert isinstance(needs_reports, bool), f"needs_reports = {needs_reports!r}: must be bool"
        return needs_reports

    @property
    def needs(self) -> frozenset[TaskMetric]:
        return self.clusterer.needs

    def models_changed(self, assignment: Assignment) -> None:
        self.clusterer.models_changed(assignment)

    @property
    def watches_data(self) -> bool:
        return self.clusterer.watches_data

    @property
    def follows_participants(self) -> bool:
        return self.clusterer.follows_participants

    @property
    def reports_from(self) -> int:
        return self.clusterer.reports_from

    def on_data(self, view: View) -> Assignment | None:
        assignment = self._moment(self.clusterer.on_data, view)
        assert assignment is not None or view.assignment is not None, (
            "the first call of on_data must return an assignment"
        )
        return assignment

    def on_joined(self, view: View) -> Assignment | None:
        return self._moment(self.clusterer.on_joined, view)

    def on_participants(self, view: View) -> Assignment | None:
        return self._moment(self.clusterer.on_participants, view)

    def on_updates(self, view: View) -> Assignment | None:
        return self._moment(self.clusterer.on_updates, view)

    def serve(self, view: View) -> InferencePlan:
        plans = [self._served(view) for _ in range(self.times)]
        assert all(same(plan, plans[0]) for plan in plans), "two equal calls of serve return different plans"
        self.outputs.append(plans[0])
        return plans[0]

    def _moment(self, moment: Callable[[View], Assignment | None], view: View) -> Assignment | None:
        with left_alone(view):
            assignment = moment(self.watch.over(view))
        if assignment is not None:
            check_assigned(assignment, view, self.clusterer.fixed_clusters)
        self.outputs.append(assignment)
        return assignment

    def _served(self, view: View) -> InferencePlan:
        requests, logged = len(self.watch.requests), len(self.watch.logged)
        with left_alone(view):
            plan = self.clusterer.serve(self.watch.over(view))
        assert len(self.watch.requests) == requests, (
            "serve must not send requests to clients: measuring is not charged"
        )
        assert len(self.watch.logged) == logged, "serve must not log triggers"
        check_plan(
            plan if len(plan.models) != view.num_clients else plan.among(view.holding),
            view.num_clients,
            len(view.model_ids),
        )
        assert self.clusterer.serves_several or plan.used.sum(axis=1).max(initial=0) <= 1, (
            "several models serve a client, and the clusterer does not declare `serves_several`"
        )
        return plan
