"""Attribution of the time of each round to its causes, from its opening to the opening of the next round.

The time of a round has two parts.

1. From its opening to the dispatch: the coordinator waits for reports, for responses to client requests, and
   until enough clients are online. The log does not tell these apart.
2. From the dispatch to its end, the instant of the server step. A round ends with a visit: with the
   participant whose return filled the quota, or with the last drop-out of a lane that has no other client
   out. If no visit ended at that instant, the pacing ended the round, by a time limit or its fixed duration.
   So it did if a client dropped out at that instant and other visits were abandoned, since a drop-out fills
   no quota.

The second part is split by the phases of the visit that closed the round: only a faster closing visit makes
the round shorter. Of several visits that ended at that instant, a completed one closed the round, and of
these the one with the lowest id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from emulator.arrays import Bools, Floats, Ints
from emulator.errors import InputError
from emulator.storage.runlog import RoundRecord
from experiments.results.statistics.clients.visits import PHASES, VisitColumns

BEFORE_DISPATCH, DROP_OUT, DEADLINE, VISITS = "before dispatch", "drop-out", "deadline", "visits"
BETWEEN = "between rounds"

COMPONENTS = (BEFORE_DISPATCH, *PHASES, DROP_OUT, DEADLINE, VISITS)
"""The parts of the time of a round, in the order of time; `VISITS` where visits were not recorded."""

NOBODY = -1
"""In place of a row of the visits: no visit closed the round, or visits were not recorded."""


@dataclass(frozen=True)
class Waiting:
    """The time of the rounds of a run by its causes, in virtual seconds.

    `seconds` is of shape (rounds, components), in the order of `COMPONENTS`; rows add up to the length of
    the round, up to rounding in float64. `between_s` (rounds,) is the time from the end of a round to the
    opening of the next one, in which responses to requests arrive; 0 for the last record. `closing` (rounds,)
    is the row of the visit that closed each round, or `NOBODY`.
    """

    round: Ints
    seconds: Floats
    between_s: Floats
    closing: Ints

    @property
    def totals_s(self) -> dict[str, float]:
        """The seconds of each of `COMPONENTS` and of `BETWEEN`, summed over rounds."""
        sums = self.seconds.sum(axis=0).tolist()
        return {**dict(zip(COMPONENTS, sums, strict=True)), BETWEEN: float(self.between_s.sum())}


def waiting(
    records: Sequence[RoundRecord], visits: VisitColumns | None, *, is_fixed: bool = False
) -> Waiting:
    """The time of each of these rounds by its causes.

    Args:
        records: Consecutive rounds of one run.
        visits: All visits of the run; None if they were not recorded (`round.log_visits`).
        is_fixed: Whether all rounds have a fixed duration from their dispatch, so that no visit closes them.

    Raises:
        InputError: A round has another number of visits than of participants.
    """
    number = np.array([record.round for record in records], dtype=np.int64)
    opened_s, dispatched_s, closed_s = (
        np.array([getattr(record, name) for record in records], dtype=np.float64)
        for name in ("opened_s", "dispatched_s", "closed_s")
    )
    seconds = np.zeros((len(records), len(COMPONENTS)))
    seconds[:, 0] = dispatched_s - opened_s
    out_s, closing = closed_s - dispatched_s, np.full(len(records), NOBODY, dtype=np.int64)
    if is_fixed:
        seconds[:, COMPONENTS.index(DEADLINE)] = out_s
    elif visits is None:
        seconds[:, COMPONENTS.index(VISITS)] = out_s
    else:
        _refuse_missing_visits(records, number, visits)
        last = _last_to_end(number, visits)
        ended = (last != NOBODY) & (visits.end_s[last] == closed_s)
        ended &= visits.completed[last] | ~_abandons_at(number, closed_s, visits)
        closing = np.where(ended, last, NOBODY)
        by_deadline, by_drop_out = closing == NOBODY, (closing != NOBODY) & ~visits.completed[closing]
        seconds[:, COMPONENTS.index(DEADLINE)] = np.where(by_deadline, out_s, 0.0)
        seconds[:, COMPONENTS.index(DROP_OUT)] = np.where(by_drop_out, out_s, 0.0)
        returned = ~(by_deadline | by_drop_out)
        first = COMPONENTS.index(PHASES[0])
        phases_s = visits.phases_s[closing[returned]]
        # The upload is what is left, so that rounding does not matter.
        phases_s[:, -1] = out_s[returned] - phases_s[:, :-1].sum(axis=1)
        seconds[returned, first : first + len(PHASES)] = phases_s
    between_s = np.zeros(len(records))
    between_s[:-1] = opened_s[1:] - closed_s[:-1]
    return Waiting(number, seconds, between_s, closing)


def _last_to_end(rounds: Ints, visits: VisitColumns) -> Ints:
    """(rounds,) the row of the visit that completed or dropped out last; `NOBODY` if none did."""
    own = np.flatnonzero(visits.completed | visits.dropped)
    if len(own) == 0:
        return np.full(len(rounds), NOBODY, dtype=np.int64)
    keys = (-visits.visit[own], visits.completed[own], visits.end_s[own], visits.round[own])
    own = own[np.lexsort(keys)]
    last = np.searchsorted(visits.round[own], rounds, side="right") - 1
    is_there = (last >= 0) & (visits.round[own[last]] == rounds)
    return np.where(is_there, own[last], NOBODY)


def _abandons_at(rounds: Ints, instants_s: Floats, visits: VisitColumns) -> Bools:
    """(rounds,) whether a visit of the round was abandoned at the given instant of each round."""
    if not len(rounds):
        return np.zeros(0, dtype=np.bool_)
    abandoned = np.flatnonzero(~(visits.completed | visits.dropped))
    row = np.searchsorted(rounds, visits.round[abandoned])
    known = (row < len(rounds)) & (rounds[np.minimum(row, len(rounds) - 1)] == visits.round[abandoned])
    row, end_s = row[known], visits.end_s[abandoned[known]]
    at = np.zeros(len(rounds), dtype=np.bool_)
    at[row[end_s == instants_s[row]]] = True
    return at


def _refuse_missing_visits(records: Sequence[RoundRecord], numbers: Ints, visits: VisitColumns) -> None:
    counts = np.searchsorted(visits.round, numbers, "right") - np.searchsorted(visits.round, numbers, "left")
    for record, count in zip(records, counts.tolist(), strict=True):
        if count != len(record.participants):
            raise InputError(
                f"round {record.round}: {count} visits are recorded, and the log has "
                f"{len(record.participants)} participants"
            )
