"""Decisions by drift: which drifts a detector found, how late, and its false alarms.

A flag is true if it is the first one of its client since the client's newest drift, and at most the tolerance
after it. Further flags until the client's next drift are repeats. All others are false alarms: of clients
without a drift so far, and those of a drift that no flag found within the tolerance.

Only flags, drifts and decisions of scored rounds count, but what was before them decides which flag is the
first of its drift: a flag that found a drift before the first scored round makes later ones repeats.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from emulator.arrays import Bools, Floats, Ints
from experiments.results.statistics.detection.columns import Decisions, Drifts

NEVER = -1
"""The round of what did not happen."""


@dataclass(frozen=True, eq=False)
class DriftScores:
    """What a detector made of the drifts that begin in scored rounds.

    Times are virtual seconds from the opening of the round in which a drift begins to the instant of a
    decision; NaN without one.

    Attributes:
        drifts: These n drifts.
        asked: (n,) round of the first decision about the client since the drift, if it is within the
            tolerance, and before the client's next drift; else `NEVER`.
        found: (n,) round of the flag that found the drift; `NEVER` for a missed one.
        asked_s: (n,) time to the decision of `asked`.
        delay_s: (n,) time to the flag of `found`.
        false_alarms: The false flags in scored rounds.
        repeats: The flags in scored rounds that are neither true nor false.
        decisions: The decisions in scored rounds.
        undrifted: The clients that these are about and that have no drift up to the last scored round.
        undrifted_flagged: Those of them that were flagged in scored rounds.
    """

    drifts: Drifts
    asked: Ints
    found: Ints
    asked_s: Floats
    delay_s: Floats
    false_alarms: int
    repeats: int
    decisions: int
    undrifted: int
    undrifted_flagged: int

    @property
    def delays(self) -> Ints:
        """(n,) rounds from each drift to the flag that found it; negative for a missed one."""
        return np.where(self.found == NEVER, NEVER, self.found - self.drifts.onset)


def score_drifts(
    decisions: Decisions,
    drifts: Drifts,
    *,
    first_round: int,
    last_round: int,
    tolerance: int,
    opened_s: Floats,
    decided_s: Floats,
) -> DriftScores:
    """Score the decisions of a detector by drift.

    Args:
        decisions: All of the run.
        drifts: All of the run, at most one of a client in a round.
        first_round: The first scored round.
        last_round: The last scored round, of those of the run.
        tolerance: Most rounds from a drift to a flag that finds it.
        opened_s: (rounds,) when each round opened.
        decided_s: (rounds,) when the detector decides in each round, at the latest.
    """
    of = drifts.latest(decisions.client, decisions.round)
    of_one = of >= 0
    is_first = np.zeros(len(decisions), dtype=bool)
    is_first[_first_of(of, decisions.is_flag & of_one)[1]] = True
    in_time = np.zeros(len(decisions), dtype=bool)
    in_time[of_one] = decisions.round[of_one] - drifts.onset[of[of_one]] <= tolerance
    is_true = is_first & in_time
    found = _rounds(decisions, drifts, of, is_true)
    was_found = np.zeros(len(decisions), dtype=bool)
    was_found[of_one] = found[of[of_one]] != NEVER
    is_repeat = decisions.is_flag & was_found & ~is_true
    is_false = decisions.is_flag & ~is_true & ~is_repeat
    is_scored = (decisions.round >= first_round) & (decisions.round <= last_round)

    counted = (drifts.onset >= first_round) & (drifts.onset <= last_round)
    asked = _rounds(decisions, drifts, of, of_one & in_time)
    asked, found = (np.where(rounds <= last_round, rounds, NEVER)[counted] for rounds in (asked, found))
    scored = drifts.where(counted)
    asked_s, delay_s = (
        np.where(rounds == NEVER, np.nan, decided_s[rounds] - opened_s[scored.onset])
        for rounds in (asked, found)
    )
    return DriftScores(
        scored,
        asked,
        found,
        asked_s,
        delay_s,
        int((is_false & is_scored).sum()),
        int((is_repeat & is_scored).sum()),
        int(is_scored.sum()),
        *_undrifted(decisions, drifts, is_scored, last_round),
    )


def _undrifted(decisions: Decisions, drifts: Drifts, is_scored: Bools, last_round: int) -> tuple[int, int]:
    """The clients without a drift that scored decisions are about, and those of them that were flagged."""
    drifted = drifts.client[drifts.onset <= last_round]
    about_others = is_scored & ~np.isin(decisions.client, drifted)
    clients = np.unique(decisions.client[about_others])
    return len(clients), len(np.unique(decisions.client[about_others & decisions.is_flag]))


def _first_of(of: Ints, chosen: Bools) -> tuple[Ints, Ints]:
    """(indices of drifts, index of the first of the `chosen` decisions of each); decisions are ascending."""
    indices = np.flatnonzero(chosen)
    found, first = np.unique(of[indices], return_index=True)
    return found, indices[first]


def _rounds(decisions: Decisions, drifts: Drifts, of: Ints, chosen: Bools) -> Ints:
    """(n,) the round of the first of the `chosen` decisions of each drift; `NEVER` without one."""
    rounds = np.full(len(drifts), NEVER)
    indices, first = _first_of(of, chosen)
    rounds[indices] = decisions.round[first]
    return rounds
