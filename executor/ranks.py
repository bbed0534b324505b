"""The ranks of one job: how they find one another, and the one exchange that they make.

torchrun starts the ranks, here or on several machines. Every rank plays the same deterministic run, so that
all of them make the same exchanges in the same order: each hands in a tree, and each gets those of all. A
rank that fails makes one exchange in which it says so instead, and all raise its error: their count stays in
step.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from emulator.errors import ConfigurationError, EmulatorError, ResumableError
from emulator.state_tree import Tree, from_bytes, to_bytes
from executor.failures import packed_error, unpacked_error

if TYPE_CHECKING:  # not every torch has it, and a run in one process needs none
    from torch._C._distributed_c10d import Store

Bytes = npt.NDArray[np.uint8]

CONNECT_S = 300.0  # for all ranks to have found one another; rank 0 may look at its run directory before
FIRST_TIMEOUT_S = 600.0  # until rank 0 has told the others its executor.worker_timeout_s

NEAR_BYTES, FAR_BYTES = 2**17, 2**12
"""Of a body that goes with its header, on one machine and between several. A second gathering costs a tenth
of a millisecond on one machine, where bytes cost next to nothing."""

MOST_BYTES = 2**33
"""Of one body. What a length claims is looked at before memory for it is allocated."""

LEAST_NAP_S, MOST_NAP_S, NAPS = 20e-6, 1e-3, 16  # of the wait so far, a nap is a sixteenth

NO_DIGEST = bytes(32)

HEADER = np.dtype(
    [
        ("sequence", "<i8"),
        ("well", "<i8"),
        ("asked", "<i8"),
        ("length", "<i8"),
        ("cpu_s", "<f8"),
        ("memory_bytes", "<f8"),
        ("digest", "V32"),
    ]
)


@dataclass(frozen=True)
class Job:
    """The ranks that torchrun started, as one of them sees them."""

    rank: int
    size: int
    on_loopback: bool
    attempt: str = "0"

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Job | None:
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

    def store(self) -> Store:
        """Where torchrun lets the ranks find one another.

        ConfigurationError where what it sets is not all there, ResumableError where nobody answers.
        """
        from torch.distributed.rendezvous import rendezvous

        try:
            store: Store = next(iter(rendezvous("env://", timeout=timedelta(seconds=CONNECT_S))))[0]
        except ValueError as error:
            raise ConfigurationError(
                f"RANK and WORLD_SIZE are set, but not all else that torchrun sets ({_first_line(error)}); "
                f"start the command by torchrun, or unset them"
            ) from error
        except RuntimeError as error:
            raise self.alone(error) from error
        return store

    def alone(self, error: RuntimeError) -> ResumableError:
        """The others were not found: `error` says why."""
        return ResumableError(
            f"rank {self.rank} of {self.size}: the others do not come up in {CONNECT_S:g} s "
            f"({_first_line(error)})"
        )


def file_store(path: str, size: int) -> Store:
    """Where `size` ranks on one machine find one another, by a file at `path`: nothing listens for it."""
    from torch._C._distributed_c10d import FileStore

    return FileStore(path, size)


def here() -> Job | None:
    """The job that this process belongs to, if torchrun started it."""
    return Job.from_environment(os.environ)


class LostError(Exception):
    """Another rank is gone, or silent for too long."""


class Gather(Protocol):
    """Hands in an array, of the same length in every rank, and returns those of all ranks, in their order;
    LostError after `timeout_s`, or when a rank is gone."""

    def __call__(self, own: Bytes, timeout_s: float) -> Sequence[Bytes]: ...


@dataclass
class Spent:
    """What the other ranks have spent, as of the last exchange: CPU seconds, and the sum of their peaks of
    memory."""

    cpu_s: float = 0.0
    memory_bytes: float = 0.0


class Ranks:
    """A joined job, as the rank `rank` of `size` has it.

    `asks` says whether this rank was asked to stop, and `spent` the CPU seconds and the peak of memory of
    this process so far. `asked` is what all ranks agree on: that one of them was asked to stop before its
    last exchange. `ends` says of an error that all have met whether it ends the job or only the run at hand,
    and `is_alone` that another rank is lost, which ends it too.
    """

    def __init__(
        self,
        rank: int,
        size: int,
        gather: Gather,
        asks: Callable[[], bool] = lambda: False,
        spent: Callable[[], tuple[float, float]] = lambda: (0.0, 0.0),
        inline_bytes: int = NEAR_BYTES,
    ) -> None:
        self.rank, self.size = rank, size
        self.timeout_s = FIRST_TIMEOUT_S
        self.asked = False
        self.ends = False
        self.is_alone = False
        self.others = Spent()
        self.exchanges = 0
        self._gather = gather
        self._asks = asks
        self._spent = spent
        self._inline_bytes = inline_bytes
        self._met: BaseException | None = None

    def exchange(self, content: Tree, digest: bytes = NO_DIGEST, doing: str = "") -> list[Tree]:
        """What each rank hands in, in their order.

        Raises the error of the lowest rank that has one to tell, in all ranks. ResumableError when a rank
        computes something else than rank 0, as its `digest` of what it is `doing` shows, or is gone, or
        silent for `timeout_s`.
        """
        try:
            headers, bodies = self._exchange(content, True, digest)
        except LostError as error:
            self._met, self.is_alone = ResumableError(str(error)), True
            raise self._met from error
        if (headers["well"] == 0).any():
            self._met = self._told(headers, bodies)
            raise self._met
        others = np.flatnonzero(headers["digest"] != headers["digest"][0])
        if len(others):
            raise self.agreed(
                ResumableError(
                    f"rank {others[0]} computes something else than rank 0{f', {doing}' if doing else ''}: "
                    f"another CPU or another version of a library rounds differently"
                )
            )
        return bodies

    @contextmanager
    def telling(self, *, ends: bool) -> Iterator[None]:
        """Within it, an error that this rank alone has met is told to the others, by an exchange that raises
        it in all, or that of a lower rank. What they have met together, or agreed on, is raised as it is.

        `ends` says whether it ends the job, or only the run at hand.
        """
        try:
            yield
        except BaseException as error:
            if self._is_met(error) or (isinstance(error, KeyboardInterrupt) and self.asked):
                raise
            try:
                headers, bodies = self._exchange({"ends": ends, **packed_error(error)}, False, NO_DIGEST)
            except LostError:
                self.is_alone = True
                raise error from None
            told = self._told(headers, bodies)
            self._met = error if headers["well"][: self.rank].all() else told
            if self._met is error:
                raise
            raise told from error

    def _is_met(self, error: BaseException | None) -> bool:
        """Whether `error`, or what it was made of, is what all have met."""
        while error is not None and error is not self._met:
            error = error.__cause__
        return error is not None

    def agreed(self, error: EmulatorError) -> EmulatorError:
        """`error`, which every rank raises of what all were told: nobody needs to tell it, and it ends the
        job."""
        self._met, self.ends = error, True
        return error

    def _told(self, headers: npt.NDArray[np.void], bodies: Sequence[Tree]) -> BaseException:
        """The error of the lowest rank that is not well."""
        rank = int(np.flatnonzero(headers["well"] == 0)[0])
        body = dict(bodies[rank])
        self.ends = bool(body.pop("ends"))
        return unpacked_error(body, f"in rank {rank} of {self.size}")

    def _exchange(self, content: Tree, well: bool, digest: bytes) -> tuple[npt.NDArray[np.void], list[Tree]]:
        """The headers and the bodies of all ranks, whatever is in them."""
        body = b"" if content is None else to_bytes(content)
        cpu_s, memory_bytes = self._spent()
        header = np.array(
            [(self.exchanges, well, self._asks(), len(body), cpu_s, memory_bytes, digest)], dtype=HEADER
        )
        self.exchanges += 1
        first = np.zeros(HEADER.itemsize + self._inline_bytes, dtype=np.uint8)
        first[: HEADER.itemsize] = header.view(np.uint8)
        _put(first[HEADER.itemsize :], body[: self._inline_bytes])
        firsts = self._gathered(first)
        headers = np.concatenate([one[: HEADER.itemsize] for one in firsts]).view(HEADER)
        self._look_at(headers)
        try:
            return headers, self._bodies(content, body, headers, firsts)
        except MemoryError as error:  # others wait for what this rank cannot send: it can tell them nothing
            raise LostError(f"no memory for a message of {headers['length'].max()} bytes") from error

    def _bodies(
        self, content: Tree, body: bytes, headers: npt.NDArray[np.void], firsts: Sequence[Bytes]
    ) -> list[Tree]:
        """What all have handed in, once the rest of long bodies is here; `body` is that of this rank."""
        parts = [[one[HEADER.itemsize :]] for one in firsts]
        more = int(headers["length"].max()) - self._inline_bytes
        if more > 0:
            second = np.empty(more, dtype=np.uint8)
            _put(second, memoryview(body)[self._inline_bytes :])
            for part, one in zip(parts, self._gathered(second), strict=True):
                part.append(one)
        bodies = []
        for rank, (part, length) in enumerate(zip(parts, headers["length"].tolist(), strict=True)):
            if rank == self.rank:
                bodies.append(content)
            elif length <= self._inline_bytes:
                bodies.append(self._tree(part[0][:length].tobytes()))
            else:
                bodies.append(self._tree(np.concatenate(part)[:length].tobytes()))
        return bodies

    def _gathered(self, own: Bytes) -> Sequence[Bytes]:
        try:
            return self._gather(own, self.timeout_s)
        except LostError as error:
            who = f"rank {1 - self.rank}" if self.size == 2 else f"another of the {self.size} ranks"
            raise LostError(
                f"{who} is gone, or silent for executor.worker_timeout_s = {self.timeout_s:g} ({error})"
            ) from error

    def _look_at(self, headers: npt.NDArray[np.void]) -> None:
        """Take what they say of stops and of what was spent; LostError where they are no headers of the same
        exchange."""
        if (headers["sequence"] != self.exchanges - 1).any():
            told = ", ".join(str(number) for number in headers["sequence"])
            raise LostError(f"ranks are out of step, in exchanges {told}: a mistake in driftscale")
        if headers["length"].min() < 0 or headers["length"].max() > MOST_BYTES:
            raise LostError(f"a message of {headers['length'].max()} bytes: must be at most {MOST_BYTES}")
        self.asked = self.asked or bool(headers["asked"].any())
        others = np.arange(self.size) != self.rank
        self.others = Spent(
            float(headers["cpu_s"][others].sum()), float(headers["memory_bytes"][others].sum())
        )

    def _tree(self, content: bytes) -> Tree:
        if not content:
            return None
        try:
            return from_bytes(content)
        except ValueError as error:
            raise LostError(f"a message that is none ({error})") from error


def join(
    job: Job,
    store: Store,
    asks: Callable[[], bool] = lambda: False,
    spent: Callable[[], tuple[float, float]] = lambda: (0.0, 0.0),
) -> Ranks:
    """The ranks of `job`, once all are there; ResumableError where one never comes.

    On loopback they listen on the loopback interface alone, else on the one that torch.distributed takes,
    which GLOO_SOCKET_IFNAME names.
    """
    try:
        gather = GlooGather(job, store)
    except RuntimeError as error:
        raise job.alone(error) from error
    return Ranks(job.rank, job.size, gather, asks, spent, NEAR_BYTES if job.on_loopback else FAR_BYTES)


class GlooGather:
    """`Gather` by torch.distributed's gloo."""

    def __init__(self, job: Job, store: Store) -> None:
        from torch._C._distributed_c10d import PrefixStore, ProcessGroupGloo

        options = ProcessGroupGloo._Options()  # type: ignore[attr-defined]
        options._timeout = timedelta(seconds=CONNECT_S)
        options._threads = 1
        device = (
            ProcessGroupGloo.create_device(hostname="127.0.0.1")
            if job.on_loopback
            else ProcessGroupGloo.create_default_device()
        )
        options._devices = [device]
        own = PrefixStore(f"driftscale/{job.attempt}", store)
        self._size = job.size
        self._store = store  # a rank may still look there while it connects
        self._group = ProcessGroupGloo(own, job.rank, job.size, options)

    def __call__(self, own: Bytes, timeout_s: float) -> Sequence[Bytes]:
        import torch
        from torch._C._distributed_c10d import AllgatherOptions

        handed = torch.from_numpy(own)
        found = [torch.empty_like(handed) for _ in range(self._size)]
        options = AllgatherOptions()
        options.timeout = timedelta(seconds=timeout_s)
        try:
            work = self._group.allgather([found], [handed], options)  # type: ignore[attr-defined]
            _nap_until(work.is_completed)
            work.wait()
        except RuntimeError as error:
            raise LostError(_first_line(error)) from error
        return [one.numpy() for one in found]


def _nap_until(is_completed: Callable[[], bool]) -> None:
    """Wait in Python, not within torch: a signal is handled at once."""
    start_s = time.perf_counter()
    while not is_completed():
        waited_s = time.perf_counter() - start_s
        time.sleep(min(max(waited_s / NAPS, LEAST_NAP_S), MOST_NAP_S))


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Within it a signal ends the process: before the ranks are joined there is nothing to store."""
    numbers = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
    if threading.current_thread() is not threading.main_thread():
        numbers = []  # only the main thread may have handlers
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:  # as nohup wants it
                signal.signal(number, signal.SIG_DFL)
        yield
    finally:
        for number, handler in before.items():
            if handler is not None:
                signal.signal(number, handler)


def _put(target: Bytes, content: bytes | memoryview) -> None:
    target[: len(content)] = np.frombuffer(content, dtype=np.uint8)


def _is_loopback(address: str) -> bool:
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


def _first_line(error: Exception) -> str:
    line = str(error).partition("\n")[0]
    return line.partition("] ")[2].partition(". This is")[0] or line
