"""Which workers are there, and which of them may be given runs.

Pure but for the crew it asks: knows no plans, and not which run is where.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from experiments.jobs.crew import Crew, Facts
from experiments.jobs.order import World
from experiments.jobs.workplace import Job

MEET_AGAIN_S = 5.0
"""Wall seconds until a worker that was busy, lost or silent to us, or a run that was held, is tried again."""


@dataclass
class Seat:
    """A worker that may be given runs, and what it has at hand."""

    facts: Facts
    world: World | None = None
    job: Job | None = None
    notes_shown: int = 0  # of its job

    @property
    def is_playing(self) -> bool:
        """Whether a run is at work there: a world that is drawn is none yet."""
        return self.job is not None and not self.job.is_draw


class Roster:
    """The workers of a crew. One is met when it appears, and again later if it was busy or did not answer.

    `seats` has those that may be given runs, by address.
    """

    def __init__(self, crew: Crew, clock: Callable[[], float]) -> None:
        self._crew = crew
        self._clock = clock
        self.seats: dict[str, Seat] = {}
        self._met: set[str] = set()  # or asked
        self._unanswered: set[str] = set()  # of these
        self._busy: set[str] = set()  # with a run of another command
        self._meet_again_s: dict[str, float] = {}

    @property
    def is_waiting(self) -> bool:
        """Whether a worker that is there has not answered yet."""
        return bool(self._unanswered)

    @property
    def is_empty(self) -> bool:
        """Whether there is nobody to wait for."""
        return not self.seats and not self._busy

    def is_busy(self, address: str) -> bool:
        """Whether the worker is at a run of another command."""
        return address in self._busy

    def at_work(self, experiment: str | None = None) -> list[str]:
        """The workers that have a job, or one of that experiment."""
        jobs = {address: seat.job for address, seat in self.seats.items() if seat.job is not None}
        return [address for address, job in jobs.items() if experiment in (None, job.run.experiment)]

    def free(self) -> Iterator[tuple[str, Seat]]:
        """The workers that have none."""
        for address, seat in self.seats.items():
            if seat.job is None:
                yield address, seat

    def welcome(self) -> None:
        """Meet the workers that are new, and those again that were busy or did not answer."""
        present = self._crew.addresses()
        for known in (self._met, self._unanswered, self._busy):
            known &= set(present)
        for address in [known for known, _ in self.free() if known not in present]:
            del self.seats[address]
        now_s = self._clock()
        for address, again_s in list(self._meet_again_s.items()):
            if now_s >= again_s:
                del self._meet_again_s[address]
                self._met.discard(address)
        for address in present:
            if address not in self._met:
                self._met.add(address)
                self._unanswered.add(address)
                self._crew.meet(address)

    def answered(self, address: str, facts: Facts | None) -> bool:
        """A worker was met, or (None) did not answer: whether it is free for runs, if it is fit for them."""
        self._unanswered.discard(address)
        self._busy.discard(address)
        if address in self.seats:
            return False  # it was out of reach for a moment, and has its job still
        if facts is None:
            self._meet_again(address)
            return False
        if facts.is_busy and facts.refusal is None:
            self._busy.add(address)
            self._meet_again(address)
            return False
        return True

    def forget(self, address: str) -> None:
        """The worker is to be met anew: it has been stopped, and would begin nothing more."""
        del self.seats[address]
        self._met.discard(address)

    def lose(self, address: str) -> None:
        """The worker is gone; should there be one at its address later, it is met."""
        del self.seats[address]
        self._meet_again(address)

    def _meet_again(self, address: str) -> None:
        self._meet_again_s[address] = self._clock() + MEET_AGAIN_S
