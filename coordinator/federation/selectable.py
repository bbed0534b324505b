"""Who can be selected: clients that have something to train, are idle and online; and when enough will be.

Knows lanes, presence and who is busy; must not know selectors, tasks or models.
"""

from __future__ import annotations

import math

import numpy as np

from coordinator.candidates import Candidates
from coordinator.federation.membership import Lanes, Membership
from coordinator.federation.run import Run
from coordinator.federation.views import Views
from coordinator.memories import Memory
from emulator.arrays import NO_IDS, Bools, Ints
from emulator.errors import RunError

SECONDS_PER_DAY = 86_400.0


class Selectable:
    """The clients of the lanes in force that can be selected.

    `wanted` (lanes,) are the participants wanted from each lane. While visits are in flight, `busy` (N,) are
    their clients: then whoever is idle and online will do. Otherwise `round.min_online` clients must be
    online, or all of the lanes if these have fewer.
    """

    def __init__(self, run: Run, membership: Membership, memory: Memory, views: Views) -> None:
        self._run = run
        self._membership = membership
        self._memory = memory
        self._views = views

    def lanes(self, round_: int) -> Lanes:
        """The lanes in force, of the clients that have something to train."""
        assignment = self._membership.assignment

        def trains(ids: Ints) -> Bools:
            return self._memory.trains(ids, self._views.of_memory(round_, assignment))

        return self._membership.lanes(trains)

    def sizes(self, round_: int) -> Ints:
        """(lanes,) the number of clients in each lane that have something to train."""
        return self.lanes(round_).sizes

    def num_idle(self, round_: int, busy: Bools) -> Ints:
        """(lanes,) the number of these clients in each lane that are not busy."""
        lanes = self.lanes(round_)
        idle: Ints = np.bincount(lanes.lane_of_client[~busy] + 1, minlength=len(lanes.sizes) + 1)[1:]
        return idle

    def candidates(self, round_: int, wanted: Ints, now_s: float, busy: Bools | None) -> Candidates | None:
        """The candidates of the wanted lanes; None if too few are online. RunError if all lanes are empty."""
        trainable = self._trainable(round_, wanted)

        def available(ids: Ints) -> Bools:
            online = self._run.availability.online(ids, now_s)
            return online if busy is None else online & ~busy[ids]

        candidates = Candidates(trainable, available)
        return candidates if candidates.holds(self._needed(trainable, busy)) else None

    def enough_online_s(
        self, round_: int, wanted: Ints, since_s: float | None, now_s: float, busy: Bools | None = None
    ) -> float:
        """The next instant at which enough clients could be online, while too few are; inf: never.

        Raises RunError if that is more than `round.max_wait_days` after `since_s`, when the wait began, and
        the run does not end before; None: it is no wait, since visits are out.
        """
        ids, needed = self._idle(round_, wanted, busy)
        online, next_s = self._next(ids, needed, now_s)
        longest_days, ends_s = self._run.settings.max_wait_days, self._run.settings.ends_s
        if ends_s is not None and next_s > ends_s:
            return ends_s
        if since_s is not None and next_s - since_s > longest_days * SECONDS_PER_DAY:
            when = "never again" if math.isinf(next_s) else f"not within {longest_days:g} virtual days"
            raise RunError(
                f"round {round_}: {online} of {len(ids)} clients are online at {now_s:.0f} s, "
                f"round.min_online = {self._run.settings.min_online} requires {needed}; "
                f"{when} will that many be online at once"
            )
        return next_s

    def is_soon_online(self, round_: int, wanted: Ints, now_s: float, busy: Bools) -> bool:
        """Whether an idle client of the wanted lanes is online, or will be before a run waits too long."""
        _, next_s = self._next(*self._idle(round_, wanted, busy), now_s)
        return next_s - now_s <= self._run.settings.max_wait_days * SECONDS_PER_DAY

    def refuse_empty_lanes(self, round_: int) -> None:
        """Raise RunError if no lane has a client that has something to train."""
        self._trainable(round_, self.sizes(round_))

    def _trainable(self, round_: int, wanted: Ints) -> list[Ints]:
        """For each lane the ids, ascending, of its clients that have something to train.

        A lane of which none is wanted has none. Raises RunError if all lanes are empty.
        """
        ids_by_lane = zip(self.lanes(round_).ids, wanted.tolist(), strict=True)
        trainable = [ids if count > 0 else NO_IDS for ids, count in ids_by_lane]
        if not any(map(len, trainable)):
            stream, rounds = self._run.stream, self._run.settings.rounds
            in_lanes = int((self._membership.in_force.lane_of_client >= 0).sum())
            raise RunError(
                f"round {round_}: nobody can be selected: of {stream.num_clients} clients "
                f"{in_lanes} are in a lane, and none of these has samples to train on at data step "
                f"{stream.step}; a trace must last as long as round.rounds = {rounds}"
            )
        return trainable

    def _needed(self, trainable: list[Ints], busy: Bools | None) -> int:
        """The number of clients that must be online."""
        return min(self._run.settings.min_online, sum(map(len, trainable))) if busy is None else 1

    def _idle(self, round_: int, wanted: Ints, busy: Bools | None) -> tuple[Ints, int]:
        """Ids (n,) of the clients of the wanted lanes that are idle, and how many of them must be online."""
        trainable = self._trainable(round_, wanted)
        ids = np.concatenate([NO_IDS, *trainable])
        return ids if busy is None else ids[~busy[ids]], self._needed(trainable, busy)

    def _next(self, ids: Ints, needed: int, now_s: float) -> tuple[int, float]:
        """How many of `ids` (n,) are online, and when as many as `needed` could be: now, if they are."""
        online = int(self._run.availability.online(ids, now_s).sum())
        if online >= needed:
            return online, now_s
        upcoming = np.sort(self._run.availability.next_online_s(ids, now_s))
        missing = needed - online
        return online, float(upcoming[missing - 1]) if missing <= len(upcoming) else math.inf
