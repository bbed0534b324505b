"""The workers of a command, and which of them may be given runs.

Pure, apart from its calls to the pool. Knows no plans.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from experiments.jobs.order import World
from experiments.jobs.pool import Facts, WorkerPool
from experiments.jobs.workplace import Job

MEET_AGAIN_S = 5.0
"""Wall seconds until a busy, lost or unresponsive worker, or a run that was held, is tried again."""


@dataclass
class Worker:
    """A worker that may be given runs, with the world that it has drawn and its job."""

    facts: Facts
    world: World | None = None
    job: Job | None = None
    notes_shown: int = 0  # notes of its job

    @property
    def is_playing(self) -> bool:
        """Whether the worker plays a run, as opposed to drawing a world."""
        return self.job is not None and not self.job.is_draw


class Workers:
    """The workers of a pool.

    A worker is met when it appears, and again later if it was busy or did not respond. `ready` has the
    workers that may be given runs, by address.
    """

    def __init__(self, pool: WorkerPool, clock: Callable[[], float]) -> None:
        self._pool = pool
        self._clock = clock
        self.ready: dict[str, Worker] = {}
        self._met: set[str] = set()  # plans were sent
        self._awaited: set[str] = set()  # of `_met`: no response yet
        self._busy: set[str] = set()  # at work on a run of another command, or leaving
        self._meet_again_s: dict[str, float] = {}

    @property
    def is_waiting(self) -> bool:
        """Whether a present worker has not responded yet."""
        return bool(self._awaited)

    @property
    def is_empty(self) -> bool:
        """Whether there is neither a worker that may be given runs nor a busy one.

        Those that may be given runs are in `ready`. A busy worker is at work on a run of another command, or
        leaving. One that has not responded yet does not count.
        """
        return not self.ready and not self._busy

    def is_busy(self, address: str) -> bool:
        """Whether the worker was busy when it was last met."""
        return address in self._busy

    def at_work(self, experiment: str | None = None) -> list[str]:
        """Addresses of the workers that have a job; if `experiment` is given, a job of that experiment."""
        jobs = {address: worker.job for address, worker in self.ready.items() if worker.job is not None}
        return [address for address, job in jobs.items() if experiment in (None, job.run.experiment)]

    def free(self) -> Iterator[tuple[str, Worker]]:
        """The workers that may be given runs and have no job, by address."""
        for address, worker in self.ready.items():
            if worker.job is None:
                yield address, worker

    def welcome(self) -> None:
        """Meet new workers, meet busy and unresponsive ones again, and forget free ones that have gone."""
        present = self._pool.addresses()
        for addresses in (self._met, self._awaited, self._busy):
            addresses &= set(present)
        for address in [address for address, _ in self.free() if address not in present]:
            del self.ready[address]
        now_s = self._clock()
        for address, again_s in list(self._meet_again_s.items()):
            if now_s >= again_s:
                del self._meet_again_s[address]
                self._met.discard(address)
        for address in present:
            if address not in self._met:
                self._met.add(address)
                self._awaited.add(address)
                self._pool.meet(address)

    def responded(self, address: str, facts: Facts | None) -> bool:
        """Handle the response of a worker that was met (None: no response).

        Returns whether the worker is free, so that it is ready if it is fit.
        """
        self._awaited.discard(address)
        self._busy.discard(address)
        if address in self.ready:
            return False  # it was out of reach for a moment, and still has its job
        if facts is None:
            self._meet_again(address)
            return False
        if facts.is_busy and facts.refusal is None:
            self._busy.add(address)
            self._meet_again(address)
            return False
        return True

    def forget(self, address: str) -> None:
        """Remove a worker that was stopped. It begins no job until it is met again, which `welcome` does."""
        del self.ready[address]
        self._met.discard(address)

    def lose(self, address: str) -> None:
        """Remove a lost worker. If one is present at its address later, it is met."""
        del self.ready[address]
        self._meet_again(address)

    def _meet_again(self, address: str) -> None:
        self._meet_again_s[address] = self._clock() + MEET_AGAIN_S
