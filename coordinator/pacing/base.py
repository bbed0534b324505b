"""The protocol of pacings: when visits are opened and abandoned, and when server steps are made.

A pacing is a set of pure rules over counts per lane.
"""

from __future__ import annotations

import heapq
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np

from coordinator.view import Part
from emulator.arrays import Bools, Floats, Ints
from emulator.counts import exact, largest_remainder
from emulator.own_parts import defining
from emulator.plugins import Settings, returns

Push = Literal["none", "active", "online"]
"""Who is sent each new version of a model, besides the participants that are dispatched with it."""


@dataclass(frozen=True)
class CohortSize:
    """The number of visits that a round is to absorb, and by what factor more are sent out.

    Rounding up is in exact decimals, so that 50 x 1.1 is 55. Rounding down is literally FedScale's
    `int(over_commit * M)`: 100 x 1.15 is 114 there, since the product falls short of 115 in floating point.
    """

    participants: int
    over_commit: float | Fraction = 1.0  # factor, at least 1; a fraction is exact
    rounding: Literal["up", "down"] = "up"  # of a lane's over-committed quota; down as FedScale does

    def over_committed(self, quota: int) -> int:
        """The number of visits to open for a lane's quota.

        Args:
            quota: the visits that the lane is to have absorbed.

        Returns:
            `over_commit` x `quota`, rounded.
        """
        if self.rounding == "down":
            return int(self.over_commit * quota)
        factor = self.over_commit if isinstance(self.over_commit, Fraction) else exact(self.over_commit)
        return -(-factor.numerator * quota // factor.denominator)


class Pacing(Part):
    """Base of pacings; built with its own frozen settings and the cohort's size.

    It holds no clock and keeps no counts: each method is a pure function of its arguments and the settings.
    `opens`, `full` and `absorbs` are evaluated for n instants at once, one per row.

    A visit is out until it ends; it is back if it completed, until a server step of its lane absorbs it. When
    visits end, the lanes that absorb then make their server step first; slots are filled once all visits that
    end at that instant have ended. A round closes at the first server step after which `closes` says so.

    `full_sees` and `absorbs_sees` declare what these rules look at, so that with many lanes they are not
    evaluated for all lanes at all instants. "lanes", the default: at all lanes. "sums": only at the sums over
    the lanes of `quota`, `out` and `back`; they are then given these sums, as one lane. "lane" (`full` only):
    only at each lane's own numbers, and at the time only as far as `deadline_s` has passed; it is then given
    one row, with a column for each of n instants of any lane, also in `quota` (n,) and `elapsed_s` (1, n). A
    class that overrides a rule, and not what is declared of it, declares nothing.

    `cancels`: whether the visits that are still out in a full lane are abandoned. `deadline_s`: the elapsed
    time, in virtual seconds, at which `full` and `absorbs` are evaluated once more although no visit ends;
    None: there is no such time. A visit that returns at exactly that instant has returned before it.

    `timeout_s`: a visit that is out for longer is abandoned, and that a client is gone is noticed only then;
    None: nothing times out, and a drop-out is noticed as it happens. `max_staleness`: a visit that returns
    after more server steps of its lane since its dispatch is abandoned, charged in full; None: none is.
    `push`: who is sent each new version of a model as it is made, in bytes and without delay: "none", nobody
    but the participants that are dispatched with it; "active", the clients that are training, too; "online",
    all clients of its lane that are online, who do not download it once more when they are dispatched.

    `whole_rounds`: each round has one dispatch and one server step, which takes all its visits. A pacing that
    does otherwise declares False, and is refused beside parts that need whole rounds; one that declares True
    and does otherwise ends the run with a RunError that names it.
    """

    chance: ClassVar[str] = 'draw from self.streams.generator("my purpose", number of the draw)'
    cancels: ClassVar[bool] = True
    whole_rounds: ClassVar[bool] = True
    deadline_s: float | None = None
    timeout_s: float | None = None
    max_staleness: int | None = None
    push: Push = "none"

    @property
    def full_sees(self) -> Literal["lanes", "lane", "sums"]:
        """What `full` looks at."""
        return "lanes"

    @property
    def absorbs_sees(self) -> Literal["lanes", "sums"]:
        """What `absorbs` looks at."""
        return "lanes"

    def sees(self, rule: Literal["full", "absorbs"]) -> Literal["lanes", "lane", "sums"]:
        """What a rule looks at: what is declared of this very rule, else "lanes"."""
        kind = type(self)
        declared, defined = defining(kind, f"{rule}_sees"), defining(kind, rule)
        if rule in vars(self) or not issubclass(declared, defined):
            return "lanes"
        return self.full_sees if rule == "full" else self.absorbs_sees

    def __init__(self, settings: Settings, cohort: CohortSize) -> None:
        """A pacing for cohorts of the given size.

        Args:
            settings: an instance of the class's `Settings`.
            cohort: participants per round, and over-commitment.
        """
        super().__init__(settings)
        self.cohort = cohort

    @property
    def buffer(self) -> int | None:
        """Updates that a server step of all lanes absorbs; None where a round is one step."""
        return None

    @property
    def concurrency(self) -> int | None:
        """The most visits that are out at once; None where a round is one dispatch."""
        return None

    @returns("coordinator.checks:quota")
    def quota(self, sizes: Ints) -> Ints:
        """The number of visits that each lane is to have absorbed by its server step, or its slots.

        By default participants are shared over the lanes in proportion to their clients, by largest
        remainder, with at least one for each lane that has clients, as long as there are enough. A pacing
        may share them otherwise, and need not use them all.

        Args:
            sizes: (lanes,) clients in each lane that have something to train.

        Returns:
            (lanes,) numbers of visits.
        """
        return self._shared(self.cohort.participants, sizes)

    def _shared(self, number: int, sizes: Ints) -> Ints:
        """(lanes,) `number` shared over lanes of `sizes` (lanes,) clients, as `quota` says."""
        quota = largest_remainder(number, sizes)
        # A cluster without a quota would never be trained again: it takes one from the largest quota.
        empty = ((quota == 0) & (sizes > 0)).nonzero()[0].tolist()
        largest_first = [(-count, lane) for lane, count in enumerate(quota.tolist())] if empty else []
        heapq.heapify(largest_first)
        for lane in empty:
            count, largest = largest_first[0]
            if count == -1:
                break
            heapq.heapreplace(largest_first, (count + 1, largest))
            quota[[largest, lane]] = -count - 1, 1
        return quota

    @returns("coordinator.checks:opened")
    def opens(self, quota: Ints, sizes: Ints, out: Ints, back: Ints) -> Ints:
        """The number of visits to open in each lane.

        By default it is the over-committed quota if no visit is out or back, else 0.

        Args:
            quota: (lanes,) as returned by `quota`.
            sizes: (lanes,) clients in each lane that have something to train.
            out: (n, lanes) visits that are out at each of n instants.
            back: (n, lanes) visits that are back, and that no server step has absorbed.

        Returns:
            (n, lanes) numbers of visits.
        """
        counts = quota.tolist()
        opened = {count: self.cohort.over_committed(count) for count in set(counts)}
        wanted = np.array([opened[count] for count in counts], dtype=np.int64)
        in_flight = out.any(axis=-1, keepdims=True) | back.any(axis=-1, keepdims=True)
        return np.where(in_flight, 0, wanted)

    @abstractmethod
    @returns("coordinator.checks:due")
    def full(self, quota: Ints, out: Ints, back: Ints, elapsed_s: Floats) -> Bools:
        """Whether each lane is full, and waits for no further visit; not evaluated unless the pacing cancels.

        Args:
            quota: (lanes,) as returned by `quota`.
            out: (n, lanes) visits that are out at each of n instants.
            back: (n, lanes) visits that are back, and that no server step has absorbed.
            elapsed_s: (n, 1) virtual seconds since the first dispatch of the round.

        Returns:
            (n, lanes) bools; or (n, 1) where all lanes are alike.
        """

    @abstractmethod
    @returns("coordinator.checks:due")
    def absorbs(self, quota: Ints, out: Ints, back: Ints, elapsed_s: Floats) -> Bools:
        """Whether each lane makes a server step now, of its visits that are back.

        Args:
            quota: (lanes,) as returned by `quota`.
            out: (n, lanes) visits that are out at each of n instants.
            back: (n, lanes) visits that are back, and that no server step has absorbed.
            elapsed_s: (n, 1) virtual seconds since the first dispatch of the round.

        Returns:
            (n, lanes) bools; or (n, 1) where all lanes are alike. It says nothing of a lane without visits.
        """

    def closes(self, absorbed: int, elapsed_s: float) -> bool:
        """Whether the round is over after a server step.

        A pacing of whole rounds that may make its step with fewer than `participants` visits back, as after a
        drop-out, overrides this method: False would ask for a second step, and ends the run with a RunError.

        Args:
            absorbed: visits absorbed in this round.
            elapsed_s: virtual seconds since the first dispatch of the round.

        Returns:
            By default whether `participants` visits were absorbed.
        """
        return absorbed >= self.cohort.participants
