"""Connects the ranks of a job that torchrun started, and gathers arrays between them by gloo.

The content and the order of the exchanges belong to `executor.ranks`.
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
from typing import TYPE_CHECKING

from emulator.errors import ConfigurationError, ResumableError
from executor.ranks import FAR_BYTES, NEAR_BYTES, Bytes, LostError, Ranks

if TYPE_CHECKING:  # not every build of torch has it, and a run in one process does not need it
    from torch._C._distributed_c10d import Store

CONNECT_S = 300.0  # limit for all ranks to connect; rank 0 may inspect its run directory first

LEAST_NAP_S, MOST_NAP_S, NAPS = 20e-6, 1e-3, 16  # a nap lasts a 16th of the wait so far, within limits


@dataclass(frozen=True)
class Job:
    """A job that torchrun started, as seen by its rank `rank` of `size`."""

    rank: int
    size: int
    on_loopback: bool
    attempt: str = "0"

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Job | None:
        """The job that torchrun's environment variables describe; None without torchrun, or with one rank.

        Raises ConfigurationError for values of RANK and WORLD_SIZE that torchrun would not set.
        """
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
        """The key-value store through which the ranks find one another.

        Raises ConfigurationError if a variable that torchrun sets is missing or malformed, ResumableError if
        the store cannot be reached.
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
        """The error to raise when not all ranks have connected within `CONNECT_S`; `error` is the cause."""
        return ResumableError(
            f"rank {self.rank} of {self.size}: the others do not come up in {CONNECT_S:g} s "
            f"({_first_line(error)})"
        )


def file_store(path: str, size: int) -> Store:
    """A store for `size` ranks on one machine, in the file `path`: it needs no listening socket."""
    from torch._C._distributed_c10d import FileStore

    return FileStore(path, size)


def here() -> Job | None:
    """The job that this process belongs to; None without torchrun, or with one rank.

    Raises ConfigurationError as `Job.from_environment`.
    """
    return Job.from_environment(os.environ)


def join(
    job: Job,
    store: Store,
    wants_stop: Callable[[], bool] = lambda: False,
    spent: Callable[[], tuple[float, float]] = lambda: (0.0, 0.0),
) -> Ranks:
    """The ranks of `job`, once all have connected; raises ResumableError if one does not.

    A job on loopback listens on the loopback interface alone; any other listens on the interface that
    torch.distributed chooses, which GLOO_SOCKET_IFNAME sets. `wants_stop` and `spent`: see `Ranks`.
    """
    try:
        gather = GlooGather(job, store)
    except RuntimeError as error:
        raise job.alone(error) from error
    return Ranks(job.rank, job.size, gather, wants_stop, spent, NEAR_BYTES if job.on_loopback else FAR_BYTES)


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
        prefixed = PrefixStore(f"driftscale/{job.attempt}", store)
        self._size = job.size
        self._store = store  # kept alive: another rank may still read it while it connects
        self._group = ProcessGroupGloo(prefixed, job.rank, job.size, options)

    def __call__(self, array: Bytes, timeout_s: float) -> Sequence[Bytes]:
        import torch
        from torch._C._distributed_c10d import AllgatherOptions

        local = torch.from_numpy(array)
        gathered = [torch.empty_like(local) for _ in range(self._size)]
        options = AllgatherOptions()
        options.timeout = timedelta(seconds=timeout_s)
        try:
            work = self._group.allgather([gathered], [local], options)  # type: ignore[attr-defined]
            _nap_until(work.is_completed)
            work.wait()
        except RuntimeError as error:
            raise LostError(_first_line(error)) from error
        return [tensor.numpy() for tensor in gathered]


def _nap_until(is_completed: Callable[[], bool]) -> None:
    """Wait until `is_completed()`, in Python rather than in torch, so that a signal is handled at once."""
    start_s = time.perf_counter()
    while not is_completed():
        waited_s = time.perf_counter() - start_s
        time.sleep(min(max(waited_s / NAPS, LEAST_NAP_S), MOST_NAP_S))


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Within it SIGINT, SIGTERM and SIGHUP end the process at once, unless the process ignores them.

    For the time before the ranks have connected, when there is nothing to store. No effect outside the main
    thread.
    """
    numbers = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
    if threading.current_thread() is not threading.main_thread():
        numbers = []  # only the main thread may have handlers
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:  # nohup ignores SIGHUP on purpose
                signal.signal(number, signal.SIG_DFL)
        yield
    finally:
        for number, handler in before.items():
            if handler is not None:
                signal.signal(number, handler)


def _is_loopback(address: str) -> bool:
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


def _first_line(error: Exception) -> str:
    line = str(error).partition("\n")[0]
    return line.partition("] ")[2].partition(". This is")[0] or line
