"""Recognises that memory ran out, and raises a clear error or tries again on each half of a task group."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

import torch

from emulator.arrays import Ints
from emulator.errors import ResumableError

CPU_ALLOCATOR = "can't allocate memory"  # torch has an error type of its own only for accelerators
RESUME_ADVICE = "provide more memory and resume the run"

Policy = Literal["stop", "halve"]


class OutOfMemory:
    """Runs jobs on the members of a task group, with a policy for running out of memory.

    With `policy` "stop", a job that does not fit raises ResumableError. With "halve", it is run on each half
    of the members instead, and on halves of these if need be; a single member that does not fit raises
    ResumableError. `halved` counts the splits.
    """

    def __init__(self, policy: Policy, chunk: int) -> None:
        self.halved = 0
        self._policy = policy
        self._chunk = chunk
        self._counting = threading.Lock()

    def run(self, job: Callable[[Ints], None], members: Ints) -> None:
        """Run `job` on `members`; it may be started again on parts of them after a failed attempt.

        Raises ResumableError if it does not fit and `policy` is "stop", or on a single member.
        """
        problem = _attempt(job, members)
        if problem is None:
            return
        # The memory of the attempt is freed by now.
        if self._policy == "stop" or len(members) == 1:
            raise ResumableError(_advice(problem, len(members), self._chunk, self._policy))
        with self._counting:
            self.halved += 1
        middle = len(members) // 2
        self.run(job, members[:middle])
        self.run(job, members[middle:])


@contextmanager
def out_of_memory_named(doing: str) -> Iterator[None]:
    """Within it, running out of memory raises a ResumableError that names what was being done."""
    problem = None
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not ran_out_of_memory(error):
            raise
        problem = _first_line(error)
    if problem is not None:
        raise ResumableError(f"out of memory while {doing} ({problem}); {RESUME_ADVICE}")


def ran_out_of_memory(error: BaseException) -> bool:
    """Whether `error` is how numpy, torch or Python reports that memory ran out."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and CPU_ALLOCATOR in str(error)


def _attempt(job: Callable[[Ints], None], members: Ints) -> str | None:
    """None if the job is done; the error's first line if memory ran out."""
    try:
        job(members)
    except (MemoryError, RuntimeError) as error:
        if not ran_out_of_memory(error):
            raise
        return _first_line(error)
    return None


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _advice(problem: str, clients: int, chunk: int, policy: Policy) -> str:
    if clients == 1:
        return f"out of memory while training a single client ({problem}); {RESUME_ADVICE}"
    assert policy == "stop"
    return (
        f"out of memory while training {clients} clients side by side, executor.chunk = {chunk} ({problem}); "
        f'provide more memory, or set executor.on_out_of_memory = "halve", and resume the run; with a '
        f"smaller executor.chunk it starts from the beginning"
    )
