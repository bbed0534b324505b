from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from executor.workers.channel import LostError
from executor.workers.processes import WorkerProcess
from executor.workers.ranks import Job
from tests.executor.workers.conftest import MODULE

COORDINATOR = f"""
import sys, time
from executor.workers.processes import WorkerProcess
worker = WorkerProcess("{MODULE}")
print(worker.pid, flush=True)
time.sleep(60)
"""


def is_there(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2][:3]
    except FileNotFoundError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_worker_ends_with_its_coordinator_however_that_ends() -> None:
    coordinator = subprocess.Popen([sys.executable, "-c", COORDINATOR], stdout=subprocess.PIPE, text=True)
    assert coordinator.stdout is not None
    worker = int(coordinator.stdout.readline())
    assert is_there(worker)
    os.kill(worker, signal.SIGINT)  # Ctrl-C is none of its business
    coordinator.send_signal(signal.SIGKILL)
    coordinator.wait()
    coordinator.stdout.close()
    until = time.monotonic() + 60
    while is_there(worker) and time.monotonic() < until:
        time.sleep(0.01)
    assert not is_there(worker)


def test_a_worker_that_does_not_start_says_why() -> None:
    with pytest.raises(LostError, match=r"exit code 1: .*No module named tests\.none"):
        WorkerProcess("tests.none")


def test_its_end_has_a_reason_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    worker = WorkerProcess(MODULE)
    assert list(tmp_path.iterdir()) == []
    os.kill(worker.pid, signal.SIGSEGV)
    assert worker.end(patience_s=10) == "killed by SIGSEGV"
    assert worker.end() == "killed by SIGSEGV"


@pytest.mark.parametrize("environment", [{}, {"RANK": "0", "WORLD_SIZE": "1"}, {"WORLD_SIZE": "4"}])
def test_without_torchrun_or_with_one_rank_there_is_no_job(environment: dict[str, str]) -> None:
    assert Job.of(environment) is None


@pytest.mark.parametrize(
    ("address", "on_loopback"),
    [("127.0.0.1", True), ("localhost", True), ("::1", True), ("10.0.0.7", False), ("node-1", False)],
)
def test_ranks_stay_on_loopback_where_the_master_is_there(address: str, on_loopback: bool) -> None:
    job = Job.of({"RANK": "2", "WORLD_SIZE": "3", "MASTER_ADDR": address})
    assert job is not None
    assert (job.is_executor, job.size, job.on_loopback) == (True, 3, on_loopback)
