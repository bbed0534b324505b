"""Contract of pacings: pure rules over counts by which visits are opened, and absorbed by server steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from coordinator.federation import SentOut
from coordinator.pacing import CohortSize, Pacing
from coordinator.visits import Due, Visits
from emulator.arrays import Ints
from emulator.in_flight import NO_ENDS, InFlight, VisitEnds
from emulator.messages import COMPLETED, DROPPED
from experiments.contracts.generators import and_no_global_generator
from experiments.contracts.rounds import with_streams
from experiments.sameness import same

COHORT = CohortSize(participants=10, over_commit=1.3)
LANES = ([20], [12, 0, 7, 1], [3, 3, 3])
START_S = 1000.0
STEPS = 4
"""Server steps of a story, at most."""


@and_no_global_generator
def check_pacing(make: Callable[[CohortSize], Pacing]) -> None:
    """Check a pacing in stories whose visits arrive, drop out or are late in random order.

    * Quotas and visits to open are counts per lane, not negative, and 0 for a lane without clients.
    * All rules are pure functions of their arguments; each row of counts is evaluated independently.
    * It does not write to its arguments.
    * `deadline_s` is None, or finite and above 0.
    * A lane that is full opens no further visits, if it cancels.
    * A round closes once very many visits were absorbed, and very much time has passed.
    * What it declares of its rules (`Pacing.sees`) is so, and so is `whole_rounds`.
    * It never waits although no visit is out, and the story is the same whether the ends of visits are handed
      over together or one by one.

    Args:
        make: Makes a fresh pacing for a cohort size.

    Raises:
        AssertionError: The pacing breaks a rule, which the message names.
        RunError: The pacing breaks a rule that `coordinator.visits` enforces, such as opening more visits
            after the round's dispatch, although it declares whole rounds.
    """
    plain = make
    make = lambda cohort: with_streams(plain(cohort))  # noqa: E731
    for sizes in (np.array(lanes) for lanes in LANES):
        pacing = make(COHORT)
        deadline_s = pacing.deadline_s
        assert deadline_s is None or (np.isfinite(deadline_s) and deadline_s > 0), (
            f"deadline_s = {deadline_s}: must be finite and above 0, or None"
        )
        assert pacing.closes(10**9, 1e12), "it never closes a round, however many visits were absorbed"
        quota, wanted = _opening(pacing, sizes)
        again = _opening(make(COHORT), sizes)
        assert same((quota, wanted), again), "two fresh pacings behave differently on equal counts"
        _check_rows(pacing, sizes, quota, wanted)
        for seed in range(12):
            _check_story(make, sizes, seed)


def _opening(pacing: Pacing, sizes: Ints) -> tuple[Ints, Ints]:
    """(lanes,) the quota of lanes of `sizes` clients, and (lanes,) the visits to open in each; checked."""
    sizes_before, zeros = sizes.copy(), np.zeros((1, len(sizes)), dtype=np.int64)
    quota = pacing.quota(sizes)
    wanted = pacing.opens(quota, sizes, zeros, zeros)
    assert wanted.shape == zeros.shape, f"{wanted}: must have a row for each instant, of which there is one"
    for counts in (quota, wanted[0]):
        assert counts.shape == sizes.shape, f"{counts}: must have a count for each of {len(sizes)} lanes"
        assert counts.dtype == np.int64, f"counts are {counts.dtype}, not int64"
        assert (counts >= 0).all(), f"{counts}: counts must not be negative"
        assert not counts[sizes == 0].any(), f"{counts}: must be 0 for a lane without clients"
    assert wanted.any(), "a round must open at least one visit"
    assert same(sizes, sizes_before), "it writes to its arguments"
    assert not zeros.any(), "it writes to its arguments"
    return quota, wanted[0]


def _check_rows(pacing: Pacing, sizes: Ints, quota: Ints, wanted: Ints) -> None:
    """Check that the rules evaluate each of several rows of counts as if it were given alone."""
    back = np.stack([np.zeros_like(wanted), wanted // 2, wanted, wanted])
    out = np.stack([wanted, wanted - wanted // 2, np.zeros_like(wanted), np.zeros_like(wanted)])
    elapsed_s = np.array([[0.0], [1.0], [1e6], [1e12]])
    for rule in (pacing.full, pacing.absorbs):
        flags = rule(quota, out, back, elapsed_s)
        assert flags.dtype == np.bool_, f"{rule.__name__} returns {flags.dtype}, not bool"
        together = np.broadcast_to(flags, out.shape)
        for row in range(len(out)):
            only = slice(row, row + 1)
            alone = np.broadcast_to(rule(quota, out[only], back[only], elapsed_s[only]), (1, len(quota)))
            assert same(alone, together[only]), f"{rule.__name__}: rows of counts must be independent"
    counts = pacing.opens(quota, sizes, out, back)
    for row in range(len(out)):
        one = pacing.opens(quota, sizes, out[row : row + 1], back[row : row + 1])
        assert same(one, counts[row : row + 1]), "opens: rows of counts must be independent"
    if pacing.cancels:
        back, out = np.minimum(quota, wanted)[None], np.zeros((1, len(quota)), dtype=np.int64)
        full = np.broadcast_to(pacing.full(quota, out, back, elapsed_s[:1]), out.shape) & (back > 0)
        assert not pacing.opens(quota, sizes, out, back)[full].any(), (
            "it opens visits in a lane that is full, which would abandon them at once"
        )


def _check_story(make: Callable[[CohortSize], Pacing], sizes: Ints, seed: int) -> None:
    """Check that a story does not depend on how ends are handed over: together, in threes, or one by one."""
    together, *in_parts = (_story(make(COHORT), sizes, seed, most) for most in (None, 3, 1))
    reference = _story(make(COHORT), sizes, seed, None, is_reference=True)
    assert same(together, reference), (
        "a round ends differently when its rules are evaluated for all lanes at all instants: what it "
        "declares of them (full_sees, absorbs_sees) is not so"
    )
    assert all(same(together, parts) for parts in in_parts), (
        "a round ends differently when the ends of visits are handed over one by one"
    )


def _story(
    pacing: Pacing, sizes: Ints, seed: int, most: int | None, *, is_reference: bool = False
) -> list[Any]:
    """The server steps of a story: the time of each, and its visits.

    At most `most` ends of visits are handed over together. Raises RunError if the pacing waits although no
    visit is out, or is not as it declares.
    """
    story = _Story(pacing, sizes, seed, is_reference)
    while len(story.steps) < STEPS:
        story.go_on(most)
    return story.steps


class _Story:
    """Visits at the pace of `pacing`, in lanes of `sizes` (lanes,) clients, from a round's dispatch on.

    A client's visits always take the same time, and some visits drop out.
    """

    def __init__(self, pacing: Pacing, sizes: Ints, seed: int, is_reference: bool) -> None:
        rng = np.random.default_rng(seed)
        self._pacing = pacing
        self._lane = np.repeat(np.arange(len(sizes)), sizes)  # of each client
        self._lasts_s = rng.choice([1.0, 10.0, 1000.0]) * rng.integers(1, 9, size=len(self._lane))
        self._drops = rng.random(1000) < 0.2  # by visit
        self._visits, self._queue = Visits(pacing, len(self._lane), is_reference=is_reference), InFlight()
        self._visits.plan(sizes, pacing.quota(sizes))
        self._now_s, self._absorbed = START_S, 0
        self._deadline_s = self._visits.begin_round(START_S)
        self._fills = True  # when all visits that end now have ended
        self.steps: list[Any] = []

    def go_on(self, most: int | None) -> None:
        """Let the next visits end, at most `most` of them; or fill slots, or let the deadline pass."""
        until_s = np.inf if self._deadline_s is None else self._deadline_s
        ends, due = self._queue.first(self._now_s if self._fills else until_s, most), None
        if len(ends) > 0:
            count, due = self._visits.end(ends)
            self._now_s = float(ends.time_s[count - 1])
            self._queue.pop(count)
        elif self._fills:
            self._fill()
        else:
            assert self._deadline_s is not None, "all visits have ended, and there is no server step"
            self._now_s, self._deadline_s = self._deadline_s, None
            due = self._visits.deadline_passed(self._now_s)
        if due is not None:
            self._react(due)

    def _fill(self) -> None:
        """Open the visits that are wanted: of each lane, the idle clients of the lowest ids."""
        self._fills, visits = False, self._visits
        wanted = visits.wanted().tolist()
        idle = [np.flatnonzero((self._lane == lane) & ~visits.busy) for lane in range(len(wanted))]
        chosen = [ids[:count] for ids, count in zip(idle, wanted, strict=True)]
        clients = np.sort(np.concatenate(chosen))
        if len(clients) > 0:
            numbers = visits.opened + np.arange(len(clients))
            visits.open(SentOut(clients, self._lane[clients], NO_ENDS), self._now_s)
            ends_s = self._now_s + self._lasts_s[clients]
            outcomes = np.where(self._drops[numbers % len(self._drops)], DROPPED, COMPLETED)
            self._queue.push(VisitEnds(ends_s, clients, numbers, outcomes))
        elif visits.all_back.any():  # all clients of these lanes wait for a server step
            self._react(Due(self._now_s, visits.all_back))

    def _react(self, due: Due) -> None:
        """Make the server step that is due, begin the next round if one closes, and have slots filled."""
        self._now_s, self._fills, pacing = due.at_s, True, self._pacing
        if not due.absorbing.any():
            assert not pacing.whole_rounds, "it declares whole rounds, and opens further visits in one"
            return
        ended = self._visits.take(due.absorbing)
        self.steps.append((self._now_s, tuple(vars(ended).values())))
        self._absorbed += int(np.count_nonzero(ended.outcome == COMPLETED))
        closes = pacing.closes(self._absorbed, self._visits.elapsed_s(self._now_s))
        assert closes or not pacing.whole_rounds, "it declares whole rounds, and its step closes none"
        if closes:
            self._absorbed, self._deadline_s = 0, self._visits.begin_round(self._now_s)
