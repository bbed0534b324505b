"""Contract of selectors: single selections, and whole stories of rounds in the real federation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from coordinator.assignment import Assignment
from coordinator.candidates import Candidates
from coordinator.selectors import Selector
from coordinator.view import View
from emulator.arrays import Bools, Floats, Floats32, Ints
from emulator.messages import TASK_METRICS, EndedVisits, TaskMetric, Updates
from experiments.contracts.generators import and_no_global_generator
from experiments.contracts.ports import NUM_LABELS, LabelStream, initial
from experiments.contracts.rounds import SLOTS, Rounds, Scripted
from experiments.contracts.watched import Watch
from experiments.sameness import left_alone, resumed, same

LANES = (np.array([1, 4, 5, 9, 12]), np.array([0, 2]), np.zeros(0, dtype=np.int64), np.array([7]))
"""The clients of each lane; client 5 is offline."""

ROUNDS_PER_STEP = 2


@and_no_global_generator
def check_selector(make: Callable[[], Selector]) -> None:
    """Check a selector in a round of several lanes with one client offline, and in stories of several rounds.

    * Participants are ascending, distinct and online candidates; no lane has more of them than wanted.
    * Two fresh selectors choose the same participants on equal views, and send the same requests, one of them
      stored and restored before every call.
    * It does not write to its arguments, those of `feedback` included.
    * It reads the true concepts only if it declares `oracle = True`.

    The stories have a single client, clients with equal data, one client online, clients that come and go,
    and lanes that change; visits complete, drop out and are abandoned, in one round all of them drop out.

    Args:
        make: Makes a fresh selector.

    Raises:
        AssertionError: The selector breaks a rule, which the message names.
        RunError: The selector chooses nobody where participants are wanted, or its state cannot be stored, or
            changes in an attribute that is not declared.
    """
    for wanted in ([2, 2, 2, 1], [9, 0, 1, 1], [0, 1, 0, 0]):
        _select_once(make, np.array(wanted))
    for story in _stories():
        _play(make, story)


def _select_once(make: Callable[[], Selector], wanted: Ints) -> None:
    """Let two fresh selectors select the `wanted` (lanes,) participants of `LANES`, and compare them."""
    lanes = np.full(13, -1)
    for number, ids in enumerate(LANES):
        lanes[ids] = number
    start = Assignment.fresh(np.maximum(lanes, 0), len(LANES), _starts(len(LANES)), lanes=lanes)
    labels = np.full((1, 13, NUM_LABELS), 1 / NUM_LABELS)
    outputs = []
    for selector in (make(), resumed(make)):
        watched = _Watched(selector)
        online = np.arange(13)[None] != 5
        rounds = Rounds(LabelStream(labels), online, clusterer=Scripted({0: start}), selector=watched)
        rounds.open()
        rounds.federation.select(0, 0, wanted, 0.0)
        assert 5 not in watched.chosen[0], "client 5 is offline and must not be chosen"
        outputs.append(watched.chosen)
    assert same(*outputs), "two fresh selectors behave differently on equal views"


@dataclass(frozen=True)
class _Story:
    """A story of S data steps: the label shares (S, N, L), who is online (slots, N), and the assignments.

    `turnover` (S, N): whether samples of each client arrive at each step; None: of all.
    """

    labels: Floats
    assignments: dict[int, Assignment]
    online: Bools | None = None
    turnover: Bools | None = None


def _stories() -> Iterator[_Story]:
    """The stories that `check_selector` tells of."""
    eye, steps = np.eye(NUM_LABELS), 3
    alone = {0: Assignment.fresh(np.zeros(1, dtype=np.int64), 1, initial(0))}
    yield _Story(np.tile(eye[:1], (steps, 1, 1)), alone)
    together = {0: Assignment.fresh(np.zeros(6, dtype=np.int64), 1, initial(0))}
    equal = np.full((steps, 6, NUM_LABELS), 1 / NUM_LABELS)
    yield _Story(equal, together)
    yield _Story(equal, together, online=np.arange(6)[None] == 4)
    present = np.ones((2 * steps * SLOTS, 6), dtype=bool)
    present[SLOTS + 1] = False  # all visits of round 1 drop out: `feedback` gets no updates
    yield _Story(equal, together, online=present)
    turnover = np.ones((6, 6), dtype=bool)
    turnover[:4, 1], turnover[1:, 2], turnover[1:5, 3] = False, False, False
    yield _Story(np.tile(equal, (2, 1, 1)), together, turnover=turnover)
    # Three clusters, the second of them empty, become two and then four; clients go offline in their visits.
    three = np.array([0, 0, 2, 2, 0, 2, 0, 0, 2, 2, 0, 0])
    two, four = np.arange(12) % 2, np.array([0, 0, 3, 1, 2, 2, 3, 3, 1, 0, 0, 2])
    spread = np.random.default_rng(0).dirichlet(np.ones(NUM_LABELS), size=12)
    online = np.ones((2 * steps * SLOTS, 12), dtype=bool)
    online[1::SLOTS, [1, 6]], online[SLOTS::SLOTS, [3, 8]] = False, False
    yield _Story(
        np.stack([spread, spread[::-1], np.roll(spread, 5, axis=0)]),
        {
            0: Assignment.fresh(three, 3, _starts(3)),
            2: Assignment.reclustered_from(three, two, 3, 2),
            4: Assignment.reclustered_from(two, four, 2, 4),
        },
        online,
    )


def _play(make: Callable[[], Selector], story: _Story) -> None:
    """Play two fresh selectors side by side through a story, and compare them after every round."""
    twins = []
    for selector in (make(), resumed(make)):
        watched = _Watched(selector)
        stream = LabelStream(story.labels, ROUNDS_PER_STEP, turnover=story.turnover)
        clusterer = Scripted(story.assignments)
        twins.append(
            (watched, Rounds(stream, story.online, abandons=True, clusterer=clusterer, selector=watched))
        )
    (left, _), (right, _) = twins
    for _ in range(ROUNDS_PER_STEP * len(story.labels)):
        for _, rounds in twins:
            rounds.play()
        assert same(left.chosen, right.chosen), "two fresh selectors behave differently on equal views"
        assert same(left.watch.requests, right.watch.requests), (
            "two fresh selectors send different requests to equal clients"
        )


class _Watched(Selector):
    """Wraps a selector: checks the participants it returns; `chosen` has those of every call."""

    oracle = True  # for the federation; the watch checks whether the wrapped part declares it

    def __init__(self, selector: Selector) -> None:
        self.selector = selector
        self.watch = Watch(selector)
        self.chosen: list[Ints] = []

    @property
    def needs_reports(self) -> bool:
        needs_reports = self.selector.needs_reports
        assert isinstance(needs_reports, bool), f"needs_reports = {needs_reports!r}: must be bool"
        return needs_reports

    @property
    def needs(self) -> frozenset[TaskMetric]:
        needs = self.selector.needs
        assert needs <= set(TASK_METRICS), f"needs {sorted(needs)}; choices: {', '.join(TASK_METRICS)}"
        return needs

    def models_changed(self, assignment: Assignment) -> None:
        with left_alone(assignment):
            self.selector.models_changed(assignment)

    def select(self, candidates: Candidates, wanted: Ints, view: View) -> Ints:
        lanes = [candidates.ids(lane) for lane in range(len(candidates))]
        with left_alone(lanes, wanted, view):
            chosen = self.selector.select(candidates, wanted, self.watch.over(view))
        assert isinstance(chosen, np.ndarray), f"participants are a {type(chosen).__name__}, not an array"
        assert chosen.dtype == np.int64, f"participants are {chosen.dtype}, not int64"
        assert chosen.tolist() == sorted(set(chosen.tolist())), f"{chosen}: not ascending and distinct"
        taken = [int(np.isin(chosen, ids).sum()) for ids in lanes]
        assert sum(taken) == len(chosen), f"{chosen}: not all of these are candidates"
        most = [min(count, len(ids)) for count, ids in zip(wanted.tolist(), lanes, strict=True)]
        assert all(got <= limit for got, limit in zip(taken, most, strict=True)), (
            f"{taken} participants by lane; must be at most {most}"
        )
        assert len(chosen) > 0 or not any(most), "it chose none of the clients online"
        self.chosen.append(chosen.copy())
        return chosen

    def feedback(self, visits: EndedVisits, updates: Updates | None) -> None:
        with left_alone(visits, updates):
            self.selector.feedback(visits, updates)


def _starts(num_models: int) -> Floats32:
    """(num_models, P) initial models, all different."""
    return np.stack([initial(number) for number in range(num_models)])
