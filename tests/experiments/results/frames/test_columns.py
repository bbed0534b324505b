"""Every column of every frame is described, and every description has its column."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import driftscale
from driftscale.results import Results
from emulator.errors import InputError
from emulator.messages import NamedNumbers
from emulator.numbers import DEVICE_BOUNDS
from emulator.storage.recorded_tables import OF_STEPS, write_clients
from emulator.storage.runlog import SCHEMA
from experiments.results.frames.columns import (
    CHECK,
    COMPARISON,
    IN_FOLDERS,
    Column,
    columns_of,
    described,
    figures,
    frame_columns,
)
from experiments.results.frames.result_frames import FRAMES, ResultFrames
from experiments.results.statistics.targets import target_table
from experiments.results.statistics.time_to_accuracy import ACCURACIES
from experiments.results.tables import all_quantities
from experiments.results.tables.concept_drift import OF_WHOLE_RUNS
from experiments.results.tables.targets import OF_TARGETS
from tests.experiments.running.played import play
from tests.experiments.small import small, small_table
from tests.experiments.synthetic_runs import a_detecting_run, a_directory, a_run, store

ALL = (*FRAMES, "table")
OF_DETECTORS = ("detection", "drifts")
JSON_ONLY = {"reclustering_rounds", *(f"{name}_recovery" for name in ACCURACIES)}
"""Quantities of `summary.json` that are lists, and in no frame."""


@pytest.fixture(scope="module")
def played(tmp_path_factory) -> ResultFrames:
    """A run that logged all that can be logged, with a gain over an arm other than the first."""
    arms = [
        {"name": "global", "baseline": True},
        {"name": "prior", "adaptation": "prior", "baseline": True},
        {"name": "fielding", "clusterer": {"kind": "fielding", "max_clusters": 3}},
    ]
    path = tmp_path_factory.mktemp("columns") / "out"
    recorded = {"log_visits": True, "log_client_accuracy": True}
    experiment = small(
        arm=arms, round=recorded, devices={"profile": "smartphones"}, report={"targets": [0.1]}
    )
    play(experiment, path)
    return ResultFrames.read(path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> ResultFrames:
    """A folder of two run directories, in which a trigger named a number."""
    path = tmp_path_factory.mktemp("folder")
    for seed in (0, 1):
        run = a_run("global", seed, [0.5, 0.75])
        record = replace(run.records[0], trigger=NamedNumbers({"spread": 0.5}, clusters=1, fired=False))
        rounds = {"participants": 20 + seed, "over_commit": 1.3, "rounds": 150}
        directory = a_directory(path / f"run-{seed}", ["global"], [seed], round=rounds)
        store(directory, replace(run, records=[record, *run.records[1:]]))
    return ResultFrames.read(path)


@pytest.fixture(scope="module")
def frames(played: ResultFrames, tmp_path_factory) -> dict[str, pd.DataFrame]:
    """Every frame by name; those of detectors, with a drift that no concept shows, and models are made up."""
    path = tmp_path_factory.mktemp("detection")
    table = {"positive": "changed", "first_round": 0, "tolerance": 3}
    drifts = [(3, 0, "sudden", 0, 1), (4, 1, "mix", -1, -1)]
    directory = a_directory(path, ["global"], [0], detection=table)
    store(directory, a_detecting_run("global", 0, {}, {}, drifts))
    write_clients(
        directory.run_file("global", 0, "clients.parquet"),
        {name: np.ones(20) for name in DEVICE_BOUNDS},
        None,
    )
    detecting = ResultFrames.read(path)
    path = tmp_path_factory.mktemp("models")
    recorded = {"participants": 20, "over_commit": 1.3, "rounds": 150, "log_model_accuracy": True}
    models = a_run("global", 0, [0.5], accuracy_by_concept={0: [0.5]})
    store(a_directory(path, ["global"], [0], round=recorded), models)
    made_up = {**dict.fromkeys(OF_DETECTORS, detecting), "model_accuracy": ResultFrames.read(path)}
    return {name: made_up.get(name, played).frame(name) for name in ALL}


@pytest.mark.parametrize("name", ALL)
def test_every_column_of_a_frame_is_described_and_every_description_has_its_column(
    name: str, frames: dict[str, pd.DataFrame], folder: ResultFrames
) -> None:
    names = list(frames[name].columns)
    if name in ("rounds", "triggers"):
        names += [
            column for column in folder.frame(name).columns if column.startswith(("trigger.", "noted."))
        ]
    for column in names:
        assert described(name, column) is not None, f"{name}.{column} is described nowhere"
    # Each round is one step here, and devices have no jitter.
    absent = {"visits": [field.name for field in OF_STEPS], "clients": ["device_factor"]}.get(name, [])
    plain = [column for column in frame_columns()[name] if "<" not in column and column not in absent]
    assert [column for column in names if column in plain] == plain


@pytest.mark.parametrize("name", ALL)
def test_a_column_has_missing_values_only_if_its_description_says_when(
    name: str, frames: dict[str, pd.DataFrame]
) -> None:
    frame = frames[name]
    for column in frame.columns:
        known = described(name, column)
        assert known is not None
        if frame[column].isna().any():
            assert known.missing, f"{name}.{column} has missing values"


def test_every_field_of_a_round_says_what_it_is_and_when_it_is_missing() -> None:
    for item in SCHEMA.fields:
        assert item.logged.about, f"RoundRecord.{item.name} says nothing of itself"
        assert bool(item.logged.missing) == item.may_miss, f"RoundRecord.{item.name}: when is it missing?"
        assert item.logged.unit or item.column in (None, "bool"), f"RoundRecord.{item.name} has no unit"


def test_every_figure_is_described(played: ResultFrames) -> None:
    assert set(figures()) == set(all_quantities()) - JSON_ONLY
    summary = played.experiments[0].summary
    targets = [name for name, _ in target_table(0.1, summary.comparison).rows[1].estimates()]
    of_targets, finished = columns_of(OF_TARGETS), columns_of(OF_WHOLE_RUNS, "finished.")
    assert [key for key in of_targets if key in targets] == targets
    assert set(played.frame("summary")["figure"]) <= {*figures(), *of_targets, *finished}


def test_frames_of_a_folder_begin_with_the_experiment_and_its_keys(folder: ResultFrames) -> None:
    names = list(folder.frame("rounds").columns)
    assert names[: names.index("arm")] == ["experiment", "participants"]
    assert described("rounds", "experiment") == IN_FOLDERS["experiment"]
    columns = folder.columns("rounds").set_index("column")
    assert columns.meaning["participants"] == IN_FOLDERS["<key>"].meaning
    assert columns.unit["trigger.spread"] == "the trigger's own"


def test_a_figure_of_the_table_has_its_own_unit_also_at_the_ends_of_its_interval() -> None:
    for name in ("gain_pp", "gain_pp_low", "gain_pp_high"):
        column = described("table", name)
        assert column is not None
        assert column.unit == "percentage points"
    over = described("table", "gain_over_best_pp_over")
    assert over is not None
    assert over.unit == ""
    assert described("table", "nothing_low") is None


def test_results_say_what_their_columns_hold(played: ResultFrames) -> None:
    results = Results(played)
    columns = results.columns("rounds").set_index("column")
    assert list(columns.columns) == ["unit", "meaning", "missing"]
    assert columns.unit["closed_s"] == "virtual seconds"
    assert list(columns.index) == list(results.rounds.columns)
    with pytest.raises(
        InputError, match="no frame 'round'; choices: summary, table, rounds, clients, visits"
    ):
        results.columns("round")


def test_the_frames_of_check_and_compare_are_described(folder: ResultFrames) -> None:
    faults = {"crash": 0.1, "byzantine": {"kind": "label_flip", "share": 0.25}}
    checked = driftscale.check(small_table(faults=faults, devices={"availability": "diurnal"})).frame
    _every_column_is_described(checked, CHECK)
    compared = driftscale.compare(folder.path).frame
    _every_column_is_described(compared, COMPARISON)


def _every_column_is_described(frame: pd.DataFrame, columns: dict[str, Column]) -> None:
    figures = {f"{name}{end}" for name in columns for end in ("_low", "_high")}
    for name in frame.columns:
        pattern = f"{name.split(': ')[0]}: <"
        is_key = name == "round.participants"
        of_several = any(known.startswith(pattern) for known in columns)
        assert name in columns or name in figures or of_several or is_key, f"{name} is described nowhere"
    for name, column in columns.items():
        assert "<" in name or column.absent or name in frame.columns, f"{name} is no column"
