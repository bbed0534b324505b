from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from emulator.errors import (
    CheckpointError,
    ConfigurationError,
    DataFileError,
    ForeignFileError,
    InputError,
    ResumableError,
    RunError,
)
from executor.failures import PeerFaultError, unpacked_error
from experiments.jobs import workplace
from experiments.jobs.workplace import EVENT_EVERY_S, Job, Workplace, _Reporter, described
from experiments.locating import DataFolders, locator
from experiments.reading import load_experiment
from experiments.running.locking import lock_content, locked, seed_locked
from experiments.running.manifest import Drawn, write_manifest
from experiments.running.plan import Plan, PlannedRun, Reached, plan_run
from experiments.running.runner import draw_world, run_plan
from tests.experiments.jobs.fakes import a_plan
from tests.experiments.small import Story, write_idx_folder, write_label_trace, write_replay

Body = dict[str, Any]


class Desk:
    """A plan whose run directory is locked, a workplace for it, and the reports that this has sent."""

    def __init__(self, plan: Plan, data: DataFolders = None, own_data: DataFolders = None) -> None:
        self.plan = plan
        self.name = plan.experiment.name
        content = {self.name: lock_content(plan.directory)}
        descriptions = json.loads(json.dumps({self.name: described(plan, data)}))  # plain values
        self.workplace = Workplace(descriptions, content, own_data)
        self.sent: list[Body] = []

    def run(self, arm: str, seed: int = 0) -> PlannedRun:
        return PlannedRun(self.name, arm, seed, self.plan.experiment.round.rounds)

    def draw(self, arm: str = "a", seed: int = 0, **files: Any) -> Body:
        return self.workplace.do(Job(self.run(arm, seed), is_draw=True, files=files), self.sent.append)

    def play(self, arm: str = "a", seed: int = 0, **job: Any) -> Body:
        return self.workplace.do(Job(self.run(arm, seed), is_draw=False, files={}, **job), self.sent.append)


@pytest.fixture
def held() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def desk(tmp_path: Path, held: ExitStack) -> Desk:
    plan = a_plan(tmp_path)
    held.enter_context(locked(plan.directory.path))
    return Desk(plan)


@pytest.fixture
def worlds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The seeds whose worlds are drawn."""
    seeds: list[int] = []

    def counted(plan: Plan, seed: int, *arguments: Any, **options: Any) -> Any:
        seeds.append(seed)
        return draw_world(plan, seed, *arguments, **options)

    monkeypatch.setattr(workplace, "draw_world", counted)
    return seeds


def logs(plan: Plan) -> list[bytes]:
    return [path.read_bytes() for path in sorted(plan.directory.path.glob("*/seed-*/log.jsonl"))]


# -- worlds and runs ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_runs_come_to_the_bytes_that_they_come_to_one_after_another(tmp_path: Path, desk: Desk) -> None:
    for seed in (0, 1):
        for arm in "ab":
            assert desk.play(arm, seed)["end"] == "done"
    serial = a_plan(tmp_path / "serial")
    run_plan(serial, Story())
    assert len(logs(serial)) == 4
    assert logs(desk.plan) == logs(serial)


def test_runs_stop_at_a_round_and_go_on_elsewhere(tmp_path: Path, held: ExitStack) -> None:
    plan = a_plan(tmp_path)
    held.enter_context(locked(plan.directory.path))
    for until in (2, 3, None):
        assert Desk(replace(plan, until=until)).play()["end"] == "done"
        stopped = plan.directory.until("a", 0)
        assert until == (stopped and stopped.rounds)
    run_plan(serial := a_plan(tmp_path / "serial"), Story())
    assert logs(plan)[0] == logs(serial)[0]


def test_a_world_is_drawn_once_for_the_arms_of_a_seed(desk: Desk, worlds: list[int]) -> None:
    results = [desk.draw(), desk.play("a"), desk.play("b"), desk.play("a", 1), desk.play("b", 1)]
    assert [result["end"] for result in results] == ["drawn", *["done"] * 4]
    assert worlds == [0, 1]


def test_the_facts_of_a_drawn_world_are_plain_values_as_a_manifest_records_them(desk: Desk) -> None:
    result = desk.draw(seed=1)
    drawn = Drawn(**json.loads(json.dumps(result["drawn"])))
    write_manifest(desk.plan.directory, drawn)
    serial = a_plan(desk.plan.directory.path.parent / "serial", seeds=[1])
    run_plan(serial, Story())
    ours, theirs = desk.plan.directory.manifest(), serial.directory.manifest()
    assert ours == theirs is not None
    assert not list(desk.plan.directory.path.glob("*/seed-*"))  # a draw stores nothing


def test_a_world_that_differs_from_another_workers_is_refused(desk: Desk) -> None:
    fingerprint = desk.draw()["drawn"]["fingerprint"]
    assert Desk(desk.plan).play(fingerprint=fingerprint)["end"] == "done"
    result = Desk(desk.plan).play("b", fingerprint={**fingerprint, "trace": "0" * 64})
    error = unpacked_error(result["error"], "")
    assert isinstance(error, ConfigurationError)
    assert str(error).startswith("the trace of seed 0 is not the same on every worker: ")


def test_a_world_that_cannot_be_drawn_leaves_the_workplace_as_good_as_before(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(plan: Plan, seed: int, files: Any, note: Any) -> Any:
        raise ConfigurationError(f"arm a: does not fit, {note is not None}")

    with monkeypatch.context() as patch:
        patch.setattr(workplace, "draw_world", refuse)
        result = desk.workplace.do(
            Job(desk.run("a"), is_draw=True, files={}, check_arms=True), desk.sent.append
        )
    assert str(unpacked_error(result["error"], "")) == "arm a: does not fit, True"
    assert desk.play()["end"] == "done"


# -- how a job ends -----------------------------------------------------------------------------------------


def test_a_run_that_is_done_answers_with_what_it_took_and_held_over_all_attempts(desk: Desk) -> None:
    result = desk.play()
    timing = desk.plan.directory.read_timing("a", 0)
    assert result == {
        "end": "done",
        "notes": [],
        "wall_s": timing.wall_s,
        "peak_memory_bytes": timing.peak_memory_bytes,
    }
    assert desk.play() == result  # already done: the same again


def test_a_run_that_fails_says_why(tmp_path: Path, held: ExitStack) -> None:
    plan = a_plan(tmp_path, training={"learning_rate": 1e38})
    held.enter_context(locked(plan.directory.path))
    result = Desk(plan).play()
    assert result["end"] == "failed"
    assert "diverged" in result["why"]
    assert plan.directory.run_file("a", 0, "FAILED").read_text() == result["why"] + "\n"


def test_a_run_is_stored_when_it_is_stopped_and_resumes_after_it(tmp_path: Path, desk: Desk) -> None:
    def stop(body: Body) -> None:
        assert desk.workplace.is_busy
        desk.workplace.stop()

    job = Job(desk.run("a"), is_draw=False, files={})
    assert desk.workplace.do(job, stop) == {"end": "stopped", "notes": []}
    assert not desk.workplace.is_busy
    assert desk.plan.directory.checkpoints("a", 0).files()
    assert desk.play("b") == {"end": "stopped", "notes": []}  # it begins no other
    again = Desk(desk.plan)
    assert again.play()["end"] == "done"
    assert {"run": "small/a/0", "resumed": 1} in again.sent
    serial = a_plan(tmp_path / "serial", "a", [0])
    run_plan(serial, Story())
    assert logs(desk.plan) == logs(serial)


def test_a_run_that_another_process_is_at_is_held(desk: Desk) -> None:
    with seed_locked(desk.plan.directory, "a", 0):
        result = desk.play()
    assert result["end"] == "held"
    assert result["why"].startswith("a, seed 0: another call in this process")
    assert desk.play()["end"] == "done"


ERRORS = [
    ResumableError("out of memory"),
    CheckpointError("of another version"),
    ForeignFileError("log.jsonl: is a link"),
    ConfigurationError("a key"),
    RunError("cannot go on"),
    MemoryError("2 GiB"),
    OSError(errno.ENOSPC, "No space left on device", "log.jsonl"),
    ZeroDivisionError("a part's mistake"),
    DataFileError("labels.csv", "is gone"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_comes_to_the_command_as_what_it_is(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def raises(*arguments: Any, **options: Any) -> None:
        raise error

    monkeypatch.setattr(workplace, "run_one", raises)
    result = json.loads(json.dumps(desk.play()))
    raised = unpacked_error(result.pop("error"), "at worker w0")
    assert result == {"end": "error", "notes": []}
    kinds: dict[type, type] = {ZeroDivisionError: PeerFaultError, DataFileError: InputError}
    assert type(raised) is kinds.get(type(error), type(error))
    if isinstance(error, ZeroDivisionError):
        assert str(raised) == "at worker w0: ZeroDivisionError: a part's mistake"
        assert raised.__notes__[0].startswith("Traceback")
    else:
        assert str(raised) == str(error)


def test_a_job_of_a_command_that_is_gone_touches_nothing(desk: Desk) -> None:
    """Its successor has the lock by now."""
    desk.plan.directory.lock_path.write_bytes(b"4711 host\nanother\n")
    assert desk.play() == {"end": "stopped", "notes": []}
    assert not list(desk.plan.directory.path.glob("*/seed-*"))


# -- reports on a run ---------------------------------------------------------------------------------------


def test_a_run_reports_how_far_it_has_come(desk: Desk) -> None:
    desk.play()
    first = desk.sent[0]
    peak = first.pop("peak_bytes")
    assert peak > 2**20
    assert first["run"] == "small/a/0"
    assert (first["rounds"], first["evaluated"]) == (1, first["accuracy"] is not None)


class Reporting:
    """A reporter of one run, whose clock the test advances."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.sent: list[Body] = []
        self.run = PlannedRun("e", "a", 0, 100)
        self.reporter = _Reporter(self.run, self.sent.append, lambda: self.now_s)

    def round(self, number: int, accuracy: float | None = None) -> None:
        self.reporter.round_done(self.run, Reached(number, 10.0 * number, accuracy))

    @property
    def rounds(self) -> list[int]:
        return [body["rounds"] for body in self.sent if "rounds" in body]


def test_of_many_rounds_two_a_second_are_reported() -> None:
    reporting = Reporting()
    for number in range(1, 34):
        reporting.round(number)
        reporting.now_s += EVENT_EVERY_S / 8
    assert reporting.rounds == [1, 9, 17, 25, 33]


def test_the_first_evaluation_is_reported_at_once_and_other_rounds_twice_a_second() -> None:
    reporting = Reporting()
    for number in range(1, 21):  # eight rounds a second, every other one evaluated
        reporting.round(number, None if number % 2 else 0.5)
        reporting.now_s += EVENT_EVERY_S / 4
    reports = [(body["rounds"], body["evaluated"]) for body in reporting.sent]
    assert reports == [(1, False), (2, True), (6, True), (10, True), (14, True), (18, True)]


def test_every_note_is_sent_with_its_number_and_none_is_left_out() -> None:
    reporting = Reporting()
    for text in ("one", "two", "two"):
        reporting.reporter.note(text)
    assert [(body["note"], body["number"]) for body in reporting.sent] == [("one", 1), ("two", 2), ("two", 3)]
    assert reporting.reporter.notes == ["one", "two", "two"]
    assert {body["run"] for body in reporting.sent} == {"e/a/0"}


def test_notes_come_with_the_answer_again(desk: Desk) -> None:
    desk.plan.directory.start("a", 0)
    desk.plan.directory.run_file("a", 0, "log.jsonl").touch()
    result = desk.play()
    assert result["notes"] == ["a, seed 0: was begun and left no checkpoint, starting over"]
    assert {"run": "small/a/0", "note": result["notes"][0], "number": 1} in desk.sent


# -- runs beside it -----------------------------------------------------------------------------------------


def test_the_most_runs_that_were_beside_it_stand_in_its_timing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those too that begin while it waits for its world."""

    def beside(arm: str) -> int:
        return desk.plan.directory.read_timing(arm, 0).runs_beside

    def drawn_slowly(*arguments: Any, **options: Any) -> Any:
        desk.workplace.runs_beside(3)
        desk.workplace.runs_beside(2)
        return draw_world(*arguments, **options)

    monkeypatch.setattr(workplace, "draw_world", drawn_slowly)
    desk.play("a", beside=1)
    desk.play("b", beside=1)  # in the same world
    assert (beside("a"), beside("b")) == (3, 1)


# -- data on another machine --------------------------------------------------------------------------------


def a_replay(folder: Path, held: ExitStack) -> Plan:
    """An experiment whose data are below `data`."""
    data = folder / "data"
    write_idx_folder(data / "images")
    write_label_trace(data / "labels.csv")
    file = write_replay(folder)
    plan = plan_run(load_experiment(file, data=data), folder / "out", None, locator(data, file), fresh=False)
    held.enter_context(locked(plan.directory.path))
    return plan


def test_a_worker_reads_the_data_where_its_machine_has_them(tmp_path: Path, held: ExitStack) -> None:
    plan = a_replay(tmp_path, held)
    data = tmp_path / "data"
    drawn_there = Desk(plan, data).draw("global")["drawn"]
    elsewhere = tmp_path / "elsewhere"
    shutil.move(data, elsewhere)
    desk = Desk(plan, data, elsewhere)
    assert desk.draw("global")["drawn"] == drawn_there
    desk.workplace.check_files({desk.name: Drawn(**drawn_there).files})


def test_data_in_several_folders_are_read_from_the_workers_own_or_from_the_commands(
    tmp_path: Path, held: ExitStack
) -> None:
    plan = a_replay(tmp_path, held)
    folders = [tmp_path / "data", tmp_path / "other"]
    drawn = Desk(plan, folders[0]).draw("global")["drawn"]
    folders[1].mkdir()
    shutil.move(folders[0] / "images", folders[1])
    assert Desk(plan, folders).draw("global")["drawn"] == drawn
    assert Desk(plan, tmp_path / "gone", own_data=folders).draw("global")["drawn"] == drawn


def test_data_that_are_not_the_commands_are_refused(tmp_path: Path, held: ExitStack) -> None:
    plan = a_replay(tmp_path, held)
    desk = Desk(plan, tmp_path / "data")
    files = Drawn(**desk.draw("global")["drawn"]).files
    with (tmp_path / "data/labels.csv").open("a") as table:
        table.write("here,2021-01-09,x,1\n")
    with pytest.raises(DataFileError, match=r"labels\.csv: has changed since the runs"):
        desk.workplace.check_files({desk.name: files})
    result = desk.draw("global", **files)
    error = unpacked_error(result["error"], "")
    assert type(error) is InputError
    assert "labels.csv: has changed" in str(error)
