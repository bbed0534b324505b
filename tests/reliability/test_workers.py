"""Who trains decides no bit of a log: this process, workers that live or die, or the ranks of torchrun."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path

import pytest

from executor.workers.pool import Pool
from executor.workers.processes import WorkerProcess
from experiments.crew import WORKER_MODULE, Crew
from experiments.planned_run import PlannedRun, Reached
from experiments.runner import plan_run, run_plan
from tests.experiments.small import Story, small, write_small
from tests.reliability.conftest import WorldOf
from tests.reliability.rows import ARMS, row
from tests.reliability.stops import Stopped

SHORT = ("lane", "feddrift", "adam-by-step", "aue")
SWEEP = [
    *(pytest.param(name, workers) for name in SHORT for workers in (2,)),
    *(pytest.param("lane", workers) for workers in (1, 4)),
    *(pytest.param(name, workers, marks=pytest.mark.sweep) for name in ARMS for workers in (1, 2, 4)),
]
COHORTS = {"executor": {"chunk": 2}}
"""So that there are several in a round."""

LOOPBACK = "0100007F"  # 127.0.0.1, as the kernel writes it
ROOT = Path(__file__).resolve().parents[2]
PoolOf = Callable[[int], Pool]


@pytest.fixture(scope="module")
def pool_of() -> Iterator[PoolOf]:
    with ExitStack() as stack:

        @cache
        def pool_of(workers: int) -> Pool:
            hires = [lambda: WorkerProcess(WORKER_MODULE)] * workers
            pool = stack.enter_context(Pool(hires, timeout_s=60))
            pool.wait_for_all()
            return pool

        yield pool_of


@pytest.mark.parametrize(("name", "workers"), SWEEP)
def test_a_log_is_the_same_by_any_number_of_workers(
    name: str, workers: int, world_of: WorldOf, pool_of: PoolOf, tmp_path: Path
) -> None:
    experiment, world = row(name, **COHORTS), world_of(name)
    alone = Stopped(experiment, world, tmp_path / "alone").play()
    crew = Crew(experiment, tmp_path, pool_of(workers))
    arm = experiment.arm[0]
    together = Stopped(experiment, world, tmp_path / "together", lambda: crew.executor(arm, world))
    assert together.play() == alone


def run(tmp_path: Path, name: str, workers: int, kill: int = 0, **changes: object) -> tuple[bytes, list[str]]:
    """The logs of the small experiment's two arms; `kill` workers die on the way, two rounds apart."""
    experiment = small(executor={"workers": workers, "chunk": 1}, **changes)
    plan = plan_run(experiment, tmp_path / name, None, Path, fresh=False)
    killing = Killing(kill)
    run_plan(plan, killing)
    logs = b"".join(plan.directory.log_path(arm.name, 0).read_bytes() for arm in experiment.arm)
    assert killing.killed == kill
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    peak = plan.directory.read_timing(experiment.arm[-1].name, 0)["peak_memory_bytes"]
    assert (peak > own) == (workers > 0)
    lost = [told for told in killing.told if "workers were lost and replaced" in str(told)]
    assert bool(lost) == (kill > 0)
    return logs, [str(path.name) for path in (tmp_path / name).iterdir()]


class Killing(Story):
    """Kills a worker of this process at the end of every other round, until it is enough."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self._times = times
        self._others = children(os.getpid(), WORKER_MODULE)  # those of other tests
        self.killed = 0

    def round_done(self, run: PlannedRun, reached: Reached) -> None:
        super().round_done(run, reached)
        if self.killed < self._times and self.rounds % 2:
            # Those that are up answer; the others are on their way.
            victims = sorted(set(children(os.getpid(), WORKER_MODULE)) - set(self._others))
            if victims:
                os.kill(victims[self.killed % len(victims)], signal.SIGKILL)
                self.killed += 1


def children(parent: int, module: str) -> list[int]:
    """Ids of the processes of `module` that `parent` started."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            is_child = (folder / "stat").read_text().rpartition(")")[2].split()[:2] in (
                [state, str(parent)] for state in "RSD"
            )
            if folder.name.isdigit() and is_child and module.encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:  # gone meanwhile, or none of ours
            continue
    return found


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_killing_a_worker_ten_times_changes_no_bit(tmp_path: Path) -> None:
    rounds = {"rounds": 40}
    others = children(os.getpid(), WORKER_MODULE)
    alone, files = run(tmp_path, "alone", 0, round=rounds)
    killed, also = run(tmp_path, "killed", 2, kill=10, round=rounds)
    assert killed == alone
    assert sorted(also) == sorted(files)
    assert children(os.getpid(), WORKER_MODULE) == others


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize(("workers", "addresses"), [(0, set()), (1, {LOOPBACK})])
def test_nothing_listens_without_workers_and_with_them_on_loopback_alone(
    workers: int, addresses: set[str], tmp_path: Path
) -> None:
    config = write_small(tmp_path, round={"rounds": 40})
    command = [sys.executable, "-m", "experiments.cli", "run", str(config), "--out", str(tmp_path / "out")]
    run = subprocess.Popen([*command, f"--workers={workers}"], cwd=ROOT, stdout=subprocess.DEVNULL)
    found: set[str] = set()
    looks, polling = 0, threading.Event()
    while run.poll() is None:
        for pid in [run.pid, *children(run.pid, WORKER_MODULE)]:
            found |= listening(pid)
        looks += 1
        polling.wait(0.02)
    assert run.returncode == 0
    assert looks > 10
    assert found == addresses


def listening(pid: int) -> set[str]:
    """The addresses, in the kernel's hexadecimal, that a process listens on."""
    own, found = set(), set()
    try:
        tables = [Path(f"/proc/{pid}/net/{name}").read_text() for name in ("tcp", "tcp6")]
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):  # closed meanwhile
                own.add(str(link.readlink()))
    except OSError:  # it is gone
        return set()
    for line in [line for table in tables for line in table.splitlines()[1:]]:
        fields = line.split()
        if fields[3] == "0A" and f"socket:[{fields[9]}]" in own:
            found.add(fields[1].partition(":")[0])
    return found


def torchrun(out: Path, config: Path, *options: str) -> subprocess.Popen[str]:
    """`driftscale run` under torchrun, as on one of its machines."""
    command = [sys.executable, "-m", "torch.distributed.run", *options, "-m", "experiments.cli"]
    return subprocess.Popen(
        [*command, "run", str(config), "--out", str(out)],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@pytest.mark.slow
@pytest.mark.parametrize("each", [1, pytest.param(2, marks=pytest.mark.sweep)])
def test_torchrun_over_two_hosts_writes_the_same_log(each: int, tmp_path: Path) -> None:
    config = write_small(tmp_path, executor={"chunk": 1})
    alone, _ = run(tmp_path, "alone", 0)
    options = ["--nnodes=2", f"--nproc-per-node={each}", "--master-addr=127.0.0.1"]
    options.append(f"--master-port={free_port()}")
    hosts = [torchrun(tmp_path / "job", config, *options, f"--node-rank={host}") for host in (0, 1)]
    said = [host.communicate(timeout=300)[1] for host in hosts]
    assert [host.returncode for host in hosts] == [0, 0], said
    logs = [tmp_path / "job" / arm / "seed-0" / "log.jsonl" for arm in ("global", "fielding")]
    assert b"".join(log.read_bytes() for log in logs) == alone


@pytest.mark.sweep
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_job_that_loses_a_rank_is_started_again_and_goes_on(tmp_path: Path) -> None:
    changes = {"round": {"rounds": 400}, "checkpoint": {"every_rounds": 5}}
    config = write_small(tmp_path, executor={"chunk": 1}, **changes)
    alone, _ = run(tmp_path, "alone", 0, **changes)
    out = tmp_path / "job"
    job = torchrun(out, config, "--standalone", "--nproc-per-node=2", "--max-restarts=3")
    log = out / "global" / "seed-0" / "log.jsonl"
    polling = threading.Event()
    while job.poll() is None and (not log.is_file() or log.read_bytes().count(b"\n") < 60):
        polling.wait(0.01)
    ranks = [pid for pid in children(job.pid, "experiments.cli") if b"RANK=1" in environment(pid)]
    os.kill(ranks[0], signal.SIGKILL)
    said = job.communicate(timeout=300)[1]
    assert job.returncode == 0, said
    assert "going on from round" in said
    logs = [out / arm / "seed-0" / "log.jsonl" for arm in ("global", "fielding")]
    assert b"".join(path.read_bytes() for path in logs) == alone


def environment(pid: int) -> list[bytes]:
    return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
