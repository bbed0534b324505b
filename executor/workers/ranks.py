"""Executors that torchrun started, here or on other machines: how the ranks of a job find one another.

Rank 0 is the coordinator, every other one an executor. One that is lost ends the job; torchrun starts it
again, as often as it was told to, and the run goes on from its checkpoint.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING

from emulator.errors import ConfigurationError, ResumableError
from executor.workers.channel import COORDINATOR, WORKER, Channel, LostError, connect

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Store

FAREWELL_S = 30.0  # for a rank to be done with what nobody waits for any more


@dataclass(frozen=True)
class Job:
    """The ranks that torchrun started, as the one at hand sees them."""

    rank: int
    size: int
    on_loopback: bool
    attempt: str = "0"

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Job | None:
        """What torchrun says in the environment; None without torchrun, or with one rank."""
        size = environment.get("WORLD_SIZE", "1")
        if "RANK" not in environment or size == "1":
            return None
        try:
            rank, ranks = int(environment["RANK"]), int(size)
            if not 0 <= rank < ranks:
                raise ValueError("a rank is less than the number of ranks")
        except ValueError as error:
            raise ConfigurationError(
                f"RANK = {environment['RANK']!r}, WORLD_SIZE = {size!r}: not what torchrun sets ({error})"
            ) from error
        attempt = environment.get("TORCHELASTIC_RESTART_COUNT", "0")
        return cls(rank, ranks, _is_loopback(environment.get("MASTER_ADDR", "")), attempt)

    @property
    def is_executor(self) -> bool:
        return self.rank > 0

    def store(self) -> Store:
        """Where the ranks find one another."""
        from torch.distributed.rendezvous import rendezvous

        store: Store = next(iter(rendezvous("env://")))[0]
        return store

    def channel(self, store: Store, executor: int) -> Channel:
        """One end of the channel between the coordinator and the rank `executor`; LostError where the other
        never comes."""
        from torch._C._distributed_c10d import PrefixStore

        own = PrefixStore(f"driftscale/{self.attempt}/{executor}", store)
        return connect(own, WORKER if self.is_executor else COORDINATOR, loopback=self.on_loopback)


class RankWorker:
    """An executor of another rank, as the coordinator has it; there is no other in its place."""

    restarts = False
    pid: int | None = None

    def __init__(self, job: Job, store: Store, rank: int) -> None:
        try:
            self.channel = job.channel(store, rank)
        except LostError as error:
            raise ResumableError(f"rank {rank} of {job.size} does not come up: {error}") from error
        self._rank = rank

    def hand_over(self, number: int, descriptors: Sequence[int]) -> None:
        raise AssertionError("files stay on their machine")

    def end(self, patience_s: float = 0.0) -> str:
        """Tell it that there is no more to do, if it listens."""
        try:
            self.channel.send({"kind": "end"}, FAREWELL_S)
        except LostError:
            return f"rank {self._rank} is gone"
        return f"rank {self._rank} was told to end"


def wait_for_the_coordinator() -> None:
    """From here on a stop is the coordinator's to decide: it may want the step at hand to be finished."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def here() -> Job | None:
    """The job that this process belongs to, if torchrun started it."""
    return Job.of(os.environ)


def beside() -> list[int]:
    """Process ids of the other ranks that the same torchrun has started on this machine."""
    import psutil

    parent = psutil.Process().parent()
    children = [] if parent is None else parent.children()
    return [child.pid for child in children if child.pid != os.getpid()]


def _is_loopback(address: str) -> bool:
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"
