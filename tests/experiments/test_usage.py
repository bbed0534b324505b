from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from experiments.usage import LOOK_EVERY_S, Usage

BUSY_S, MEMORY_BYTES = 0.2, 64_000_000

WORKER = f"""
import sys, time
held = bytearray(b"1" * {MEMORY_BYTES})
while time.process_time() < {BUSY_S}:
    pass
print("busy", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def worker() -> Iterator[subprocess.Popen[str]]:
    """A process that has spent BUSY_S seconds, and holds MEMORY_BYTES."""
    started = subprocess.Popen(
        [sys.executable, "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with started:
        assert started.stdout is not None
        assert started.stdout.readline() == "busy\n"
        yield started
        started.kill()


def spend(seconds: float) -> None:
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def test_a_small_run_has_spent_something_and_not_in_ticks() -> None:
    usage = Usage(tuple)
    spend(0.0015)
    assert 0.0015 <= usage.cpu_s < 0.01
    assert usage.peak_memory_bytes > 10_000_000


def test_what_workers_spend_and_hold_counts(worker: subprocess.Popen[str]) -> None:
    pids: list[int] = []
    usage = Usage(lambda: pids)
    before = usage.peak_memory_bytes
    pids.append(worker.pid)
    usage.look()
    assert usage.cpu_s >= BUSY_S - 0.02  # two ticks
    assert usage.peak_memory_bytes >= before + MEMORY_BYTES


def test_what_workers_spent_before_is_another_runs(worker: subprocess.Popen[str]) -> None:
    usage = Usage(lambda: [worker.pid])
    usage.look()
    assert usage.cpu_s < BUSY_S / 2


def test_a_worker_that_is_lost_has_still_spent_what_it_had(worker: subprocess.Popen[str]) -> None:
    pids: list[int] = []
    usage = Usage(lambda: pids)
    pids.append(worker.pid)
    usage.look()
    peak = usage.peak_memory_bytes
    worker.kill()
    worker.wait()
    usage.look()
    assert usage.cpu_s >= BUSY_S - 0.02
    assert usage.peak_memory_bytes >= peak


def test_it_looks_again_only_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s, looks = 100.0, 0

    def pids() -> list[int]:
        nonlocal looks
        looks += 1
        return []

    monkeypatch.setattr("experiments.usage.time.perf_counter", lambda: now_s)
    usage = Usage(pids)
    for after_s, expected in ((0.5, 1), (0.9, 1), (1.0, 2), (1.5, 2), (2.0, 3)):
        now_s = 100.0 + after_s * LOOK_EVERY_S
        usage.look_now_and_then()
        assert looks == expected
