"""Standard output that is no longer read, closed or full: one line, and an exit code."""

from __future__ import annotations

import errno
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from emulator.errors import LostOutputError
from experiments.cli.streams import Notes, Output
from experiments.results.reading.run_directory import RunDirectory
from tests.experiments.cli.conftest import Driftscale
from tests.experiments.small import write_small
from tests.processes import forked

ROOT = Path(__file__).resolve().parents[3]
CLOSED = "error: standard output was closed: not all of the output was printed; files are not affected\n"


def started(
    *arguments: str | Path, run: Callable[..., Any] = forked.run, **streams: object
) -> subprocess.CompletedProcess[str]:
    """Run the command in its own process."""
    command = [sys.executable, "-c", "from experiments.cli import main; main()", *map(str, arguments)]
    ended: subprocess.CompletedProcess[str] = run(command, cwd=ROOT, text=True, timeout=300, **streams)
    return ended


def a_pipe_without_a_reader() -> int:
    reading, writing = os.pipe()
    os.close(reading)
    return writing


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["profiles", "list", "--format", "json"]])
def test_a_command_whose_reader_is_gone_reports_it_and_ends_with_141(arguments: list[str]) -> None:
    run = subprocess.run if arguments == ["--help"] else forked.run
    ended = started(*arguments, run=run, stdout=a_pipe_without_a_reader(), stderr=subprocess.PIPE)
    assert (ended.returncode, ended.stderr) == (141, CLOSED)


def test_a_run_whose_reader_is_gone_does_all_its_work_first(tmp_path: Path) -> None:
    config, out = write_small(tmp_path), tmp_path / "out"
    ended = started("run", config, "--out", out, stdout=a_pipe_without_a_reader(), stderr=subprocess.PIPE)
    assert ended.returncode == 141, ended.stderr
    assert ended.stderr.endswith(f"\n{CLOSED}")
    assert RunDirectory(out).reported_pairs() == [("global", 0), ("fielding", 0)]
    assert json.loads((out / "summary.json").read_text())["name"] == "small"
    assert (out / "report.html").exists()


@pytest.fixture
def full() -> Iterator[IO[str]]:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    with Path("/dev/full").open("w") as full:
        yield full


def test_output_to_a_full_device_ends_with_3(full: IO[str]) -> None:
    ended = started("--version", run=subprocess.run, stdout=full, stderr=subprocess.PIPE)
    assert ended.returncode == 3
    assert ended.stderr.startswith("error: standard output cannot be written (No space left on device): ")


@pytest.mark.slow
def test_no_log_gets_the_descriptor_of_a_closed_standard_stream(tmp_path: Path) -> None:
    """A log with descriptor 2 would contain what is printed on standard error."""
    config, out = write_small(tmp_path), tmp_path / "out"

    def close_all() -> None:
        for number in (0, 1, 2):
            os.close(number)

    ended = started("run", config, "--out", out, run=subprocess.run, preexec_fn=close_all)
    assert ended.returncode == 141  # the output is lost, which is not a success
    directory = RunDirectory(out)
    assert len(directory.reported_runs()) == 2
    assert {path.name for path in out.iterdir()} >= {"summary.json", "report.html"}


@pytest.mark.parametrize("code", [0, 3])
def test_standard_error_without_a_reader_changes_no_exit_code(code: int, full: IO[str]) -> None:
    stdout = subprocess.PIPE if code == 0 else full
    ended = started("--version", stdout=stdout, stderr=a_pipe_without_a_reader())
    assert ended.returncode == code


def test_failed_runs_end_with_3_without_a_reader_of_standard_error(
    driftscale: Driftscale, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = {"name": "bad", "solver": [{"kind": "sgd", "weight_decay": 1e38}]}
    monkeypatch.setattr("sys.stderr", Gone(errno.EPIPE))
    assert driftscale("run", write_small(tmp_path, arm=[bad])).code == 3


class Gone(io.StringIO):
    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number

    def write(self, text: str) -> int:
        raise OSError(self._number, os.strerror(self._number))

    def flush(self) -> None:
        raise OSError(self._number, os.strerror(self._number))


@pytest.mark.parametrize("act", [lambda stream: stream.write("x"), lambda stream: stream.flush()])
def test_output_must_arrive_and_notes_may_be_lost(act: Callable[[object], object]) -> None:
    with pytest.raises(LostOutputError, match="was closed"):
        act(Output(Gone(errno.EPIPE)))
    with pytest.raises(LostOutputError, match="cannot be written"):
        act(Output(Gone(errno.ENOSPC)))
    act(Notes(Gone(errno.EPIPE)))


def test_a_failed_run_takes_precedence_over_a_table_that_nobody_reads(
    driftscale: Driftscale, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = {"name": "bad", "solver": [{"kind": "sgd", "weight_decay": 1e38}]}
    config = write_small(tmp_path, arm=[{"name": "global"}, bad])
    monkeypatch.setattr("sys.stdout", Gone(errno.EPIPE))
    ended = driftscale("run", config)
    assert ended.code == 3
    assert "no report: standard output was closed" in ended.err
    assert ended.err.splitlines()[-1].startswith("error: 1 of 2 runs failed")
