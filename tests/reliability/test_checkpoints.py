"""Checkpoints through the runner: when they are made, what must not change, and how damage is handled."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from coordinator.clusterers.single import Single
from coordinator.view import View
from emulator.errors import CheckpointError, ConfigurationError, ResumableError, RunError
from emulator.storage.checkpoints import read_checkpoint
from emulator.storage.state_tree import to_bytes
from executor.capability import cpu_capability
from experiments.config import Experiment
from experiments.locating import locator
from experiments.results.reading.run_directory import RunDirectory
from experiments.running.attempt import FORMAT, ROUNDING, rounding_versions
from experiments.running.machine import host_name
from experiments.running.plan import plan_run
from experiments.running.runner import run_plan
from experiments.running.stop import Stop
from tests.experiments.small import Story, small

ROUNDS = 12
EVERY_ROUND: dict[str, Any] = {"checkpoint": {"every_rounds": 1}, "round": {"rounds": ROUNDS}}


class AfterRounds(Stop):
    """A stop that is requested once the story has counted `rounds` rounds."""

    def __init__(self, story: Story, rounds: int) -> None:
        super().__init__()
        self._story, self._rounds = story, rounds

    @property
    def stop_requested(self) -> bool:
        return self._story.rounds >= self._rounds

    @stop_requested.setter
    def stop_requested(self, value: bool) -> None:
        """Ignore other requests."""


def play(experiment: Experiment, out: Path, stop_after: int | None = None, **options: Any) -> Story:
    """Run the arm `fielding` into `out`, up to a stop after `stop_after` rounds; returns the story."""
    story = Story()
    plan = plan_run(experiment, out, ["fielding"], locator(None, None), fresh=options.get("fresh", False))
    stop = Stop() if stop_after is None else AfterRounds(story, stop_after)
    try:
        run_plan(plan, story, stop)
    except KeyboardInterrupt:
        assert stop_after is not None
    return story


def log_of(out: Path) -> bytes:
    return RunDirectory(out).run_file("fielding", 0, "log.jsonl").read_bytes()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The log of the run without a stop."""
    out = tmp_path_factory.mktemp("whole") / "out"
    play(small(**EVERY_ROUND), out)
    return log_of(out)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("stopped") / "out"
    play(small(**EVERY_ROUND), out, stop_after=6)
    return out


@pytest.fixture
def out(stopped: Path, tmp_path: Path) -> Path:
    """A run directory in which `fielding` was stopped after six rounds."""
    return Path(shutil.copytree(stopped, tmp_path / "out"))


def checkpoints(out: Path) -> list[Path]:
    return RunDirectory(out).checkpoints("fielding", 0).files()


def rounds_of(out: Path) -> list[int]:
    return [int(file.name.split("-")[1]) for file in checkpoints(out)]


# -- when ---------------------------------------------------------------------------------------------------


def test_a_stop_is_told_as_a_run_that_was_left(tmp_path: Path) -> None:
    assert play(small(**EVERY_ROUND), tmp_path / "out", stop_after=6).ends == [("left", "fielding", 0)]


def test_an_unfinished_run_is_resumed_and_its_round_is_told(out: Path, whole: bytes) -> None:
    story = play(small(**EVERY_ROUND), out)
    assert story.told == [("run", "fielding", 0), ("going on", "fielding", 0, 6)]
    assert story.rounds == ROUNDS - 6
    assert story.ends == [("done", "fielding", 0)]
    assert log_of(out) == whole
    timing = RunDirectory(out).read_timing("fielding", 0)
    assert timing.resumed == 1


def test_the_last_two_are_kept_and_none_once_it_is_done(out: Path) -> None:
    assert rounds_of(out) == [6, 5]
    play(small(**EVERY_ROUND), out)
    assert not RunDirectory(out).checkpoints("fielding", 0).path.exists()


@pytest.mark.parametrize(
    ("settings", "expected"), [({"every_rounds": 4}, [5, 4]), ({}, [5]), ({"every_s": 1e-9}, [5, 4])]
)
def test_they_are_made_by_rounds_or_by_wall_time_and_at_a_stop(
    settings: dict[str, Any], expected: list[int], tmp_path: Path
) -> None:
    play(small(checkpoint=settings, round={"rounds": ROUNDS}), tmp_path / "out", stop_after=5)
    assert rounds_of(tmp_path / "out") == expected


def test_wall_times_add_up_over_attempts(out: Path) -> None:
    play(small(**EVERY_ROUND), out)
    timing = RunDirectory(out).read_timing("fielding", 0)
    assert timing.wall_s > timing.train_s + timing.evaluate_s > 0


def test_a_run_that_was_stopped_in_its_last_step_is_only_marked_done(tmp_path: Path, whole: bytes) -> None:
    play(small(**EVERY_ROUND), tmp_path / "out", stop_after=ROUNDS)
    assert not RunDirectory(tmp_path / "out").is_done("fielding", 0)
    assert play(small(**EVERY_ROUND), tmp_path / "out").rounds == 0
    assert RunDirectory(tmp_path / "out").is_done("fielding", 0)
    assert log_of(tmp_path / "out") == whole


def test_what_is_left_of_checkpoints_behind_done_is_swept_up(out: Path) -> None:
    [newest, _] = checkpoints(out)
    content = newest.read_bytes()
    play(small(**EVERY_ROUND), out)
    newest.parent.mkdir()
    newest.write_bytes(content)
    assert play(small(**EVERY_ROUND), out).told == [("skipped", "fielding", 0)]
    assert not newest.parent.exists()


def test_torn_files_of_a_killed_process_are_swept_up(out: Path) -> None:
    folder = RunDirectory(out).seed_path("fielding", 0)
    dead_pid, token = 999_999_999, "0123456789abcdef"
    torn = [out / f".manifest.json.{dead_pid}-{token}", folder / f".timing.json.{dead_pid}-{token}"]
    torn.append(folder / "checkpoint" / f".round-000006-x.{dead_pid}-{token}")
    spared = [
        out / ".notes",
        out / f".summary.json.{os.getpid()}-{token}",
    ]  # of a process that is writing a report
    for file in [*torn, *spared]:
        file.touch()
    play(small(**EVERY_ROUND), out)
    assert not any(file.exists() for file in torn)
    assert all(file.exists() for file in spared)


def change_tally(out: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Replace the checkpoints by one whose tally `change` has modified."""
    newest, *older = checkpoints(out)
    tree = read_checkpoint(newest)
    change(tree["tally"])
    content = to_bytes(tree)
    for file in (newest, *older):
        file.unlink()
    newest.with_name(f"round-000006-{sha256(content).hexdigest()}.safetensors").write_bytes(content)


def test_a_checkpoint_from_before_timings_named_machines_is_resumed(out: Path, whole: bytes) -> None:
    def older(tally: dict[str, Any]) -> None:
        for name in ("host", "cpu_capability", "runs_beside"):
            del tally[name]

    change_tally(out, older)
    assert play(small(**EVERY_ROUND), out).told[1] == ("going on", "fielding", 0, 6)
    assert log_of(out) == whole
    timing = json.loads(RunDirectory(out).run_file("fielding", 0, "timing.json").read_text())
    assert (timing["host"], timing["resumed"]) == (host_name(), 1)
    assert "runs_beside" not in timing


def test_a_timing_names_the_last_machine_and_counts_the_most_runs_beside_it(out: Path) -> None:
    change_tally(out, lambda tally: tally.update(host="elsewhere", cpu_capability="none", runs_beside=3))
    play(small(**EVERY_ROUND), out)
    timing = json.loads(RunDirectory(out).run_file("fielding", 0, "timing.json").read_text())
    assert (timing["host"], timing["cpu_capability"]) == (host_name(), cpu_capability())
    assert timing["runs_beside"] == 3


# -- what must not change -----------------------------------------------------------------------------------


def test_another_configuration_is_refused_and_what_differs_is_shown(out: Path) -> None:
    before = {file: file.read_bytes() for file in out.rglob("*") if file.is_file()}
    changed = small(
        checkpoint={"every_rounds": 1},
        round={"rounds": 20, "participants": 4},
        trace={"noise": 0.5},
        training={"local_steps": 3},
    )
    with pytest.raises(ConfigurationError) as refused:
        play(changed, out)
    for difference in (
        "trace.noise was 0.0, is 0.5",
        "round.rounds was 12, is 20",
        "round.participants was 3, is 4",
    ):
        assert difference in str(refused.value)
    assert "and 1 more" in str(refused.value)  # local_steps, of the arm that was begun
    assert "--fresh" in str(refused.value)
    assert {file: file.read_bytes() for file in out.rglob("*") if file.is_file()} == before


def test_settings_of_checkpoints_threads_and_memory_may_change_before_a_run_is_resumed(
    out: Path, whole: bytes
) -> None:
    story = play(
        small(
            round={"rounds": ROUNDS},
            checkpoint={"every_s": 5.0},
            executor={"threads": 2, "on_out_of_memory": "halve"},
        ),
        out,
    )
    assert ("going on", "fielding", 0, 6) in story.told
    assert log_of(out) == whole


def test_fresh_starts_over(out: Path, whole: bytes) -> None:
    story = play(small(**EVERY_ROUND), out, fresh=True)
    assert story.rounds == ROUNDS
    assert log_of(out) == whole


def test_a_run_that_failed_starts_over(tmp_path: Path) -> None:
    bad = {"name": "fielding", "solver": [{"kind": "sgd", "weight_decay": 1e38}]}
    failing = small(checkpoint={"every_rounds": 1}, arm=[{"name": "global"}, bad])
    for _ in range(2):
        with pytest.raises(Exception, match="1 of 1 runs failed"):
            play(failing, tmp_path / "out")
        assert RunDirectory(tmp_path / "out").failure("fielding", 0)
        assert checkpoints(tmp_path / "out") == []


# -- damage -------------------------------------------------------------------------------------------------


def truncated(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def bit_flipped(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 3] ^= 4
    file.write_bytes(content)


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def of_another_time(file: Path) -> None:
    """A valid checkpoint under the name of another one."""
    file.write_bytes(checkpoints(file.parents[3])[1].read_bytes())


DAMAGES = [truncated, bit_flipped, emptied, of_another_time]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_newest_one_is_reported_and_the_older_used(
    damage: Callable[[Path], None], out: Path, whole: bytes
) -> None:
    newest, _ = checkpoints(out)
    damage(newest)
    story = play(small(**EVERY_ROUND), out, stop_after=2)
    [(_, note), *_] = [told for told in story.told if told[0] == "note"]
    assert str(newest) in str(note)
    assert "damaged" in str(note)
    assert ("going on", "fielding", 0, 5) in story.told
    assert not newest.exists()
    assert rounds_of(out) == [7, 6]
    play(small(**EVERY_ROUND), out)
    assert log_of(out) == whole


@pytest.mark.parametrize("damage", DAMAGES[:3])
def test_when_none_is_good_the_run_starts_over_and_says_so(
    damage: Callable[[Path], None], out: Path, whole: bytes
) -> None:
    for file in checkpoints(out):
        damage(file)
    story = play(small(**EVERY_ROUND), out)
    notes = [str(told[1]) for told in story.told if told[0] == "note"]
    assert len(notes) == 3
    assert notes[-1] == "fielding, seed 0: all checkpoints are damaged, starting over"
    assert story.rounds == ROUNDS
    assert log_of(out) == whole


def test_a_damaged_log_is_reported_and_what_can_be_kept_of_it_is(out: Path, whole: bytes) -> None:
    log = RunDirectory(out).run_file("fielding", 0, "log.jsonl")
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:6]))  # the header and five rounds; the sixth is lost
    story = play(small(**EVERY_ROUND), out)
    [note] = [str(told[1]) for told in story.told if told[0] == "note"]
    assert str(log) in note
    assert ("going on", "fielding", 0, 5) in story.told
    assert log_of(out) == whole


@pytest.mark.parametrize(("reader", "file_name"), [("checkpoints", "round-"), ("appended_file", "log.jsonl")])
def test_a_file_that_cannot_be_read_is_kept_and_the_run_resumed_once_it_can(
    reader: str, file_name: str, out: Path, whole: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = rounds_of(out)
    plan = plan_run(small(**EVERY_ROUND), out, ["fielding"], locator(None, None), fresh=False)

    def failing(path: Path, **named: Any) -> Any:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(f"emulator.storage.{reader}.open_file", failing)
        with pytest.raises(ResumableError) as stopped:
            run_plan(plan, Story())
    message = str(stopped.value)
    assert message.startswith("fielding, seed 0 stopped in round ")
    assert "Input/output error" in message
    assert file_name in message
    assert "It resumes from its last checkpoint, round 6, when the command is given again" in message
    assert rounds_of(out) == before
    assert ("going on", "fielding", 0, 6) in play(small(**EVERY_ROUND), out).told
    assert log_of(out) == whole


@pytest.mark.parametrize("gone", ["log", "first byte"])
def test_without_its_log_a_run_starts_over(gone: str, out: Path, whole: bytes) -> None:
    log = RunDirectory(out).run_file("fielding", 0, "log.jsonl")
    content = log.read_bytes()
    log.unlink() if gone == "log" else log.write_bytes(b"[" + content[1:])
    story = play(small(**EVERY_ROUND), out)
    assert story.rounds == ROUNDS
    assert [told for told in story.told if told[0] == "note"][-1][1] == (
        "fielding, seed 0: all checkpoints are damaged, starting over"
    )
    assert log_of(out) == whole


def refusal(out: Path, arm: str = "fielding") -> str:
    """The one-line message with which resuming is refused; checks that no file of a run has changed."""
    before = {file: file.read_bytes() for file in out.glob("*/seed-*/**/*") if file.is_file()}
    plan = plan_run(small(**EVERY_ROUND), out, [arm], locator(None, None), fresh=False)
    with pytest.raises(CheckpointError) as raised:
        run_plan(plan, Story())
    assert {file: file.read_bytes() for file in out.glob("*/seed-*/**/*") if file.is_file()} == before
    message = str(raised.value)
    assert "\n" not in message
    assert message.startswith(f"{arm}, seed 0: {out}")
    assert message.endswith("--fresh begins anew")
    return message


def test_one_of_another_format_is_refused_and_kept(
    out: Path, whole: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as another:
        another.setattr("experiments.running.attempt.FORMAT", FORMAT + 1)
        problem = f"by this version: its format is {FORMAT}, this version of driftscale has {FORMAT + 1}"
        assert problem in refusal(out)
    play(small(**EVERY_ROUND), out)
    assert log_of(out) == whole


def test_one_of_another_run_is_refused_and_kept(out: Path) -> None:
    of_global = RunDirectory(out).checkpoints("global", 0)
    of_global.path.mkdir(parents=True)
    for file in checkpoints(out):
        file.rename(of_global.path / file.name)
    assert "it is of another run: {'arm': 'fielding', 'seed': 0}" in refusal(out, "global")


@pytest.mark.parametrize("problem", [ValueError("no such clusters"), KeyError("_since"), TypeError("None")])
def test_one_whose_state_a_part_refuses_is_kept(
    problem: Exception, out: Path, whole: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    from coordinator.clusterers.fielding import Fielding

    def refuse(self: Fielding, state: object) -> None:
        raise problem

    with monkeypatch.context() as another:
        another.setattr(Fielding, "restore", refuse)
        assert str(problem) in refusal(out)
    play(small(**EVERY_ROUND), out)
    assert log_of(out) == whole


def test_a_part_that_makes_an_attribute_late_is_named_when_it_is_stored_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Single.on_data

    def late(self: Single, view: View) -> Any:
        self._late = view.round  # type: ignore[attr-defined]
        return plain(self, view)

    monkeypatch.setattr(Single, "on_data", late)
    plan = plan_run(small(**EVERY_ROUND), tmp_path / "out", ["global"], locator(None, None), fresh=False)
    with pytest.raises(RunError, match="1 of 1 runs failed"):
        run_plan(plan, Story())
    assert RunDirectory(tmp_path / "out").failure("global", 0) == (
        "the clusterer cannot be stored: its attribute _late has changed since it was made, and is not among "
        "its state_fields; name it there"
    )


def test_failed_is_never_beside_checkpoints_and_a_failed_run_starts_over(
    out: Path, whole: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = RunDirectory(out)
    files = [(file, file.read_bytes()) for file in checkpoints(out)]
    directory.mark_failed("fielding", 0, "why")
    assert checkpoints(out) == []
    directory.checkpoints("fielding", 0).path.mkdir()  # as after a power failure
    for file, content in files:
        file.write_bytes(content)
    assert directory.resumable_pairs() == []
    story = play(small(**EVERY_ROUND), out)
    assert story.told == [("run", "fielding", 0)]
    assert directory.failure("fielding", 0) is None
    assert log_of(out) == whole


def test_the_metadata_of_packages_is_read_once_however_often_a_run_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def version(name: str) -> str:
        read.append(name)
        return "99"

    monkeypatch.setattr("experiments.running.attempt.version", version)
    rounding_versions.cache_clear()
    try:
        play(small(**EVERY_ROUND), tmp_path / "out", stop_after=4)
    finally:
        rounding_versions.cache_clear()
    assert read == list(ROUNDING)


def test_other_versions_of_the_packages_that_compute_are_noted(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("experiments.running.attempt.rounding_versions", lambda: {"torch": "99"})
    story = play(small(**EVERY_ROUND), out)
    [note] = [str(told[1]) for told in story.told if told[0] == "note"]
    assert "begun with torch 2" in note
    assert "(now 99)" in note
    assert "results may differ by rounding" in note
