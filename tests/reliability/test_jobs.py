"""Parallel runs (`--jobs`, `--cluster`): the same bytes as serial ones despite kills, and no leftovers."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from experiments.own_packages import OUR_PACKAGES
from experiments.results.reading.run_directory import RunDirectory
from experiments.running.locking import seed_locked
from tests.experiments.small import WINDOWS, write_small
from tests.reliability.commands import POLL_S, ROOT, Command, wait_until, write_part
from tests.reliability.kills import results

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")]

SEEDS = (0, 1)
LONG = 3000
"""Enough rounds that a signal or a kill reaches a run before it ends."""

BY_WINDOWS: dict[str, Any] = {"devices": {"availability": "windows.csv"}, "checkpoint": {"every_rounds": 1}}

GONE_S = 5.0
"""Wall seconds within which the workers of a killed command must end."""

INTERRUPTION_LINES = ("interrupted;", "stopping after this step")


@dataclass
class Stage:
    """A folder with an experiment of the arms a and b; files in `acts`/<arm> control its runs.

    Commands that `start` started are killed when the test ends.
    """

    folder: Path
    acts: Path
    started: list[Command]

    @property
    def out(self) -> Path:
        return self.folder / "out"

    def config(self, rounds: int = 40, **changes: Any) -> Path:
        arms = [{"name": arm, "clusterer": {"kind": "acting", "acts": arm}} for arm in ("a", "b")]
        return write_small(
            self.folder, **{"seeds": list(SEEDS), "round": {"rounds": rounds}, "arm": arms, **changes}
        )

    def act(self, arm: str, *names: str) -> None:
        for name in names:
            (self.acts / arm / name).touch()

    def release(self, *arms: str) -> None:
        """Let waiting runs of these arms (default: both) continue."""
        for arm in arms or ("a", "b"):
            (self.acts / arm / "wait").unlink(missing_ok=True)

    def wait_for_runs(self, number: int, command: Command) -> None:
        """Wait until `number` runs wait; fails if the command ends before."""

        def runs_wait() -> bool:
            assert command.process.poll() is None, command.stderr
            return len(list(self.acts.glob("*/waiting-*"))) >= number

        wait_until(runs_wait)
        for file in self.acts.glob("*/waiting-*"):
            file.unlink()

    def start(self, *arguments: str | Path, name: str = "command", **settings: Any) -> Command:
        settings = {"path": [self.folder / "path"], "environment": {"ACTS": str(self.acts)}, **settings}
        command = Command(*arguments, temporary=self.folder / f"temporary-{name}", **settings)
        self.started.append(command)
        return command

    def run(self, config: Path, *options: str | Path, **settings: Any) -> Command:
        return self.start("run", config, "--out", self.out, *options, **settings)

    def leftovers(self) -> list[Path]:
        """Locks of runs and temporary files that still exist."""
        temporary = [file for folder in self.folder.glob("temporary-*/") for file in folder.iterdir()]
        return [*self.out.rglob(".seed-*"), *temporary]

    def wait_for_lines(self, more: int, command: Command) -> None:
        """Wait until the logs of all runs have `more` lines more than now, or the command has ended."""
        enough = self._num_log_lines() + more
        wait_until(lambda: self._num_log_lines() >= enough or command.process.poll() is not None)

    def _num_log_lines(self) -> int:
        return sum(log.read_bytes().count(b"\n") for log in self.out.glob("*/*/log.jsonl"))

    def files(self, arm: str, seed: int) -> set[str]:
        return {file.name for file in (self.out / arm / f"seed-{seed}").iterdir()}


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path, tmp_path / "acts", [])
    for arm in ("a", "b"):
        (stage.acts / arm).mkdir(parents=True)
    write_part(tmp_path / "path")
    yield stage
    for command in stage.started:
        command.kill_all()


SERIAL: dict[str, dict[str, Any]] = {}
"""Cache of `serial_results`, by the text of the configuration."""


def serial_results(stage: Stage, config: Path) -> dict[str, Any]:
    """The results of the same runs, played one after another in one process."""
    text = config.read_text()
    if text not in SERIAL:
        command = stage.start("run", config, "--out", stage.folder / "alone", name="alone")
        assert command.wait() == 0, command.stderr
        SERIAL[text] = results(stage.folder / "alone")
    return SERIAL[text]


def prints_its_own_lines_only(command: Command) -> bool:
    """Whether an interrupted command printed nothing but the lines meant for that."""
    return all(line.startswith(INTERRUPTION_LINES) for line in command.lines)


class Cluster:
    """A scheduler and its workers; each worker has an address and a temporary folder of its own."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.file = stage.folder / "scheduler.json"
        self.scheduler = self._serve("scheduler", "--scheduler-file", self.file, name="scheduler")
        self.workers: list[Command] = []

    def add(self, *options: str | Path, **settings: Any) -> Command:
        host = f"127.0.0.{len(self.workers) + 1}"
        worker = self._serve("worker", self.file, "--host", host, *options, name=host, **settings)
        self.workers.append(worker)
        return worker

    def end(self) -> None:
        for command in (*self.workers, self.scheduler):
            command.process.terminate()
        assert [command.wait() for command in (*self.workers, self.scheduler)] == [130] * 3

    def _serve(self, *arguments: str | Path, **settings: Any) -> Command:
        command = self._stage.start("cluster", *arguments, **settings)
        wait_until(lambda: command.lines or command.process.poll() is not None)
        assert not any(line.startswith("error: ") for line in command.lines), command.stderr
        assert command.process.poll() is None, command.stderr
        return command


@pytest.fixture
def cluster(stage: Stage) -> Cluster:
    return Cluster(stage)


# -- the same bytes ------------------------------------------------------------------------------------------


@pytest.mark.sweep
def test_four_workers_come_to_the_bytes_of_one_process(stage: Stage) -> None:
    config = stage.config()
    command = stage.run(config, "--jobs", "4")
    assert command.wait() == 0, command.stderr
    assert results(stage.out) == serial_results(stage, config)
    assert stage.leftovers() == []


def test_two_hosts_come_to_the_bytes_of_one_process(stage: Stage, cluster: Cluster) -> None:
    config = stage.config(**BY_WINDOWS)
    add_two_hosts(stage, cluster)
    command = stage.run(config, "--cluster", cluster.file, "--data", stage.folder / "here", is_real=True)
    assert command.wait() == 0, command.stderr
    (stage.folder / "windows.csv").write_text(WINDOWS)
    assert results(stage.out) == serial_results(stage, config)
    cluster.end()
    assert stage.leftovers() == []


@pytest.mark.sweep
def test_a_sweep_by_two_hosts_comes_to_the_bytes_of_one_process(stage: Stage, cluster: Cluster) -> None:
    config = stage.config(**BY_WINDOWS)
    add_two_hosts(stage, cluster)
    cells = played_sweep(stage, config, "cells", "--cluster", cluster.file, "--data", stage.folder / "here")
    (stage.folder / "windows.csv").write_text(WINDOWS)
    assert cells == played_sweep(stage, config, "cells-alone")
    assert len(cells) == 2 * 2 * len(SEEDS)
    cluster.end()
    assert stage.leftovers() == []


def add_two_hosts(stage: Stage, cluster: Cluster) -> None:
    """A worker on each of two hosts, which alone have the windows, each in a folder of its own."""
    for host in ("here", "there"):
        (stage.folder / host).mkdir()
        (stage.folder / host / "windows.csv").write_text(WINDOWS)
        cluster.add("--data", stage.folder / host)


def played_sweep(stage: Stage, config: Path, name: str, *options: str | Path) -> dict[str, bytes]:
    """The logs of a sweep over a key of b, so that its cells share the runs of a, by cell and run."""
    out, sweep = stage.folder / name, "arm.b.training.learning_rate=0.05,0.1"
    command = stage.start("run", config, "--out", out, "--sweep", sweep, *options, name=name)
    assert command.wait() == 0, command.stderr
    assert sum(": a, seed" in line and ": done" in line for line in command.lines) == len(SEEDS)
    return {str(log.relative_to(out)): log.read_bytes() for log in out.glob("*/*/*/log.jsonl")}


def test_runs_one_after_another_open_no_socket_and_import_no_dask(stage: Stage) -> None:
    watched = (
        "import sys; opened = []\n"
        "sys.addaudithook(lambda event, given: opened.append(event) if event == 'socket.__new__' else None)\n"
        "from experiments.cli import main\n"
        "try: main()\n"
        "finally: print('opened', opened, {'dask', 'distributed'} & set(sys.modules), file=sys.stderr)"
    )
    config = write_small(stage.folder)
    process = subprocess.run(
        [sys.executable, "-c", watched, "run", str(config), "--out", str(stage.out), "--jobs", "1"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert process.stderr.splitlines()[-1] == "opened [] set()"


# -- kills ---------------------------------------------------------------------------------------------------


def test_a_killed_command_and_then_a_killed_worker_change_no_byte_and_leave_nothing(stage: Stage) -> None:
    """Also: while two workers are at work, all processes listen on loopback only."""
    config = stage.config(**BY_WINDOWS)
    (stage.folder / "windows.csv").write_text(WINDOWS)
    whole = serial_results(stage, config)
    stage.act("a", "wait")
    command = stage.run(config, "--jobs", "2")
    stage.wait_for_runs(2, command)
    listening = {
        connection.laddr.ip
        for pid in [command.process.pid, *command.processes()]
        for connection in psutil.Process(pid).net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening == {"127.0.0.1"}
    command.process.kill()
    assert wait_until(lambda: not command.processes()) < GONE_S
    assert command.lines == []
    assert_locks_are_free(stage)

    stage.release()
    stage.act("b", "kill-1")
    command = stage.run(config, "--jobs", "2")
    assert command.wait() == 0, command.stderr
    assert any(line.startswith("a, seed 0: resuming from round 3") for line in command.lines)
    assert any(
        line.startswith("b, ") and "its worker was lost (its process ended)" in line for line in command.lines
    )
    assert results(stage.out) == whole
    assert stage.leftovers() == []


def assert_locks_are_free(stage: Stage) -> None:
    for arm in ("a", "b"):
        for seed in SEEDS:
            with seed_locked(RunDirectory(stage.out), arm, seed):
                pass


@pytest.mark.sweep
def test_three_workers_that_are_lost_over_one_run_end_the_command_which_can_be_resumed(stage: Stage) -> None:
    config = stage.config(seeds=[0])
    stage.act("a", "kill-1", "kill-2", "kill-3")
    command = stage.run(config, "--jobs", "2")
    assert command.wait() == 3
    assert command.lines[-1].startswith(
        "error: a, seed 0: 3 workers were lost over it, the last one: its proc"
    )
    assert stage.files("b", 0) >= {"DONE"}
    assert stage.run(config, "--jobs", "2").wait() == 0
    assert results(stage.out) == serial_results(stage, config)
    assert stage.leftovers() == []


@pytest.mark.sweep
@pytest.mark.parametrize("kills", [2, 100])
def test_a_worker_that_is_killed_before_it_is_up_is_replaced_unless_none_comes_up(
    kills: int, stage: Stage
) -> None:
    command = stage.run(stage.config(), "--jobs", "2")
    killed: set[int] = set()
    while command.process.poll() is None:
        for worker in set(command.workers()) - killed:
            if len(killed) < kills:
                killed.add(worker)
                with suppress(ProcessLookupError):  # the command has ended meanwhile
                    os.kill(worker, signal.SIGKILL)
        time.sleep(POLL_S)
    if kills == 2:
        assert command.wait() == 0, command.stderr
        assert "lost" not in command.stderr
    else:
        assert command.wait() == 3
        [line] = command.lines
        assert line.startswith("error: no worker process comes up on this machine (")
    assert stage.leftovers() == []


@pytest.mark.sweep
def test_a_worker_that_is_silent_is_killed_and_replaced(stage: Stage) -> None:
    config = stage.config(executor={"worker_timeout_s": 3})
    stage.act("b", "stop-1")
    command = stage.run(config, "--jobs", "2")
    assert command.wait() == 0, command.stderr
    assert "its worker was lost (it gave no sign of life for " in command.stderr
    assert results(stage.out) == serial_results(stage, config)
    assert stage.leftovers() == []


@pytest.mark.sweep
def test_twenty_kills_of_workers_change_no_byte(stage: Stage) -> None:
    config = stage.config(LONG, checkpoint={"every_rounds": 20})
    whole = serial_results(stage, config)
    draw = np.random.default_rng(20)
    kills = 0
    command = stage.run(config, "--jobs", "2")
    while kills < 20:
        # Wait for runs to be at work: the error is another one if workers are killed before that.
        stage.wait_for_lines(int(draw.integers(1, 300)), command)
        workers = command.workers()
        if workers:
            victim = int(draw.choice(workers))
            os.kill(victim, signal.SIGKILL)
            kills += 1
            wait_until(lambda victim=victim, command=command: victim not in command.workers())
        if command.process.poll() is not None:  # three were lost over one run
            assert command.wait() == 3, command.stderr
            assert "3 workers were lost over it" in command.lines[-1]
            command = stage.run(config, "--jobs", "2")
    command.wait()
    if command.process.returncode != 0:
        command = stage.run(config, "--jobs", "2")
        assert command.wait() == 0, command.stderr
    assert not any("Traceback" in started.stderr for started in stage.started)
    assert results(stage.out) == whole
    assert stage.leftovers() == []


@pytest.mark.sweep
def test_ten_kills_of_the_command_change_no_byte(stage: Stage) -> None:
    config = stage.config(LONG, checkpoint={"every_rounds": 20})
    whole = serial_results(stage, config)
    draw = np.random.default_rng(10)
    seconds = []
    for _ in range(10):
        command = stage.run(config, "--jobs", "2")
        stage.wait_for_lines(int(draw.integers(1, 4 * LONG // 12)), command)
        assert command.process.poll() is None, command.stderr
        command.process.kill()
        seconds.append(wait_until(lambda command=command: not command.processes()))
        if stage.out.is_dir():
            assert_locks_are_free(stage)
    print(f"workers gone after {max(seconds):.2f} s at most")
    assert max(seconds) < GONE_S
    command = stage.run(config, "--jobs", "2")
    assert command.wait() == 0, command.stderr
    assert not any("Traceback" in started.stderr for started in stage.started)
    assert results(stage.out) == whole
    assert stage.leftovers() == []


# -- signals -------------------------------------------------------------------------------------------------


@pytest.mark.sweep
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_has_every_run_stored_and_the_same_command_resumes_them(
    number: signal.Signals, stage: Stage
) -> None:
    """The signal goes to all processes, as from a terminal. Also: a second command is refused meanwhile."""
    config = stage.config()
    stage.act("a", "wait")
    command = stage.run(config, "--jobs", "2")
    stage.wait_for_runs(2, command)
    second = stage.run(config, "--jobs", "2", name="second")
    assert second.wait() == 2
    [line] = second.lines
    assert "is running into this directory" in line
    command.signal_all(number)
    wait_until(lambda: "stopping after this step" in command.stderr)
    stage.release()
    print(f"ended {wait_until(lambda: command.process.poll() is not None):.2f} s after the runs could stop")
    assert command.wait() == 130
    assert prints_its_own_lines_only(command), command.stderr
    assert [stage.files("a", seed) for seed in SEEDS] == [{"checkpoint", "log.jsonl"}] * 2
    assert not (stage.out / "b").exists()
    assert stage.leftovers() == []
    command = stage.run(config, "--jobs", "2")
    assert command.wait() == 0, command.stderr
    assert sum("resuming from round" in line for line in command.lines) == 2
    assert results(stage.out) == serial_results(stage, config)


@pytest.mark.sweep
def test_two_signals_end_all_at_once(stage: Stage) -> None:
    stage.act("a", "wait")
    command = stage.run(stage.config(), "--jobs", "2")
    stage.wait_for_runs(2, command)
    command.signal_all(signal.SIGINT)
    wait_until(lambda: "stopping after this step" in command.stderr)
    command.signal_all(signal.SIGINT)
    print(f"ended after {wait_until(lambda: command.process.poll() is not None):.2f} s")
    assert command.wait() == 130
    assert prints_its_own_lines_only(command), command.stderr
    assert_locks_are_free(stage)


@pytest.mark.sweep
@pytest.mark.parametrize("after_s", np.arange(0.25, 4.0, 0.25))
def test_a_signal_before_runs_are_at_work_ends_soon_and_in_one_line(after_s: float, stage: Stage) -> None:
    """From the start of the command's servers on: workers start, are greeted, and draw clients."""
    command = stage.run(stage.config(LONG), "--jobs", "2")
    wait_until(lambda: list((stage.folder / "temporary-command").iterdir()))
    time.sleep(float(after_s))
    command.signal_all(signal.SIGINT)
    assert command.wait() == 130
    assert prints_its_own_lines_only(command), command.stderr
    assert len(command.lines) <= 2
    assert stage.leftovers() == []


# -- faults --------------------------------------------------------------------------------------------------


@pytest.mark.sweep
def test_an_exception_in_own_code_fails_its_run_and_no_other(stage: Stage) -> None:
    config = stage.config(LONG, seeds=[0])
    stage.act("a", "wait", "divide")
    stage.act("b", "wait")
    command = stage.run(config, "--jobs", "2")
    stage.wait_for_runs(2, command)
    stage.release()
    assert command.wait() == 3
    assert "Traceback" not in command.stderr
    assert "a, seed 0: FAILED: round 3: clusterer 'acting:Acting': on_data raised Zero" in command.stderr
    assert stage.files("a", 0) == {"FAILED", "log.jsonl", "traceback.txt"}
    assert "DONE" in stage.files("b", 0)
    assert stage.leftovers() == []


@pytest.mark.sweep
def test_memory_that_runs_out_ends_all_and_stores_the_runs_beside(stage: Stage) -> None:
    config = stage.config(LONG, seeds=[0])
    stage.act("a", "wait", "memory")
    stage.act("b", "wait")
    command = stage.run(config, "--jobs", "2")
    stage.wait_for_runs(2, command)
    stage.release()
    assert command.wait() == 3
    assert command.lines == [
        "error: a, seed 0 stopped in round 3: out of memory. It begins again when the command is given again"
    ]
    assert stage.files("b", 0) == {"checkpoint", "log.jsonl"}
    assert stage.leftovers() == []


@pytest.mark.sweep
def test_a_run_that_diverges_fails_alone(stage: Stage) -> None:
    wild = {"name": "b", "training": {"learning_rate": 1e30, "model": {"kind": "mlp", "hidden": [8]}}}
    config = write_small(
        stage.folder, seeds=list(SEEDS), round={"rounds": 20}, arm=[{"name": "a"}, wild, {"name": "c"}]
    )
    command = stage.run(config, "--jobs", "2")
    assert command.wait() == 3
    assert command.lines[-1].startswith("error: 2 of 6 runs failed (b, seed 0; b, seed 1); finished runs are")
    alone = stage.start("run", config, "--out", stage.folder / "alone", name="alone")
    assert alone.wait() == 3
    assert results(stage.out) == results(stage.folder / "alone")
    for seed in SEEDS:
        reasons = [RunDirectory(out).failure("b", seed) for out in (stage.out, stage.folder / "alone")]
        assert reasons[0] == reasons[1] is not None
    assert stage.leftovers() == []


@pytest.mark.sweep
@pytest.mark.skipif(shutil.which("prlimit") is None, reason="needs prlimit")
def test_a_full_disk_ends_all_stores_the_runs_beside_and_begins_no_other(stage: Stage) -> None:
    large = {"name": "b", "training": {"model": {"kind": "mlp", "hidden": [512]}}}
    config = write_small(
        stage.folder,
        round={"rounds": 200},
        checkpoint={"every_rounds": 1},
        arm=[{"name": "a"}, large, {"name": "c"}, {"name": "d"}],
    )
    command = stage.run(config, "--jobs", "2", launcher=["prlimit", "--fsize=110000"])
    assert command.wait() == 3
    assert command.lines[-1].startswith("error: b, seed 0 stopped in round ")
    assert "File too large" in command.lines[-1]
    assert "Traceback" not in command.stderr
    assert not (stage.out / "d").exists()
    assert stage.files("a", 0) in ({"checkpoint", "log.jsonl"}, {"DONE", "log.jsonl", "timing.json"})
    assert stage.leftovers() == []
    assert stage.run(config, "--jobs", "2").wait() == 0


@pytest.mark.sweep
def test_an_experiment_of_a_folder_whose_data_changed_fails_alone(stage: Stage) -> None:
    folder = stage.folder / "several"
    folder.mkdir()
    (folder / "windows.csv").write_text(WINDOWS)
    for name in ("first", "second"):
        devices = {"availability": "windows.csv"} if name == "first" else {}
        write_small(folder, name=name, round={"rounds": 20}, devices=devices).rename(folder / f"{name}.toml")

    def play(out: str, *options: str) -> Command:
        command = stage.start("run", folder, "--out", stage.folder / out, *options, name=out)
        command.wait()
        return command

    for out, jobs in (("one", "1"), ("two", "2")):
        assert play(out, "--jobs", jobs).process.returncode == 0
    for name in ("first", "second"):
        assert results(stage.folder / "two" / name) == results(stage.folder / "one" / name)
    (folder / "windows.csv").write_text(WINDOWS.replace("60", "61"))
    reasons = []
    for out, jobs in (("one", "1"), ("two", "2")):
        command = play(out, "--jobs", jobs, "--seeds", "0,1")
        assert command.process.returncode == 3, command.stderr
        assert command.lines[-1] == "error: 1 of 2 experiments failed: first"
        reasons.append([line for line in command.lines if line.startswith("first: ")])
        assert RunDirectory(stage.folder / out / "second").is_done("fielding", 1)
    assert reasons[0] == reasons[1]
    assert "windows.csv" in reasons[0][0]
    assert stage.leftovers() == []


# -- clusters ------------------------------------------------------------------------------------------------


@pytest.mark.sweep
def test_workers_finish_the_runs_of_a_killed_command_and_another_one_takes_the_others(
    stage: Stage, cluster: Cluster
) -> None:
    cluster.add()
    cluster.add()
    config = stage.config()
    stage.act("a", "wait")
    first = stage.run(config, "--cluster", cluster.file)
    stage.wait_for_runs(2, first)
    first.process.kill()
    second = stage.run(config, "--cluster", cluster.file)
    wait_until(lambda: second.stderr.count("is busy with a run of") == 2 or second.process.poll() is not None)
    assert second.process.poll() is None, second.stderr
    stage.release()
    wait_until(lambda: all("DONE" in stage.files("a", seed) for seed in SEEDS))
    stage.act("a", "divide")  # these runs would fail if they were played again
    assert second.wait() == 0, second.stderr
    (stage.acts / "a" / "divide").unlink()
    assert results(stage.out) == serial_results(stage, config)
    cluster.end()
    assert stage.leftovers() == []


@pytest.mark.sweep
def test_a_killed_scheduler_ends_the_command_in_one_line_and_another_cluster_resumes(stage: Stage) -> None:
    config = stage.config()
    first = Cluster(stage)
    workers = [first.add(), first.add()]
    stage.act("a", "wait")
    command = stage.run(config, "--cluster", first.file)
    stage.wait_for_runs(2, command)
    first.scheduler.process.kill()
    assert command.wait() == 3
    [line] = command.lines
    assert line.startswith("error: the cluster is gone (")
    stage.release()
    assert [worker.wait() for worker in workers] == [0, 0]
    first.file.unlink()  # a killed scheduler leaves it
    second = Cluster(stage)
    second.add()
    second.add()
    command = stage.run(config, "--cluster", second.file)
    assert command.wait() == 0, command.stderr
    assert results(stage.out) == serial_results(stage, config)


@pytest.mark.sweep
def test_a_worker_that_is_told_to_leave_stores_its_run_which_another_resumes(
    stage: Stage, cluster: Cluster
) -> None:
    leaving = cluster.add()
    cluster.add()
    config = stage.config()
    stage.act("a", "wait")
    command = stage.run(config, "--cluster", cluster.file)
    stage.wait_for_runs(2, command)
    leaving.process.terminate()
    wait_until(lambda: any("stopping" in line for line in leaving.lines))
    stage.release()
    assert leaving.wait() == 130
    assert len(leaving.lines) == 3
    assert command.wait() == 0, command.stderr
    assert any("resuming from round" in line for line in command.lines)
    assert "lost" not in command.stderr
    assert results(stage.out) == serial_results(stage, config)


@pytest.mark.sweep
@pytest.mark.parametrize("fault", ["data", "sources", "plug-in", "folder"])
def test_a_worker_that_is_not_fit_is_bad_input_before_anything_trains(
    fault: str, stage: Stage, cluster: Cluster
) -> None:
    refused = {
        "data": "windows.csv",
        "sources": "has another driftscale (sources ",
        "plug-in": "unknown clusterer 'acting'",
        "folder": f"does not see the run directory {stage.out}",
    }[fault]
    config = stage.config(devices={"availability": "windows.csv"})
    for host in ("here", "there"):
        (stage.folder / host).mkdir()
        (stage.folder / host / "windows.csv").write_text(WINDOWS)
    cluster.add("--data", stage.folder / "here")
    cluster.add("--data", stage.folder / "there", **with_fault(fault, stage))
    command = stage.run(config, "--cluster", cluster.file, "--data", stage.folder / "here")
    assert command.wait() == 2
    [line] = command.lines
    assert line.startswith("error: worker tcp://127.0.0.")
    assert refused in line
    assert list(stage.out.glob("*/seed-*/log.jsonl")) == []


@pytest.mark.sweep
def test_a_worker_without_driftscale_is_bad_input_in_one_line(stage: Stage, cluster: Cluster) -> None:
    address = cluster.scheduler.lines[0].split()[-1]
    bare = stage.folder / "bare" / "experiments"
    bare.mkdir(parents=True)
    (bare / "__init__.py").write_text("raise ImportError('there is no driftscale here')")
    worker = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nworkers", "1", "--no-dashboard"],
        env={**os.environ, "PYTHONPATH": str(bare.parent)},
        stderr=subprocess.DEVNULL,
        cwd=stage.folder,
    )
    try:
        command = stage.run(stage.config(), "--cluster", address)
        assert command.wait() == 2, command.stderr
    finally:
        worker.terminate()
        worker.wait()
    [*_, line] = command.lines
    assert "has no driftscale, or another one" in line
    assert "Traceback" not in command.stderr


@pytest.mark.sweep
def test_a_worker_that_is_silent_from_the_start_holds_up_nothing(stage: Stage, cluster: Cluster) -> None:
    cluster.add()
    [silent] = cluster.add().workers()
    config = stage.config()
    os.kill(silent, signal.SIGSTOP)
    try:
        command = stage.run(config, "--cluster", cluster.file)
        assert command.wait() == 0, command.stderr
    finally:
        os.kill(silent, signal.SIGCONT)
    assert results(stage.out) == serial_results(stage, config)


def with_fault(fault: str, stage: Stage) -> dict[str, Any]:
    """Keyword arguments of `Cluster.add` that start a worker with the fault."""
    if fault == "data":
        (stage.folder / "there" / "windows.csv").write_text(WINDOWS.replace("60", "61"))
    if fault == "plug-in":
        return {"path": []}
    if fault == "sources":
        changed = stage.folder / "changed"
        for package in OUR_PACKAGES:
            shutil.copytree(ROOT / package, changed / package)
        with (changed / "experiments" / "running" / "plan.py").open("a") as file:
            file.write("# another version\n")
        return {"root": changed}
    if fault == "folder":
        hidden = f'mkdir -p {stage.out} && mount -t tmpfs tmpfs {stage.out} && exec "$@"'
        launcher = ["unshare", "--mount", "sh", "-c", hidden, "sh"]
        if subprocess.run([*launcher, "true"], capture_output=True, check=False).returncode:
            pytest.skip("no file system can be mounted here")
        return {"launcher": launcher}
    return {}
