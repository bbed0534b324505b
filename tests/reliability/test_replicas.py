"""The log does not depend on the number of ranks, and a fault in one rank ends all."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

import psutil
import pytest

from executor.ranks import Ranks
from experiments.running.plan import plan_run
from experiments.running.runner import run_plan
from tests.executor.meeting import together
from tests.experiments.small import Story, small, write_small
from tests.processes import forked
from tests.reliability.commands import wait_until
from tests.reliability.conftest import WorldOf
from tests.reliability.replaying import SMALL_GROUPS, play_by_ranks
from tests.reliability.rows import ARMS, row
from tests.reliability.stops import Stopped

LOOPBACK = "0100007F"  # 127.0.0.1, as the kernel writes it
ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 240
STOPPED, BAD_INPUT, INTERRUPTED = 3, 2, 130
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}  # as torchrun sets it


FEW = ("lane", "ifca", "kue", "drift-groups", "faulty", "gradient")
"""Rows that differ in what ranks exchange: updates, scores, models, solver states, lost updates, reports."""


@pytest.fixture(scope="module")
def without_ranks(world_of: WorldOf, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Stopped]:
    """A row that was played in one process without ranks, by name."""

    @cache
    def without_ranks(name: str) -> Stopped:
        run = Stopped(row(name, **SMALL_GROUPS), world_of(name), tmp_path_factory.mktemp("alone"))
        run.play()
        return run

    return without_ranks


@pytest.mark.parametrize(
    ("name", "size"),
    [
        *((name, 2) for name in ARMS),
        *((name, 3) for name in ("scaffold", "ditto", "drift-groups", "buffered-early-stopping")),
        *(pytest.param(name, 1, marks=[] if name in FEW else pytest.mark.sweep) for name in ARMS),
    ],
)
def test_log_and_models_are_the_same_by_any_number_of_ranks(
    name: str, size: int, world_of: WorldOf, without_ranks: Callable[[str], Stopped], tmp_path: Path
) -> None:
    experiment, world = row(name, **SMALL_GROUPS), world_of(name)

    def play(ranks: Ranks) -> bytes | None:
        return play_by_ranks(ranks, experiment, world, tmp_path)

    assert together(size, play) == [without_ranks(name).kept, *[None] * (size - 1)]
    assert (tmp_path / name / "seed-0" / "log.jsonl").read_bytes() == without_ranks(name).log


@pytest.mark.slow
@pytest.mark.parametrize(
    "names",
    [
        pytest.param(FEW, id="few"),
        pytest.param([name for name in ARMS if name not in FEW], id="others", marks=pytest.mark.sweep),
    ],
)
def test_logs_are_the_same_by_ranks_that_are_processes(
    names: Sequence[str], data: Path, without_ranks: Callable[[str], Stopped], tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "tests.reliability.replaying", str(tmp_path / "store")]
    processes = [
        forked.Forked([*command, str(rank), "3", str(data), str(tmp_path), *names], cwd=ROOT, env=ENVIRONMENT)
        for rank in range(3)
    ]
    assert [process.wait(PATIENCE_S) for process in processes] == [0, 0, 0]
    for name in names:
        assert (tmp_path / name / name / "seed-0" / "log.jsonl").read_bytes() == without_ranks(name).log


class RankProcesses:
    """`driftscale run CONFIG --out OUT` by `size` ranks on this machine, as torchrun starts them."""

    def __init__(
        self,
        config: Path,
        out: Path,
        *,
        size: int = 2,
        stops_in: int | None = None,
        limits: str = "",
        options: Mapping[int, Sequence[str]] | None = None,
    ) -> None:
        """Start the ranks.

        Rank 0 stops itself (SIGSTOP) in round `stops_in` and executes the statements `limits` first;
        `options` are command-line options by rank.
        """
        stops = (
            ""
            if stops_in is None
            else f"from tests.reliability import kills; kills.stop_in_round({stops_in})"
        )
        prepare, port = f"{stops}\n{limits}", free_port()
        self.processes = [
            forked.Forked(
                [
                    sys.executable,
                    "-c",
                    f"{prepare if rank == 0 else ''}\nfrom experiments.cli import main; main()",
                    *("run", str(config), "--out", str(out), *(options or {}).get(rank, ())),
                ],
                cwd=ROOT,
                env={
                    **ENVIRONMENT,
                    "RANK": str(rank),
                    "WORLD_SIZE": str(size),
                    "MASTER_ADDR": "127.0.0.1",
                    "MASTER_PORT": str(port),
                },
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank in range(size)
        ]

    def __enter__(self) -> RankProcesses:
        return self

    def __exit__(self, *error: object) -> None:
        for process in self.processes:
            process.kill()
            process.communicate()

    def wait_until_stopped(self) -> None:
        """Wait until rank 0 has stopped itself; all other ranks then wait for it."""
        _, status = os.waitpid(self.processes[0].pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), f"it ended before it was stopped: {status}"

    def signal(self, rank: int, number: signal.Signals) -> None:
        self.processes[rank].send_signal(number)

    def continue_rank_0(self) -> None:
        """Let the stopped rank 0 continue (SIGCONT)."""
        self.signal(0, signal.SIGCONT)

    def wait(self) -> tuple[list[int], list[str]]:
        """Wait for all ranks; returns their exit codes, and their lines about an error or an interruption."""
        stderrs = [process.communicate(timeout=PATIENCE_S)[1] for process in self.processes]
        ends = [
            [line for line in text.splitlines() if line.startswith(("error:", "interrupted"))]
            for text in stderrs
        ]
        return [process.returncode for process in self.processes], ["\n".join(lines) for lines in ends]


def logs(out: Path) -> bytes:
    return b"".join((out / arm / "seed-0" / "log.jsonl").read_bytes() for arm in ("global", "fielding"))


LONG = {"round": {"rounds": 30}, "checkpoint": {"every_rounds": 5}, "executor": {"chunk": 1}}
STOPS_IN = 12


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_small(tmp_path, **LONG)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The logs of the long runs, played in one process."""
    out = tmp_path_factory.mktemp("whole") / "out"
    run_plan(plan_run(small(**LONG), out, None, Path, fresh=False), Story())
    return logs(out)


@pytest.mark.sweep
@pytest.mark.slow
@pytest.mark.parametrize("victim", [0, 1])
def test_a_rank_that_is_killed_ends_the_others_and_the_run_is_resumed(
    victim: int, config: Path, whole: bytes, tmp_path: Path
) -> None:
    with RankProcesses(config, tmp_path / "out", stops_in=STOPS_IN) as ranks:
        ranks.wait_until_stopped()
        ranks.signal(victim, signal.SIGKILL)
        ranks.continue_rank_0()
        codes, errors = ranks.wait()
    survivor = 1 - victim
    assert codes[victim] == -signal.SIGKILL
    assert codes[survivor] == STOPPED
    assert f"rank {victim} is gone" in errors[survivor]
    with RankProcesses(config, tmp_path / "out") as ranks:
        assert ranks.wait() == ([0, 0], ["", ""])
    assert logs(tmp_path / "out") == whole


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rank", "size", "number"),
    [
        pytest.param(0, 2, signal.SIGINT, marks=pytest.mark.sweep),
        (1, 2, signal.SIGTERM),
        pytest.param(2, 3, signal.SIGHUP, marks=pytest.mark.sweep),
    ],
)
def test_a_signal_to_any_rank_stores_the_run_and_ends_all(
    rank: int, size: int, number: signal.Signals, tmp_path: Path
) -> None:
    """Also: ranks on one machine listen on loopback only."""
    config = write_small(tmp_path, **{**LONG, "checkpoint": {"every_rounds": 10_000}})
    with RankProcesses(config, tmp_path / "out", size=size, stops_in=STOPS_IN) as ranks:
        ranks.wait_until_stopped()
        # Rank 1: without torchrun, rank 0 has the store, which listens on all addresses.
        assert sys.platform != "linux" or listening(ranks.processes[1].pid) == {LOOPBACK}
        ranks.signal(rank, number)
        ranks.signal(rank, number)  # torchrun forwards what the terminal has sent already
        ranks.continue_rank_0()
        codes, errors = ranks.wait()
    assert codes == [INTERRUPTED] * size
    assert errors[0].startswith("interrupted; finished runs are kept")
    assert errors[1:] == [""] * (size - 1)
    [checkpoint] = (tmp_path / "out").glob("global/seed-0/checkpoint/*.safetensors")
    assert checkpoint.is_file()


@pytest.mark.sweep
@pytest.mark.slow
def test_a_rank_that_is_silent_is_given_up(tmp_path: Path) -> None:
    timeout_s = {"executor": {"chunk": 1, "worker_timeout_s": 2.0}}
    config = write_small(tmp_path, **{**LONG, **timeout_s})
    with RankProcesses(config, tmp_path / "out", stops_in=STOPS_IN) as ranks:
        ranks.wait_until_stopped()
        ranks.signal(1, signal.SIGSTOP)
        ranks.continue_rank_0()
        _, stderr = ranks.processes[0].communicate(timeout=60)
        assert ranks.processes[0].returncode == STOPPED
        assert "rank 1 is gone, or silent for executor.worker_timeout_s = 2" in stderr


@pytest.mark.sweep
@pytest.mark.slow
def test_a_second_signal_ends_a_rank_at_once_though_another_is_silent(config: Path, tmp_path: Path) -> None:
    with RankProcesses(config, tmp_path / "out", stops_in=STOPS_IN) as ranks:
        ranks.wait_until_stopped()
        ranks.signal(1, signal.SIGSTOP)
        ranks.signal(0, signal.SIGTERM)
        ranks.continue_rank_0()
        polling = threading.Event()
        while ranks.processes[0].poll() is None:
            polling.wait(1.2)
            ranks.signal(0, signal.SIGTERM)
        assert ranks.processes[0].returncode == INTERRUPTED


@pytest.mark.sweep
@pytest.mark.slow
def test_a_full_disk_at_rank_0_ends_all_and_only_rank_0_says_so(tmp_path: Path) -> None:
    config = write_small(tmp_path, **{**LONG, "round": {"rounds": 200}})
    limits = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))"
    with RankProcesses(config, tmp_path / "out", size=3, limits=limits) as ranks:
        codes, errors = ranks.wait()
    assert codes == [STOPPED] * 3
    assert "File too large" in errors[0]
    assert errors[1:] == ["", ""]


def test_bad_input_is_reported_by_rank_0_alone(tmp_path: Path) -> None:
    config = write_small(tmp_path, round={"participants": 1000})
    with RankProcesses(config, tmp_path / "out") as ranks:
        codes, errors = ranks.wait()
    assert codes == [BAD_INPUT] * 2
    assert "round.participants = 1000: more than the 12 clients" in errors[0]
    assert errors[1] == ""


@pytest.mark.sweep
def test_a_rank_that_lacks_its_data_is_heard_by_rank_0(config: Path, tmp_path: Path) -> None:
    nowhere = {1: ["--data", str(tmp_path / "nowhere")]}
    with RankProcesses(config, tmp_path / "out", options=nowhere) as ranks:
        codes, errors = ranks.wait()
    assert codes == [BAD_INPUT] * 2
    assert "nowhere: no such folder" in errors[0]
    assert errors[1] == ""


def listening(pid: int) -> set[str]:
    """The addresses, in the kernel's hexadecimal, that a process listens on."""
    sockets, addresses = set(), set()
    try:
        tables = [Path(f"/proc/{pid}/net/{name}").read_text() for name in ("tcp", "tcp6")]
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):  # closed meanwhile
                sockets.add(str(link.readlink()))
    except OSError:  # it is gone
        return set()
    for line in [line for table in tables for line in table.splitlines()[1:]]:
        fields = line.split()
        if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
            addresses.add(fields[1].partition(":")[0])
    return addresses


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@pytest.mark.slow
def test_torchrun_starts_a_job_that_lost_a_rank_again_and_the_run_is_resumed(
    config: Path, whole: bytes, tmp_path: Path
) -> None:
    out = tmp_path / "job"
    options = ["--standalone", "--nproc-per-node=2", "--max-restarts=3"]
    command = ["-m", "tests.reliability.stopping", str(STOPS_IN), "run", str(config), "--out", str(out)]
    job = psutil.Popen(
        [sys.executable, "-m", "torch.distributed.run", *options, *command],
        cwd=ROOT,
        env=ENVIRONMENT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until(lambda: is_stopped(ranks_of(job).get("0")) or job.poll() is not None, PATIENCE_S)
        ranks = ranks_of(job)
        ranks["1"].kill()
        ranks["0"].resume()
        stderr = job.communicate(timeout=PATIENCE_S)[1]
    finally:
        if job.poll() is None:
            for process in (*job.children(recursive=True), job):
                process.kill()
            job.communicate()
    assert job.returncode == 0, stderr
    assert "resuming from round" in stderr
    assert logs(out) == whole


def ranks_of(job: psutil.Process) -> dict[str, psutil.Process]:
    """The processes that torchrun has started, by rank."""
    ranks = {}
    for child in job.children():
        with suppress(psutil.Error):  # gone meanwhile
            ranks[child.environ().get("RANK", "")] = child
    return ranks


def is_stopped(process: psutil.Process | None) -> bool:
    return process is not None and process.status() == psutil.STATUS_STOPPED
