from __future__ import annotations

import threading

import pytest
import torch

from executor.parallel import Threads


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_every_item_is_done_once(threads: int) -> None:
    done: list[int] = []
    Threads(threads).run(done.append, range(20))
    assert sorted(done) == list(range(20))


def test_as_many_jobs_as_threads_run_at_once() -> None:
    lock, meeting = threading.Lock(), threading.Barrier(2, timeout=60)
    running, most = 0, 0

    def job(_: int) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        meeting.wait()  # passes only when two are here
        with lock:
            running -= 1

    Threads(2).run(job, range(8))
    assert most == 2


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_first_error_in_order_is_raised_and_later_jobs_are_skipped(threads: int) -> None:
    done: list[int] = []

    def job(item: int) -> None:
        if item in (1, 2):
            raise ValueError(f"item {item}")
        done.append(item)

    parallel = Threads(threads)
    with pytest.raises(ValueError, match="item 1"):
        parallel.run(job, range(100_000))
    assert len(done) < 99_998
    parallel.run(done.append, [7000, 8000])
    assert sorted(done)[-2:] == [7000, 8000]


def test_an_exit_in_a_helper_thread_is_raised() -> None:
    caller, met = threading.get_ident(), threading.Barrier(2)

    def job(item: int) -> None:
        met.wait(timeout=60)  # both threads have an item
        if threading.get_ident() != caller:
            raise SystemExit(4)

    with pytest.raises(SystemExit):
        Threads(2).run(job, range(2))


def test_torch_computes_with_one_thread_in_all_of_them() -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        parallel, thread_counts = Threads(2), []
        parallel.run(lambda _: thread_counts.append(torch.get_num_threads()), range(4))
        assert thread_counts == [1] * 4
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)
