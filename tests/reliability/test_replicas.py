"""How many ranks play a run decides no bit of its log, and what happens to one of them ends all."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from executor.ranks import Ranks
from experiments.running.plan import plan_run
from experiments.running.runner import run_plan
from tests.executor.meeting import together
from tests.experiments.small import Story, small, write_small
from tests.reliability.conftest import WorldOf
from tests.reliability.replaying import COHORTS, play_by_ranks
from tests.reliability.rows import ARMS, row
from tests.reliability.stops import Stopped

LOOPBACK = "0100007F"  # 127.0.0.1, as the kernel writes it
ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 240
STOPPED, BAD_INPUT, INTERRUPTED = 3, 2, 130
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}  # as torchrun sets it


@pytest.fixture(scope="module")
def by_processes(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the logs of all rows, played by three processes."""
    folder = tmp_path_factory.mktemp("by-processes")
    (folder / "out").mkdir()
    command = [sys.executable, "-m", "tests.reliability.replaying", str(folder / "store")]
    processes = [
        subprocess.Popen(
            [*command, str(rank), "3", str(data), str(folder / "out")], cwd=ROOT, env=ENVIRONMENT
        )
        for rank in range(3)
    ]
    assert [process.wait(PATIENCE_S) for process in processes] == [0, 0, 0]
    return folder / "out"


@pytest.mark.parametrize("name", ARMS)
def test_a_log_is_the_same_by_any_number_of_ranks(
    name: str, world_of: WorldOf, by_processes: Path, tmp_path: Path
) -> None:
    experiment, world = row(name, **COHORTS), world_of(name)
    alone = Stopped(experiment, world, tmp_path / "alone").play()
    for size in (1, 2):
        out = tmp_path / str(size)

        def play(ranks: Ranks, out: Path = out) -> None:
            play_by_ranks(ranks, experiment, world, out)

        assert together(size, play) == [None] * size
        assert (out / name / "seed-0" / "log.jsonl").read_bytes() == alone
    assert (by_processes / name / name / "seed-0" / "log.jsonl").read_bytes() == alone


class RankProcesses:
    """`driftscale run CONFIG --out OUT` by `size` ranks on this machine, as torchrun starts them."""

    def __init__(
        self,
        config: Path,
        out: Path,
        *,
        size: int = 2,
        limits: str = "",
        own: Mapping[int, Sequence[str]] | None = None,
    ) -> None:
        """`limits` are of rank 0; `own` options of some ranks."""
        port = free_port()
        self.out = out
        self.processes = [
            subprocess.Popen(
                [
                    sys.executable,
                    "-c",
                    f"{limits if rank == 0 else ''}\nfrom experiments.cli import main; main()",
                    *("run", str(config), "--out", str(out), *(own or {}).get(rank, ())),
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

    def wait_for_rounds(self, number: int) -> None:
        """Until rank 0 has logged as many."""
        log, polling = self.out / "global" / "seed-0" / "log.jsonl", threading.Event()
        while not log.is_file() or log.read_bytes().count(b"\n") <= number:
            assert self.processes[0].poll() is None, self.processes[0].communicate()[1]
            polling.wait(0.01)

    def signal(self, rank: int, number: signal.Signals) -> None:
        self.processes[rank].send_signal(number)

    def ended(self) -> tuple[list[int], list[str]]:
        """The exit code of each rank, and the lines that it has said of an end."""
        said = [process.communicate(timeout=PATIENCE_S)[1] for process in self.processes]
        ends = [
            [line for line in text.splitlines() if line.startswith(("error:", "interrupted"))]
            for text in said
        ]
        return [process.returncode for process in self.processes], ["\n".join(lines) for lines in ends]


def logs(out: Path) -> bytes:
    return b"".join((out / arm / "seed-0" / "log.jsonl").read_bytes() for arm in ("global", "fielding"))


LONG = {"round": {"rounds": 200}, "checkpoint": {"every_rounds": 20}, "executor": {"chunk": 1}}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_small(tmp_path, **LONG)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The logs of the long run, in one process."""
    out = tmp_path_factory.mktemp("whole") / "out"
    run_plan(plan_run(small(**LONG), out, None, Path, fresh=False), Story())
    return logs(out)


@pytest.mark.sweep
@pytest.mark.slow
@pytest.mark.parametrize("victim", [0, 1])
def test_a_rank_that_is_killed_ends_the_others_and_the_run_is_resumed(
    victim: int, config: Path, whole: bytes, tmp_path: Path
) -> None:
    with RankProcesses(config, tmp_path / "out") as ranks:
        ranks.wait_for_rounds(60)
        ranks.signal(victim, signal.SIGKILL)
        codes, said = ranks.ended()
    survivor = 1 - victim
    assert codes[victim] == -signal.SIGKILL
    assert codes[survivor] == STOPPED
    assert f"rank {victim} is gone" in said[survivor]
    with RankProcesses(config, tmp_path / "out") as ranks:
        assert ranks.ended() == ([0, 0], ["", ""])
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
    config = write_small(tmp_path, **{**LONG, "checkpoint": {"every_rounds": 10_000}})
    with RankProcesses(config, tmp_path / "out", size=size) as ranks:
        ranks.wait_for_rounds(30)
        ranks.signal(rank, number)
        with suppress(ProcessLookupError):
            ranks.signal(rank, number)  # torchrun forwards what the terminal has sent already
        codes, said = ranks.ended()
    assert codes == [INTERRUPTED] * size
    assert said[0].startswith("interrupted; finished runs are kept")
    assert said[1:] == [""] * (size - 1)
    [checkpoint] = (tmp_path / "out").glob("global/seed-0/checkpoint/*.safetensors")
    assert checkpoint.is_file()


@pytest.mark.sweep
@pytest.mark.slow
def test_a_rank_that_is_silent_is_given_up(tmp_path: Path) -> None:
    timeout_s = {"executor": {"chunk": 1, "worker_timeout_s": 2.0}}
    config = write_small(tmp_path, **{**LONG, **timeout_s})
    with RankProcesses(config, tmp_path / "out") as ranks:
        ranks.wait_for_rounds(10)
        ranks.signal(1, signal.SIGSTOP)
        _, said = ranks.processes[0].communicate(timeout=60)
        assert ranks.processes[0].returncode == STOPPED
        assert "rank 1 is gone, or silent for executor.worker_timeout_s = 2" in said


@pytest.mark.sweep
@pytest.mark.slow
def test_a_second_signal_ends_a_rank_at_once_though_another_is_silent(config: Path, tmp_path: Path) -> None:
    with RankProcesses(config, tmp_path / "out") as ranks:
        ranks.wait_for_rounds(10)
        ranks.signal(1, signal.SIGSTOP)
        ranks.signal(0, signal.SIGTERM)
        polling = threading.Event()
        while ranks.processes[0].poll() is None:
            polling.wait(1.2)
            ranks.signal(0, signal.SIGTERM)
        assert ranks.processes[0].returncode == INTERRUPTED


@pytest.mark.sweep
@pytest.mark.slow
def test_a_full_disk_at_rank_0_ends_all_and_only_rank_0_says_so(config: Path, tmp_path: Path) -> None:
    limits = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))"
    with RankProcesses(config, tmp_path / "out", size=3, limits=limits) as ranks:
        codes, said = ranks.ended()
    assert codes == [STOPPED] * 3
    assert "File too large" in said[0]
    assert said[1:] == ["", ""]


def test_bad_input_is_said_by_rank_0_alone(tmp_path: Path) -> None:
    config = write_small(tmp_path, round={"participants": 1000})
    with RankProcesses(config, tmp_path / "out") as ranks:
        codes, said = ranks.ended()
    assert codes == [BAD_INPUT] * 2
    assert "round.participants = 1000: more than the 12 clients" in said[0]
    assert said[1] == ""


def test_a_folder_of_configurations_is_refused_under_torchrun(tmp_path: Path) -> None:
    (tmp_path / "configs").mkdir()
    write_small(tmp_path / "configs")
    with RankProcesses(tmp_path / "configs", tmp_path / "out", size=2) as ranks:
        codes, said = ranks.ended()
    assert codes == [BAD_INPUT] * 2
    assert "is a folder; under torchrun, run one configuration at a time" in said[0]
    assert said[1] == ""


@pytest.mark.sweep
def test_a_rank_that_lacks_its_data_is_heard_by_rank_0(config: Path, tmp_path: Path) -> None:
    nowhere = {1: ["--data", str(tmp_path / "nowhere")]}
    with RankProcesses(config, tmp_path / "out", own=nowhere) as ranks:
        codes, said = ranks.ended()
    assert codes == [BAD_INPUT] * 2
    assert "nowhere: no such folder" in said[0]
    assert said[1] == ""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_ranks_on_loopback_listen_there_alone(config: Path, tmp_path: Path) -> None:
    with RankProcesses(config, tmp_path / "out") as ranks:
        ranks.wait_for_rounds(10)
        # Rank 0 of a job without torchrun has its store too, which listens everywhere.
        assert listening(ranks.processes[1].pid) == {LOOPBACK}


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


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_torchrun_starts_a_job_that_lost_a_rank_again_and_it_goes_on(
    config: Path, whole: bytes, tmp_path: Path
) -> None:
    out = tmp_path / "job"
    options = ["--standalone", "--nproc-per-node=2", "--max-restarts=3", "-m", "experiments.cli"]
    job = subprocess.Popen(
        [sys.executable, "-m", "torch.distributed.run", *options, "run", str(config), "--out", str(out)],
        cwd=ROOT,
        env=ENVIRONMENT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    log, polling = out / "global" / "seed-0" / "log.jsonl", threading.Event()
    while job.poll() is None and (not log.is_file() or log.read_bytes().count(b"\n") < 60):
        polling.wait(0.01)
    [victim] = [pid for pid in children(job.pid) if b"RANK=1" in environment(pid)]
    os.kill(victim, signal.SIGKILL)
    said = job.communicate(timeout=PATIENCE_S)[1]
    assert job.returncode == 0, said
    assert "going on from round" in said
    assert logs(out) == whole


def children(parent: int) -> Iterator[int]:
    """Ids of the processes that `parent` started."""
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit():
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                if fields[1] == str(parent):
                    yield int(folder.name)
        except OSError:  # gone meanwhile
            continue


def environment(pid: int) -> list[bytes]:
    return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
