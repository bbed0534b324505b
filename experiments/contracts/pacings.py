"""Contract of pacings: pure rules over counts by which every round reaches its server step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from coordinator.federation import SentOut
from coordinator.pacing import CohortSize, Pacing
from coordinator.visits import Visits
from emulator.arrays import Floats, Ints
from emulator.in_flight import NO_ENDS, VisitEnds
from experiments.contracts.generators import and_no_global_generator
from experiments.contracts.sameness import same

COHORT = CohortSize(participants=10, over_commit=1.3)
LANES = ([20], [12, 0, 7, 1], [3, 3, 3])
START_S = 1000.0


@and_no_global_generator
def check_pacing(make: Callable[[CohortSize], Pacing]) -> None:
    """Check a pacing in rounds whose visits arrive, drop out or are late in random order.

    * Quotas and visits to open are counts per lane, not negative, and 0 for a lane without clients.
    * All rules are pure functions of their arguments; each row of counts is evaluated independently.
    * It does not write to its arguments.
    * `deadline_s` is None, or finite and above 0.
    * What it declares of its rules (`Pacing.sees`) is so.
    * Every round has one dispatch and one server step, and ends the same whether the ends of visits are
      handed over together or one by one.

    Args:
        make: Makes a fresh pacing for a cohort size.

    Raises:
        AssertionError: The pacing breaks a rule, which the message names.
        RunError: The pacing breaks a rule that `coordinator.visits` enforces, such as opening more visits
            after the round's dispatch.
    """
    for sizes in (np.array(lanes) for lanes in LANES):
        pacing = make(COHORT)
        deadline_s = pacing.deadline_s
        assert deadline_s is None or (np.isfinite(deadline_s) and deadline_s > 0), (
            f"deadline_s = {deadline_s}: must be finite and above 0, or None"
        )
        quota, wanted = _opening(pacing, sizes)
        again = _opening(make(COHORT), sizes)
        assert same((quota, wanted), again), "two fresh pacings behave differently on equal counts"
        _check_rows(pacing, quota, wanted)
        for seed in range(20):
            _play_round(make, sizes, quota, wanted, np.random.default_rng(seed))


def _opening(pacing: Pacing, sizes: Ints) -> tuple[Ints, Ints]:
    """(lanes,) the quota of lanes of `sizes` clients, and (lanes,) the visits to open in each; checked."""
    sizes_before, zeros = sizes.copy(), np.zeros_like(sizes)
    quota = pacing.quota(sizes)
    wanted = pacing.opens(quota, sizes, zeros, zeros)
    for counts in (quota, wanted):
        assert counts.shape == sizes.shape, f"{counts}: must have a count for each of {len(sizes)} lanes"
        assert counts.dtype == np.int64, f"counts are {counts.dtype}, not int64"
        assert (counts >= 0).all(), f"{counts}: counts must not be negative"
        assert not counts[sizes == 0].any(), f"{counts}: must be 0 for a lane without clients"
    assert wanted.any(), "a round must open at least one visit"
    assert same(sizes, sizes_before), "it writes to its arguments"
    assert not zeros.any(), "it writes to its arguments"
    return quota, wanted


def _check_rows(pacing: Pacing, quota: Ints, wanted: Ints) -> None:
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


def _play_round(
    make: Callable[[CohortSize], Pacing], sizes: Ints, quota: Ints, wanted: Ints, rng: np.random.Generator
) -> None:
    """Play a round whose visits end in random order; check that it does not matter how ends are handed over.

    They are handed over all together, in threes and one by one.
    """
    lanes = np.repeat(np.arange(len(sizes)), np.minimum(wanted, sizes))
    lasts_s = rng.choice([1.0, 10.0, 1000.0]) * rng.integers(1, 9, size=len(lanes))
    ends = VisitEnds(
        START_S + lasts_s, np.arange(len(lanes)), np.arange(len(lanes)), rng.random(len(lanes)) < 0.2
    ).in_order()
    together, *in_parts = (
        _played(make(COHORT), sizes, quota, lanes, ends, most) for most in (len(ends), 3, 1)
    )
    reference = _played(make(COHORT), sizes, quota, lanes, ends, len(ends), is_reference=True)
    assert same(together, reference), (
        "a round ends differently when its rules are evaluated for all lanes at all instants: what it "
        "declares of them (full_sees, absorbs_sees) is not so"
    )
    assert all(same(together, parts) for parts in in_parts), (
        "a round ends differently when the ends of visits are handed over one by one"
    )


def _played(
    pacing: Pacing,
    sizes: Ints,
    quota: Ints,
    lanes: Ints,
    ends: VisitEnds,
    most: int,
    *,
    is_reference: bool = False,
) -> tuple[float, Ints, Floats]:
    """The time of the round's server step, and of each visit its outcome and its end.

    At most `most` ends of visits are handed over together. Raises AssertionError if there is no server step,
    and RunError if the pacing asks for another dispatch or server step.
    """
    visits = Visits(pacing, is_reference=is_reference)
    visits.plan(sizes, quota)
    deadline_s = visits.open(SentOut(np.arange(len(lanes)), lanes, NO_ENDS), START_S)
    until_s = np.inf if deadline_s is None else deadline_s
    row, step_s = 0, None
    while step_s is None and row < len(ends):
        stop = min(row + most, int(np.searchsorted(ends.time_s, until_s, side="right")))
        if row < stop:
            count, step_s = visits.end(ends.part(row, stop))
            row += count
        elif np.isfinite(until_s):
            step_s, until_s = (until_s if visits.deadline_passed(until_s) else None), np.inf
    if step_s is None and np.isfinite(until_s):
        step_s = until_s if visits.deadline_passed(until_s) else None
    assert step_s is not None, "all visits have ended, the deadline has passed, and there is no server step"
    ended = visits.close(step_s)
    return step_s, ended.outcome, ended.end_s
