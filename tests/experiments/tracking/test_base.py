from __future__ import annotations

from emulator.messages import NamedNumbers, Trigger
from experiments.tracking.base import Point, settings_of
from tests.experiments.synthetic_runs import a_record


def test_a_point_has_the_scalars_of_a_record_and_the_lengths_of_its_lists() -> None:
    trigger = Trigger(shift=0.25, mean_distance=0.5, threshold=0.3, clusters=2, fired=False)
    record = a_record(3, trigger=trigger, silhouettes={2: 0.75, 3: None}, reclustered=True, loss=None)
    point = Point.of(record)
    assert (point.round, point.closed_s) == (3, 40.0)
    figures = dict(point.figures)
    assert all(type(value) in (int, float) for value in figures.values())
    assert "loss" not in figures  # the round was not evaluated
    assert "silhouette_3" not in figures  # undefined
    assert "members" not in figures
    expected = {
        "data_step": 0,
        "round_s": 10.0,
        "accuracy": 0.5,
        "download_bytes": 1600.0,
        "num_participants": 4,
        "num_completed": 3,
        "num_dropped": 1,
        "num_abandoned": 0,
        "num_clusters": 1,
        "reclustered": 1.0,
        "trigger_shift": 0.25,
        "trigger_threshold": 0.3,
        "trigger_fired": 0.0,
        "moved": 0.0,
        "nonfinite_reports": 0.0,
        "silhouette_2": 0.75,
    }
    assert {name: figures[name] for name in expected} == expected
    assert set(figures) - set(expected) == {
        *("accuracy_std", "train_loss", "mean_client_distance", "unclustered_distance", "scored_clients"),
        *("upload_bytes", "control_bytes", "models_sent", "changed", "reported"),
        *("num_crashed", "num_rejected", "num_forgotten", "trigger_mean_distance"),
    }


def test_a_point_has_the_numbers_that_a_trigger_named() -> None:
    numbers: dict[str, float | list[float]] = {"spread": 0.5, "far": [1.0, 2.0]}
    figures = Point.of(a_record(3, trigger=NamedNumbers(numbers, 2, True))).figures
    assert {name: value for name, value in figures.items() if name.startswith("trigger")} == {
        "trigger.spread": 0.5,
        "trigger.far.0": 1.0,
        "trigger.far.1": 2.0,
        "trigger_fired": 1.0,
    }


def test_a_point_has_the_numbers_that_parts_noted() -> None:
    figures = Point.of(a_record(3, noted={"disparity": 0.5})).figures
    assert {name: value for name, value in figures.items() if name.startswith("noted")} == {
        "noted.disparity": 0.5
    }


def test_settings_are_those_of_one_arm_and_one_seed() -> None:
    table = {
        "name": "x",
        "seeds": [0, 1],
        "trace": {"source": "digits", "drift": {"kind": "label_mix", "at": [1, 2]}},
        "arm": [{"name": "a", "selector": {"kind": "random"}}, {"name": "b", "selector": {"kind": "oort"}}],
    }
    assert settings_of(table, "b", 1) == {
        "name": "x",
        "trace.source": "digits",
        "trace.drift.kind": "label_mix",
        "trace.drift.at": "[1, 2]",
        "arm.name": "b",
        "arm.selector.kind": "oort",
        "seed": 1,
    }
