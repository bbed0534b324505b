from __future__ import annotations

import pytest

from emulator.errors import RunError
from experiments.bench.digits import Silence, digits_figures, digits_online
from experiments.running.plan import PlannedRun


def ignore(text: str) -> None:
    pass


def test_digits_gives_the_wall_time_and_the_share_outside() -> None:
    settings = ("round.rounds=4", "trace.clients=40", "trace.drift.events=[]")
    experiment = digits_online(*settings)
    wall, outside = digits_figures(experiment, 2, ignore)
    assert (wall.name, wall.unit, wall.repeats) == ("digits-wall", "s", 2)
    assert (outside.name, outside.unit, outside.repeats) == ("digits-outside", "%", 2)
    assert 0 < outside.value < 100


def test_a_run_that_fails_ends_the_bench() -> None:
    with pytest.raises(RunError, match="bench digits: diverged"):
        Silence().failed(PlannedRun("digits", "fielding", 0, 1), "diverged")
