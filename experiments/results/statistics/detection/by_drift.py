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
from experiments.results.reading.detection import DetectionSettings
from experiments.results.statistics.detection.columns import Decisions, Drifts, is_within, ratio

NEVER = -1
"""The round of what did not happen."""


@dataclass(frozen=True, eq=False)
class DetectorScores:
    """What a detector made of the drifts of a run that begin in scored rounds, and its figures.

    Times are virtual seconds from the opening of the round in which a drift begins to the instant of a
    decision; NaN without one.

    Attributes:
        drifts: These n drifts.
        asked: (n,) round of the first decision about the client since the drift, if it is within the
            tolerance, and before the client's next drift; else `NEVER`.
        found: (n,) round of the flag that found the drift; `NEVER` for a missed one.
        asked_s: (n,) time to the decision of `asked`.
        delay_s: (n,) time to the flag of `found`.
        figures: By their names in `summary.json`; None where they are not defined.
    """

    drifts: Drifts
    asked: Ints
    found: Ints
    asked_s: Floats
    delay_s: Floats
    figures: dict[str, float | None]

    @property
    def delays(self) -> Ints:
        """(n,) rounds from each drift to the flag that found it; negative for a missed one."""
        return np.where(self.found == NEVER, NEVER, self.found - self.drifts.onset)

    def of_kind(self, kind: str) -> dict[str, float | None]:
        """Of the drifts of one kind, their number, how many were found, and that share."""
        return _recall(self.found[self.drifts.is_of(kind)])


def score_drifts(
    decisions: Decisions,
    drifts: Drifts,
    settings: DetectionSettings,
    *,
    last_round: int,
    opened_s: Floats,
    decided_s: Floats,
) -> DetectorScores:
    """Score the decisions of a detector by drift.

    Args:
        decisions: All of the run.
        drifts: All of the run, at most one of a client in a round.
        settings: The first scored round, and most rounds from a drift to a flag that finds it.
        last_round: The last scored round, of those of the run.
        opened_s: (rounds,) when each round opened.
        decided_s: (rounds,) when the detector decides in each round, at the latest.
    """
    of = drifts.latest(decisions.client, decisions.round)
    of_one = of >= 0
    is_first = np.zeros(len(decisions), dtype=bool)
    is_first[_first_of(of, decisions.is_flag & of_one)[1]] = True
    in_time = np.zeros(len(decisions), dtype=bool)
    in_time[of_one] = decisions.round[of_one] - drifts.onset[of[of_one]] <= settings.tolerance
    is_true = is_first & in_time
    found = _rounds(decisions, drifts, of, is_true)
    was_found = np.zeros(len(decisions), dtype=bool)
    was_found[of_one] = found[of[of_one]] != NEVER
    is_repeat = decisions.is_flag & was_found & ~is_true
    is_false = decisions.is_flag & ~is_true & ~is_repeat
    is_scored = is_within(decisions.round, settings.first_round, last_round)

    counted = is_within(drifts.onset, settings.first_round, last_round)
    asked = _rounds(decisions, drifts, of, of_one & in_time)
    asked, found = (np.where(rounds <= last_round, rounds, NEVER)[counted] for rounds in (asked, found))
    scored = drifts.where(counted)
    asked_s, delay_s = (
        np.where(rounds == NEVER, np.nan, decided_s[rounds] - opened_s[scored.onset])
        for rounds in (asked, found)
    )
    is_found, num_asked = found != NEVER, int((asked != NEVER).sum())
    rounds = (found - scored.onset)[is_found].astype(np.float64)
    num_decisions, alarms = int(is_scored.sum()), int((is_false & is_scored).sum())
    figures = {
        **_recall(found),
        "never_asked": len(scored) - num_asked,
        "recall_asked": ratio(int(is_found.sum()), num_asked),
        "delay_rounds_mean": _mean(rounds),
        "delay_rounds_median": _median(rounds),
        "delay_rounds_90": _ninety(rounds),
        "delay_s_median": _median(delay_s[is_found]),
        "delay_s_90": _ninety(delay_s[is_found]),
        "asked_s_median": _median(asked_s[is_found]),
        "found_s_median": _median((delay_s - asked_s)[is_found]),
        "false_alarms": alarms,
        "repeats": int((is_repeat & is_scored).sum()),
        "false_alarms_per_1000": ratio(alarms, num_decisions, per=1000),
        "undrifted_flagged": _undrifted_flagged(decisions, drifts, is_scored, last_round),
        "decisions": num_decisions,
    }
    return DetectorScores(scored, asked, found, asked_s, delay_s, figures)


def _recall(found: Ints) -> dict[str, float | None]:
    """Of drifts that were found in these rounds, or `NEVER`: their number, those found, and that share."""
    num_found = int((found != NEVER).sum())
    return {"drifts": len(found), "found": num_found, "recall_all": ratio(num_found, len(found))}


def _undrifted_flagged(
    decisions: Decisions, drifts: Drifts, is_scored: Bools, last_round: int
) -> float | None:
    """The share of the clients without a drift that scored decisions are about that were flagged in these."""
    drifted = drifts.client[drifts.onset <= last_round]
    about_others = is_scored & ~np.isin(decisions.client, drifted)
    clients, flagged = (
        np.unique(decisions.client[chosen]) for chosen in (about_others, about_others & decisions.is_flag)
    )
    return ratio(len(flagged), len(clients))


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


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if len(values) else None


def _median(values: Floats) -> float | None:
    return float(np.median(values)) if len(values) else None


def _ninety(values: Floats) -> float | None:
    """The least of the values that 90 % of them do not exceed."""
    return float(np.quantile(values, 0.9, method="inverted_cdf")) if len(values) else None
