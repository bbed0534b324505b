"""Input files that change or vanish during an experiment: one line, and finished runs are kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from emulator.errors import InputError
from experiments.config import Experiment, parse_experiment
from experiments.locating import locator
from experiments.results.reading.run_directory import RunDirectory
from experiments.running.plan import plan_run
from experiments.running.runner import run_plan
from experiments.running.stop import Stop
from tests.experiments.small import (
    DEVICES,
    WINDOWS,
    Story,
    replay,
    small,
    write_idx_folder,
    write_label_trace,
)
from tests.reliability.test_checkpoints import AfterRounds
from tests.reliability.test_disk import Acting

ROUNDS = 4
FILES = ("devices.csv", "windows.csv")


def tables(data: Path) -> Experiment:
    """An experiment over two tables."""
    (data / "devices.csv").write_text(DEVICES)
    (data / "windows.csv").write_text(WINDOWS)
    return small(seeds=[0, 1], devices={"profile": "devices.csv", "availability": "windows.csv"})


def play(experiment: Experiment, data: Path, story: Story | None = None, stop: Stop | None = None) -> Story:
    story = story or Story()
    run_plan(plan_run(experiment, data / "out", ["global"], locator(data, None), fresh=False), story, stop)
    return story


def change(file: Path) -> None:
    file.write_text(file.read_text().replace("a,0", "a,1", 1))


DAMAGES: list[tuple[Callable[[Path], Any], str]] = [
    (change, "has changed since the runs in this directory were begun"),
    (Path.unlink, "not found"),
]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(("damage", "problem"), DAMAGES, ids=["changed", "gone"])
def test_between_two_seeds_it_is_named_and_the_first_seed_is_kept(
    damage: Callable[[Path], Any], problem: str, name: str, tmp_path: Path
) -> None:
    experiment = tables(tmp_path)
    story = Acting(ROUNDS, lambda: damage(tmp_path / name))
    with pytest.raises(InputError, match=rf"{name}: {problem}") as refused:
        play(experiment, tmp_path, story)
    assert refused.value.exit_code == 2
    assert RunDirectory(tmp_path / "out").reported_pairs() == [("global", 0)]
    tables(tmp_path)  # put back
    assert play(experiment, tmp_path).told == [("skipped", "global", 0), ("run", "global", 1)]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(("damage", "problem"), DAMAGES, ids=["changed", "gone"])
def test_a_run_that_is_resumed_is_bound_to_them(
    damage: Callable[[Path], Any], problem: str, name: str, tmp_path: Path
) -> None:
    experiment = tables(tmp_path)
    story = Story()
    with pytest.raises(KeyboardInterrupt):
        play(experiment, tmp_path, story, AfterRounds(story, 2))
    damage(tmp_path / name)
    with pytest.raises(InputError, match=rf"{name}: {problem}"):
        play(experiment, tmp_path)
    tables(tmp_path)
    assert ("going on", "global", 0, 2) in play(experiment, tmp_path).told


def test_one_that_changes_while_a_run_is_at_work_changes_nothing_of_that_run(tmp_path: Path) -> None:
    experiment = tables(tmp_path)
    with pytest.raises(InputError, match=r"devices\.csv: has changed"):
        play(experiment, tmp_path, Acting(1, lambda: change(tmp_path / "devices.csv")))
    (tmp_path / "whole").mkdir()
    play(tables(tmp_path / "whole"), tmp_path / "whole")
    logs = [
        RunDirectory(tmp_path / out).run_file("global", 0, "log.jsonl").read_bytes()
        for out in ("out", "whole/out")
    ]
    assert logs[0] == logs[1]


def test_they_may_change_where_no_run_was_begun(tmp_path: Path) -> None:
    experiment = tables(tmp_path)
    story = Story()
    story.round_done = lambda *told: (_ for _ in ()).throw(KeyboardInterrupt)  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        play(experiment, tmp_path, story)
    change(tmp_path / "devices.csv")
    assert ("run", "global", 0) in play(experiment, tmp_path).told


def test_images_are_bound_too(tmp_path: Path) -> None:
    images = write_idx_folder(tmp_path / "images")
    write_label_trace(tmp_path / "labels.csv")
    experiment = parse_experiment(replay(seeds=[0, 1]), "replay")

    def flip() -> None:
        content = bytearray((images / "train-images-idx3-ubyte").read_bytes())
        content[-1] ^= 1
        (images / "train-images-idx3-ubyte").write_bytes(content)

    with pytest.raises(InputError, match=r"images/train-images-idx3-ubyte: has changed"):
        play(experiment, tmp_path, Acting(ROUNDS, flip))
