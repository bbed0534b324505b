from __future__ import annotations

import pytest

from benchmarks.digits import Silence, aggregator_figures, digits_figures, digits_online
from emulator.errors import RunError
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


def test_a_round_of_fedyogi_is_compared_with_one_of_fedavg() -> None:
    [yogi] = aggregator_figures(2, ignore, "round.rounds=4", "trace.clients=40", "round.participants=5")
    assert (yogi.name, yogi.unit, yogi.repeats) == ("fedyogi-round", "ms", 2)
    assert yogi.against == "the same with fedavg"
    assert yogi.target is not None
    assert yogi.target.at_least == pytest.approx(0.909, abs=1e-3)
    assert "5 participants" in yogi.about


def test_a_run_that_fails_ends_the_bench() -> None:
    with pytest.raises(RunError, match="bench digits: diverged"):
        Silence().failed(PlannedRun("digits", "fielding", 0, 1), "diverged")
