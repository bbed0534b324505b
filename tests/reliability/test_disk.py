"""A full, read-only or vanished disk stops a run with one line, and the run can be resumed."""

from __future__ import annotations

import resource
import shutil
import subprocess
import tempfile
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import driftscale
from emulator.errors import InputError, ResumableError
from experiments.cli.configurations.writing import write_new
from experiments.cli.view import view
from experiments.config import Experiment
from experiments.locating import locator
from experiments.results.reading.run_directory import RunDirectory
from experiments.running.locking import locked
from experiments.running.plan import PlannedRun, Reached, plan_run
from experiments.running.runner import run_plan
from tests.experiments.small import SMALL, Story, small, write_small
from tests.reliability.kills import Killing, results
from tests.traces.building.table.tables import build, write

EVERY_ROUND: dict[str, Any] = {"checkpoint": {"every_rounds": 1}, "round": {"rounds": 30}}


class Acting(Story):
    """A story that calls `act` when `after` rounds are done."""

    def __init__(self, after: int, act: Callable[[], object]) -> None:
        super().__init__()
        self._after, self._act = after, act

    def round_done(self, run: PlannedRun, reached: Reached) -> None:
        super().round_done(run, reached)
        if self.rounds == self._after:
            self._act()


def play(experiment: Experiment, out: Path, story: Story | None = None) -> Story:
    story = story or Story()
    run_plan(plan_run(experiment, out, None, locator(None, None), fresh=False), story)
    return story


def logs(out: Path) -> list[bytes]:
    return [log.read_bytes() for log in sorted(out.glob("*/seed-*/log.jsonl"))]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """The logs of the runs without a fault."""
    out = tmp_path_factory.mktemp("whole") / "out"
    play(small(**EVERY_ROUND), out)
    return logs(out)


@contextmanager
def largest_file(num_bytes: int) -> Iterator[None]:
    """Limit the size of files that this process may write; only the run under test writes any."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize(
    ("limit", "file", "has_checkpoint"),
    [(16_000, r"log\.jsonl", True), (4_000, "checkpoint", False)],
    ids=["the log", "the checkpoint"],
)
def test_a_file_that_grows_too_large_stops_the_run_which_is_resumed_when_there_is_room(
    limit: int, file: str, has_checkpoint: bool, tmp_path: Path, whole: list[bytes]
) -> None:
    with largest_file(limit), pytest.raises(ResumableError) as stopped:
        play(small(**EVERY_ROUND), tmp_path / "out")
    message = str(stopped.value)
    assert "\n" not in message
    assert message.startswith("global, seed 0 stopped in round ")
    assert file.replace("\\", "") in message
    assert "File too large" in message
    assert (
        "It resumes from its last checkpoint, round" if has_checkpoint else "It begins again when"
    ) in message
    directory = RunDirectory(tmp_path / "out")
    assert not directory.is_done("global", 0)
    assert directory.failure("global", 0) is None
    story = play(small(**EVERY_ROUND), tmp_path / "out")
    assert any(told[0] == "going on" for told in story.told) == has_checkpoint
    assert logs(tmp_path / "out") == whole


def test_no_other_run_is_tried_on_a_full_disk(tmp_path: Path) -> None:
    story = Story()
    with largest_file(10_000), pytest.raises(ResumableError):
        play(small(**EVERY_ROUND), tmp_path / "out", story)
    assert story.told == [("run", "global", 0)]


def test_a_directory_that_vanishes_stops_the_run_and_is_never_marked_done(
    tmp_path: Path, whole: list[bytes]
) -> None:
    out = tmp_path / "out"
    story = Acting(5, lambda: shutil.rmtree(out))
    with pytest.raises(ResumableError, match=r"checkpoint.*: No such file or directory"):
        play(small(**EVERY_ROUND), out, story)
    assert not out.exists()
    play(small(**EVERY_ROUND), out)
    assert logs(out) == whole


def test_a_folder_that_vanishes_with_no_checkpoint_to_write_is_no_result_either(tmp_path: Path) -> None:
    out = tmp_path / "out"
    story = Acting(3, lambda: shutil.rmtree(out / "global"))
    with pytest.raises(ResumableError, match=r"It begins again when"):
        play(small(), out, story)
    assert not (out / "global").exists()


# -- a small disk of its own --------------------------------------------------------------------------------


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte; skips where this process may not mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    if (
        mount is None
        or subprocess.run(
            [mount, "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], capture_output=True, check=False
        ).returncode
    ):
        pytest.skip("no file system can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def fill(folder: Path, leave: int) -> Path:
    """Write a file that leaves `leave` bytes of the disk free; returns its path."""
    ballast = folder / "ballast"
    ballast.write_bytes(bytes(shutil.disk_usage(folder).free - leave))
    return ballast


@pytest.mark.parametrize("leave", [0, 4096, 16_384])
def test_a_disk_that_fills_stops_the_run_which_is_resumed_when_there_is_room(
    leave: int, disk: Path, whole: list[bytes]
) -> None:
    out = disk / "out"
    story = Acting(7, lambda: fill(disk, leave))
    with pytest.raises(
        ResumableError, match=r"No space left on device\. It resumes from its last checkpoint"
    ):
        play(small(**EVERY_ROUND), out, story)
    (disk / "ballast").unlink()
    story = play(small(**EVERY_ROUND), out)
    assert story.told[1][0] == "going on"
    assert logs(out) == whole


def test_a_disk_that_is_full_from_the_start_or_read_only_is_refused(disk: Path) -> None:
    ballast = fill(disk, 0)
    with pytest.raises(InputError, match=r"--out .*: cannot be .* \(No space left"), locked(disk / "out"):
        play(small(), disk / "out")
    assert not (disk / "out").exists()
    ballast.unlink()
    (disk / "existing").mkdir()
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    for out, problem in (("out", "made a folder"), ("existing", "written in")):
        refusal = rf"--out .*{out}: cannot be {problem} \(Read-only file system\)"
        with pytest.raises(InputError, match=refusal), locked(disk / out):
            pytest.fail("locked")


def test_a_disk_that_becomes_read_only_stops_the_run(disk: Path, whole: list[bytes]) -> None:
    out = disk / "out"

    def protect() -> None:
        # A file that is open for writing keeps a mount from being read-only, unless it is forced.
        subprocess.run(["mount", "-o", "remount,ro,size=1", str(disk)], capture_output=True, check=False)
        shutil.rmtree(out / "global" / "seed-0" / "checkpoint")
        (out / "global" / "seed-0" / "checkpoint").write_text("a file where a folder was")

    with pytest.raises(ResumableError, match="global, seed 0 stopped in round 7"):
        play(small(**EVERY_ROUND), out, Acting(7, protect))


def test_a_disk_that_fails_between_runs_ends_in_one_line_that_says_the_same_call_resumes(
    tmp_path: Path,
) -> None:
    out, long_call = tmp_path / "out", {"data": [tmp_path] * 60}  # which the manifest records
    for again in ("call", "call, without fresh=True,"):
        with largest_file(3_000), pytest.raises(ResumableError) as stopped:
            driftscale.run(SMALL, seeds=0, out=out, progress=False, fresh="fresh" in again, **long_call)
        assert str(stopped.value).startswith(
            f"{out / 'manifest.json'}: File too large; finished runs are kept; the same {again} resumes the "
        )
    with (
        largest_file(100_000),
        pytest.raises(ResumableError, match=r"report\.html: File too large; finished runs"),
    ):
        driftscale.run(SMALL, seeds=0, out=out, progress=False, **long_call)
    assert driftscale.run(SMALL, seeds=0, out=out, progress=False, **long_call).unfinished == []


@pytest.mark.parametrize("several", [False, True], ids=["a run directory", "a folder"])
def test_where_the_disk_takes_no_page_the_one_that_is_viewed_is_in_a_temporary_folder_that_is_named(
    several: bool,
    disk: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    opened: list[str] = []

    def browse(address: str) -> bool:
        opened.append(address)
        return True

    monkeypatch.setattr(webbrowser, "open", browse)
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    directory = disk / "runs" / "small"
    play(small(), directory)
    (directory / "report.html").write_text("<script>stranger()</script>")
    viewed = directory.parent if several else directory
    before = {file: file.read_bytes() for file in disk.rglob("*") if file.is_file()}
    ballast = fill(disk, 0)
    view(viewed)
    ballast.unlink()
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    view(viewed)
    assert {file: file.read_bytes() for file in disk.rglob("*") if file.is_file()} == before
    ended = capsys.readouterr()
    what = "table" if several else "report"
    for problem, place, page, address in zip(
        ("No space left on device", "Read-only file system"),
        ended.err.splitlines(),
        ended.out.splitlines(),
        opened,
        strict=True,
    ):
        told, folder = place.split("; it is in a temporary folder, ")
        assert told.startswith(f"{viewed}: no page can be written in it ([Errno ")
        assert f"] {problem}: '{viewed}/" in told
        assert page == f"{what}: {folder}/{what}.html"
        assert address == (Path(folder) / f"{what}.html").as_uri()
        report = Path(folder) / ("small/report.html" if several else "report.html")
        assert "stranger()" not in report.read_text()
        if several:
            assert 'href="small/report.html"' in (Path(folder) / "table.html").read_text()


def test_a_new_configuration_that_does_not_fit_is_named_and_nothing_is_left_of_it(disk: Path) -> None:
    fill(disk, 0)
    file = disk / "mine.toml"
    with pytest.raises(InputError, match=rf"^FILE {file}: cannot be written \(No space left on device\)$"):
        write_new(file, "first-fleet")
    assert not file.exists()


@pytest.mark.parametrize("leave", [0, 4096, 8192])
def test_a_build_that_does_not_fit_names_a_file(leave: int, disk: Path, tmp_path: Path) -> None:
    table = write(tmp_path, "who,kind,day,a\nann,up,3,1\nbob,down,1,\nann,down,1,3\nbob,up,2,4\n")
    out = disk / "out"
    fill(disk, leave)
    with pytest.raises(ResumableError) as refused:
        build(table, out, step="day", missing="mean", test_share=0)
    path, _, _ = str(refused.value).partition(": No space left on device; make room")
    assert Path(path).parent == disk / "out.building"


# -- through the command line -------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_command_ends_with_3_one_line_and_what_is_finished(tmp_path: Path) -> None:
    config = write_small(
        tmp_path,
        **EVERY_ROUND,
        arm=[{"name": "a"}, {"name": "b", "training": {"model": {"kind": "mlp", "hidden": [512]}}}],
    )
    killing = Killing(config, tmp_path / "out")
    # The models of the second arm do not fit into a file of that size.
    with killing.start(largest_file_bytes=110_000) as process:
        _, stderr = process.communicate(timeout=300)
    assert process.returncode == 3, stderr
    assert "Traceback" not in stderr
    *_, before, last = stderr.splitlines()
    assert before.startswith(f"no report: [Errno 27] File too large: '{tmp_path / 'out'}")
    assert last.startswith("error: b, seed 0 stopped in round ")
    assert "File too large" in last
    assert RunDirectory(tmp_path / "out").reported_pairs() == [("a", 0)]
    killing.finish()
    assert set(results(tmp_path / "out")["summary"]["arms"]) == {"a", "b"}
