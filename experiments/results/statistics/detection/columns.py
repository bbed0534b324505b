"""Decisions of a detector and drifts of a run as columns, ascending by client and then by round.

The round of a drift is the first one in which clients hold data of its data step or of a later one; drifts
that the run did not reach are left out. Rounds are those of the log, from 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from emulator.arrays import NO_IDS, Bools, Ints
from emulator.storage.runlog import DRIFT_COLUMNS, RoundRecord

UNKNOWN = -1
"""The concept of data whose change the trace's concepts do not show."""

MOST_ROUNDS = 2**31
"""More than any run has: pairs of a client and a round are ordered by one number."""


@dataclass(frozen=True, eq=False)
class Decisions:
    """The decisions of one detector, at most one for a client in a round.

    Attributes:
        client: (d,) whom they are about.
        round: (d,) when they were made.
        is_flag: (d,) whether the client was found drifted.
    """

    client: Ints
    round: Ints
    is_flag: Bools

    def __len__(self) -> int:
        return len(self.client)

    def within(self, first: int, last: int) -> Decisions:
        """Those in the rounds from `first` to `last`."""
        kept = is_within(self.round, first, last)
        return Decisions(self.client[kept], self.round[kept], self.is_flag[kept])


@dataclass(frozen=True, eq=False)
class Drifts:
    """Drifts, of which several of a client may begin in the same round.

    Attributes:
        kinds: The names of all kinds of drifts of the run.
        client: (n,) whose data change.
        onset: (n,) the round from which on they are other ones.
        step: (n,) the data step of that.
        kind: (n,) the index of its kind in `kinds`.
        before: (n,) the concept of the client up to then; `UNKNOWN` as `after`.
        after: (n,) its concept from then on; `UNKNOWN` if the trace's concepts do not show the change.
    """

    kinds: Sequence[str]
    client: Ints
    onset: Ints
    step: Ints
    kind: Ints
    before: Ints
    after: Ints

    def __len__(self) -> int:
        return len(self.client)

    def where(self, kept: Bools) -> Drifts:
        """Those of which `kept` (n,) is true."""
        return replace(self, **{name: vars(self)[name][kept] for name in ("onset", *DRIFT_COLUMNS)})

    def is_of(self, kind: str) -> Bools:
        """(n,) whether each is of the kind of that name."""
        return np.array([name == kind for name in self.kinds], dtype=np.bool_)[self.kind]

    def latest(self, client: Ints, round_: Ints | int) -> Ints:
        """(m,) index of the newest drift of each of `client` (m,) up to the round; -1 if there is none.

        >>> table = {"kinds": ["swap"], "kind": [0, 0, 0], "before": [0, 1, 0], "after": [1, 0, 1]}
        >>> drifts = drifts_of({"step": [1, 2, 3], "client": [5, 5, 7], **table}, np.array([0, 1, 1, 2]))
        >>> drifts.onset.tolist(), drifts.latest(np.array([5, 5, 6]), np.array([0, 4, 4])).tolist()
        ([1, 3], [-1, 1, -1])
        """
        keys = self.client * MOST_ROUNDS + self.onset
        found = np.searchsorted(keys, client * MOST_ROUNDS + round_, side="right") - 1
        known = found >= 0
        known[known] = self.client[found[known]] == client[known]
        return np.where(known, found, -1)

    def one_for_each_onset(self) -> Drifts:
        """The last drift of each client that begins in a round: nobody can tell it from those before it."""
        is_last = np.ones(len(self), dtype=bool)
        is_last[:-1] = (np.diff(self.client) != 0) | (np.diff(self.onset) != 0)
        return self.where(is_last)


def decisions_of(records: Sequence[RoundRecord], watched: str, name: str) -> Decisions:
    """The decisions of the detector `name`, which watches "representation", "arrivals" or "training"."""
    client, round_ = _pairs([(record.decided or {}).get(watched, []) for record in records])
    flagged, in_round = _pairs([(record.flagged or {}).get(name, []) for record in records])
    order = np.lexsort((round_, client))
    keys = client * MOST_ROUNDS + round_
    is_flag = np.isin(keys, flagged * MOST_ROUNDS + in_round)
    return Decisions(client[order], round_[order], is_flag[order])


def drifts_of(table: Mapping[str, Any], steps: Ints) -> Drifts:
    """The drifts of a header's `drifts` in a run whose rounds are of the data steps `steps` (rounds,)."""
    step, client, kind, before, after = (np.asarray(table[name], dtype=np.int64) for name in DRIFT_COLUMNS)
    onset = np.searchsorted(np.maximum.accumulate(steps), step) if len(steps) else np.zeros_like(step)
    order = np.lexsort((step, client))
    columns = (column[order] for column in (client, onset, step, kind, before, after))
    drifts = Drifts([str(name) for name in table["kinds"]], *columns)
    return drifts.where(drifts.onset < len(steps))


def is_within(rounds: Ints, first: int, last: int) -> Bools:
    """Whether each of these rounds is one of those from `first` to `last`."""
    within: Bools = (rounds >= first) & (rounds <= last)
    return within


def ratio(part: int, of: int, *, per: int = 1) -> float | None:
    """`part` / `of`, or that share of `per`; None if `of` is 0."""
    return per * (part / of) if of else None


def _pairs(by_round: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    """(clients, rounds) of lists of clients, one for each round."""
    client = np.concatenate([NO_IDS, *(np.asarray(ids, dtype=np.int64) for ids in by_round)])
    return client, np.repeat(np.arange(len(by_round)), [len(ids) for ids in by_round])
