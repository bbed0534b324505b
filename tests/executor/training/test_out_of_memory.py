from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from emulator.arrays import Ints
from emulator.errors import ResumableError
from executor.training.out_of_memory import OutOfMemory, out_of_memory_named, ran_out_of_memory

CPU = RuntimeError(
    "[enforce fail at alloc_cpu.cpp:1] DefaultCPUAllocator: can't allocate memory: you tried 1"
)
KINDS = [MemoryError("no room"), torch.OutOfMemoryError("CUDA out of memory"), CPU]


class Job:
    """Has memory for `room` members at once; records the sizes it `tried` and the members it has `done`."""

    def __init__(self, room: int, error: Exception) -> None:
        self.room, self.error = room, error
        self.tried: list[int] = []
        self.done: list[int] = []

    def __call__(self, members: Ints) -> None:
        self.tried.append(len(members))
        if len(members) > self.room:
            raise self.error
        self.done += members.tolist()


@pytest.mark.parametrize("error", KINDS)
def test_a_group_that_does_not_fit_is_done_in_halves_as_often_as_it_takes(error: Exception) -> None:
    job, out_of_memory = Job(3, error), OutOfMemory("halve", chunk=10)
    out_of_memory.run(job, np.arange(10, 20))
    assert job.done == list(range(10, 20))
    assert job.tried == [10, 5, 2, 3, 5, 2, 3]
    assert out_of_memory.halved == 3


@pytest.mark.parametrize("error", KINDS)
def test_the_policy_stop_raises_an_error_that_names_the_remedies(error: Exception) -> None:
    out_of_memory = OutOfMemory("stop", chunk=10)
    with pytest.raises(
        ResumableError, match=r"training 10 clients side by side, executor\.chunk = 10"
    ) as stopped:
        out_of_memory.run(Job(3, error), np.arange(10))
    assert 'executor.on_out_of_memory = "halve"' in str(stopped.value)
    assert "\n" not in str(stopped.value)
    assert out_of_memory.halved == 0


def test_a_client_that_does_not_fit_alone_stops() -> None:
    with pytest.raises(ResumableError, match="training a single client"):
        OutOfMemory("halve", chunk=4).run(Job(0, CPU), np.arange(4))


@pytest.mark.parametrize("policy", ["stop", "halve"])
def test_any_other_error_is_passed_on(policy: Any) -> None:
    error = RuntimeError("shapes cannot be multiplied")
    assert not ran_out_of_memory(error)
    with pytest.raises(RuntimeError, match="shapes"):
        OutOfMemory(policy, chunk=4).run(Job(0, error), np.arange(4))
    with pytest.raises(RuntimeError, match="shapes"), out_of_memory_named("evaluating"):
        raise error


@pytest.mark.parametrize("error", KINDS)
def test_elsewhere_the_error_is_resumable_and_names_the_operation(error: Exception) -> None:
    with (
        pytest.raises(ResumableError, match=r"^out of memory while scoring models"),
        out_of_memory_named("scoring models"),
    ):
        raise error
