"""The shipped atlas: its columns are alike in all but the drift, so that they may stand in one table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from experiments.config import Experiment
from experiments.extending import merged
from experiments.locating import locator
from experiments.playing.command import RunCommand
from experiments.reading import load_experiment, read_file
from experiments.results.reading.deciding import run_identities
from experiments.shipped import CONFIGS, shipped_file, shipped_files
from experiments.tuning.command import read_columns
from experiments.tuning.rows import rows_of

COLUMNS = [name for name in shipped_files() if name.startswith(("atlas/", "phones/"))]
ONLY_SOME = {"transformed", "oracle", "kernel"}
"""Rows that not every column has in the same form: what a client may undo, and who may be told the truth."""


def table_of(name: str) -> dict[str, Any]:
    path = shipped_files()[name]
    return merged(read_file(path), path, locator(None, path), read_file)


def loaded(name: str) -> Experiment:
    return load_experiment(shipped_files()[name])


def test_all_columns_are_there_and_parts_of_them_are_no_configurations() -> None:
    assert len(COLUMNS) == 11 + 4
    for part in ("atlas/parts/arms", "atlas/chosen/swap"):
        assert part not in shipped_files()
        assert shipped_file(part) is not None


@pytest.mark.parametrize("name", COLUMNS)
def test_data_and_ends_follow_virtual_time_so_that_all_arms_reach_the_same_data(
    name: str,
) -> None:
    rounds, report = loaded(name).round, loaded(name).report
    assert rounds.seconds_per_round is not None
    assert (rounds.rounds, rounds.participants, loaded(name).seeds) == (100, 12, tuple(range(10)))
    assert report.horizon_s == rounds.rounds * rounds.seconds_per_round


@pytest.mark.parametrize("folder", ["atlas/", "phones/"])
def test_columns_of_a_table_have_the_same_rows_and_rounds(folder: str) -> None:
    first, *others = [table_of(name) for name in COLUMNS if name.startswith(folder)]
    rows = [arm["name"] for arm in first["arm"] if arm["name"] not in ONLY_SOME]
    for other in others:
        assert other["round"] == first["round"]
        assert [arm["name"] for arm in other["arm"] if arm["name"] not in ONLY_SOME] == rows


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_has_a_rival_that_is_no_oracle_chosen_on_seeds_that_it_does_not_report(name: str) -> None:
    experiment = loaded(name)
    assert experiment.atlas is not None
    assert not {*experiment.atlas.seeds} & {*experiment.seeds}
    assert experiment.find_arm(experiment.atlas.rival).baseline


@pytest.mark.parametrize("name", COLUMNS)
def test_every_row_names_what_a_tune_tries_of_it(name: str) -> None:
    rows = rows_of(table_of(name), name)
    assert {row.name for row in rows} >= {"fedavg", "ifca", "alone", "transformed"}
    assert all(len(row.settings) in (3, 6, 9) for row in rows)
    assert any(row.is_baseline for row in rows)


def test_a_new_row_changes_no_run_of_another_one(tmp_path: Path) -> None:
    """So that of an atlas to which somebody adds a method only the runs of its row are played."""
    before = run_identities(loaded("atlas/swap").resolved())
    new = '[[arm]]\nname = "mine"\nselector = "oort"\nevaluate_with = ["none", "prior"]\n'
    (tmp_path / "with-mine.toml").write_text(f'extends = "atlas/swap"\n{new}')
    after = run_identities(load_experiment(tmp_path / "with-mine.toml").resolved())
    assert after.keys() - before.keys() == {"mine", "mine+prior"}
    assert {arm: after[arm] for arm in before} == before


@pytest.mark.sweep
def test_every_setting_that_a_tune_tries_is_one_that_its_arm_takes(tmp_path: Path) -> None:
    folder = CONFIGS / "atlas"
    command = RunCommand(folder, seeds=[100, 101, 102], out=tmp_path)
    columns, left_out = read_columns(command, folder)
    assert (len(columns), left_out) == (6, [])
