"""Runs over data that change in what clients hold: resumed at any step they end with the same log."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from experiments.build import build_world
from experiments.config import parse_experiment
from experiments.locating import locator
from tests.experiments.small import SMALL, merged
from tests.reliability.stops import Stopped

HELD: list[dict[str, Any]] = [
    {"what": {"swap": [[0, 1]]}, "on": "held", "clients": {"share": 0.5, "redraw": False}, "at_round": 4},
    {"what": {"rotate": 90}, "on": "held", "clients": {"part": 2, "of": 3}, "at_step": 1, "until_step": 3},
    {"what": {"noise": 0.3}, "on": "arrivals", "samples": 0.5, "at_step": 2},
]
RUNS: dict[str, dict[str, Any]] = {
    "fielding": {
        "trace": {"changes": HELD},
        "parts": {"clusterer": {"kind": "fielding", "max_clusters": 3}, "representation": "gradient"},
    },
    "feddrift": {
        "trace": {"changes": HELD},
        "parts": {"clusterer": {"kind": "feddrift", "delta": 0.05}, "memory": "claimed"},
    },
    "static": {
        "trace": {
            "static": True,
            "changes": [
                {"what": "reverse", "on": "held", "at_round": 2, "until_round": 4, "every": 4},
                {**HELD[1], "splits": ["train"]},
            ],
        },
        "parts": {"clusterer": "oracle"},
    },
}


@pytest.mark.parametrize("name", RUNS)
def test_a_run_over_changing_data_that_is_stopped_and_resumed_has_the_log_of_one_that_is_not(
    name: str, tmp_path: Path
) -> None:
    small = {
        "devices": {"profile": "smartphones"},
        "round": {"rounds": 10, "participants": 4, "evaluate_every": 2},
        "arm": [{"name": name}],
    }
    experiment = parse_experiment(merged(merged(SMALL, small), RUNS[name]), name)
    world = build_world(experiment, 0, locator(tmp_path, None))
    whole = Stopped(experiment, world, tmp_path / "whole").play()
    draw = random.Random(name)
    stopped = Stopped(experiment, world, tmp_path / "stopped")
    assert stopped.play_with_stops(lambda: draw.randint(1, 4)) == whole
    assert stopped.resumes > 3
    again = build_world(experiment, 0, locator(tmp_path, None))
    assert again.fingerprint() == world.fingerprint()
    assert Stopped(experiment, again, tmp_path / "again").play() == whole
