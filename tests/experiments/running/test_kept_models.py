"""The file of models is whole or not there: after errors, stops and kills a run ends with the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from emulator.errors import ResumableError
from executor.models import files
from experiments.config import Experiment
from experiments.locating import locator
from experiments.results.reading.run_directory import RunDirectory, RunFile
from experiments.running.plan import PlannedRun, Reached, plan_run
from experiments.running.runner import run_plan
from experiments.running.stop import Stop
from tests.experiments.running.played import FINISHED, logs, models, play
from tests.experiments.small import Story, small
from tests.reliability.test_disk import largest_file

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("own_modules")]

MODULE = {"kind": "tests.executor.modules.foreign:BNMLP", "d_in": 64, "n_classes": 10, "hidden": 4}
ARMS: list[dict[str, Any]] = [
    {"name": "ditto", "solver": ["ditto", "sgd"]},
    {"name": "alone", "adaptation": "alone"},
    {"name": "kept", "training": {"model": MODULE, "batch_norm": "kept"}},
]


def experiment(*arms: dict[str, Any], **changes: Any) -> Experiment:
    return small(arm=list(arms or ARMS), round={"rounds": 4, "over_commit": 1}, **changes)


def left(out: Path) -> tuple[dict[str, bytes], dict[str, bytes]]:
    return logs(out), models(out)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """The logs and the models of the runs, played without a fault."""
    out = tmp_path_factory.mktemp("whole") / "out"
    play(experiment(), out)
    return left(out)


class StoppedEveryRound(Story):
    """A story that asks to stop after each round."""

    def __init__(self) -> None:
        super().__init__()
        self.stop = Stop()

    def round_done(self, run: PlannedRun, reached: Reached) -> None:
        super().round_done(run, reached)
        self.stop.request()


def test_a_run_that_is_stopped_after_each_round_also_the_last_keeps_the_same_models(
    whole: tuple[dict[str, bytes], dict[str, bytes]], tmp_path: Path
) -> None:
    stops = 0
    while True:
        story = StoppedEveryRound()
        plan = plan_run(experiment(), tmp_path / "out", None, locator(None, None), fresh=False)
        try:
            run_plan(plan, story, story.stop)
            break
        except KeyboardInterrupt:
            stops += 1
    assert stops == 3 * 4
    assert left(tmp_path / "out") == whole


def failing_after(written: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the disk be full from a file of models on, of which so many are written before."""
    write, counts = files.replacing, iter(range(100))

    @contextmanager
    def replacing(path: Path) -> Iterator[BinaryIO]:
        with write(path) as file:
            if next(counts) >= written:
                file.write(b"half of it")
                path.with_name(f".models.safetensors.999999999-{'0' * 16}").write_bytes(
                    b"half"
                )  # as by a kill
                raise OSError(28, "No space left on device", str(path))
            yield file

    monkeypatch.setattr(files, "replacing", replacing)


@pytest.mark.parametrize("number", range(len(ARMS)))
@pytest.mark.parametrize("every", [None, 1])
def test_an_error_while_it_is_written_leaves_a_run_that_is_resumed(
    number: int,
    every: int | None,
    whole: tuple[dict[str, bytes], dict[str, bytes]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out, checkpoint = tmp_path / "out", {"checkpoint": {"every_rounds": every}} if every else {}
    name = ARMS[number]["name"]
    with monkeypatch.context() as full:
        failing_after(number, full)
        how = "resumes from its last checkpoint, round" if every else "begins again when"
        refusal = (
            rf"^{name}, seed 0 stopped in round 4: \S+models\.safetensors: No space left on device\. It {how}"
        )
        with pytest.raises(ResumableError, match=refusal):
            play(experiment(**checkpoint), out)
    directory = RunDirectory(out)
    assert directory.reported_pairs() == [(arm["name"], 0) for arm in ARMS[:number]]
    assert not directory.run_file(name, 0, "models.safetensors").exists()
    assert directory.failure(name, 0) is None
    story = play(experiment(**checkpoint), out)
    assert sum(told[0] == "going on" for told in story.told) == (every is not None)
    assert left(out) == whole
    assert {file.name for file in directory.seed_path(name, 0).iterdir()} == FINISHED


def test_a_file_of_models_that_grows_too_large_is_an_error_of_the_machine_too(
    whole: tuple[dict[str, bytes], dict[str, bytes]], tmp_path: Path
) -> None:
    """The models take 34,000 bytes, and nothing else 20,000."""
    with largest_file(20_000), pytest.raises(ResumableError, match=r"models\.safetensors: .*File too large"):
        play(experiment(), tmp_path)
    assert not list(tmp_path.glob("*/seed-0/*models*"))
    play(experiment(), tmp_path)
    assert left(tmp_path) == whole


class Killed(BaseException):
    """The end of a process."""


def killed_at(name: RunFile) -> Callable[..., Path]:
    """`RunDirectory.run_file`, which is the end for the file `name`."""
    run_file = RunDirectory.run_file

    def killed(directory: RunDirectory, arm: str, seed: int, asked: RunFile) -> Path:
        if asked == name:
            raise Killed
        return run_file(directory, arm, seed, asked)

    return killed


@pytest.mark.parametrize("name", ["models.safetensors", "timing.json", "DONE"])
def test_a_kill_between_the_last_round_and_done_costs_no_byte(
    name: RunFile,
    whole: tuple[dict[str, bytes], dict[str, bytes]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = tmp_path / "out"

    class At(Story):
        """From the last round of a run on, the next call for the path of the file is the end."""

        def round_done(self, run: PlannedRun, reached: Reached) -> None:
            super().round_done(run, reached)
            if self.rounds == 4:
                dying.setattr(RunDirectory, "run_file", killed_at(name))

    with monkeypatch.context() as dying, pytest.raises(Killed):
        run_plan(plan_run(experiment(), out, None, locator(None, None), fresh=False), At())
    directory = RunDirectory(out)
    assert not directory.is_done("ditto", 0)
    assert directory.run_file("ditto", 0, "models.safetensors").exists() == (name != "models.safetensors")
    play(experiment(), out)
    assert left(out) == whole


def test_fresh_deletes_them(tmp_path: Path) -> None:
    play(experiment(*ARMS[:1]), tmp_path)
    play(experiment(*ARMS[:1], output={"models": False}), tmp_path, fresh=True)
    assert not list(tmp_path.glob("*/*/models.safetensors"))


def test_a_finished_run_is_not_played_again_to_keep_them(tmp_path: Path) -> None:
    play(experiment(*ARMS[:1], output={"models": False}), tmp_path)
    story = play(experiment(*ARMS[:1], output={"models": True}), tmp_path)
    assert [told[0] for told in story.told] == ["skipped"]
    assert not list(tmp_path.glob("*/*/models.safetensors"))
