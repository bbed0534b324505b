"""A run that was stopped and resumed at any step has the same log as one that was not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.reliability.rows import ARMS, row
from tests.reliability.stops import Stopped

Row = Callable[[str], Stopped]
WholeLog = Callable[[str], bytes]

SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.sweep) for seed in range(1, 12))]


@pytest.mark.parametrize("name", ARMS)
def test_a_run_that_is_stopped_after_every_step_has_the_same_log(
    name: str, stopped: Row, whole_log: WholeLog
) -> None:
    run = stopped(name)
    assert run.play_with_stops(lambda: 1) == whole_log(name)
    assert run.resumes > 2 * row(name).round.rounds
    assert run.notes == []


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ARMS)
def test_a_run_that_is_stopped_at_random_and_loses_what_it_did_since_has_the_same_log(
    name: str, seed: int, stopped: Row, whole_log: WholeLog
) -> None:
    draw = np.random.default_rng(seed)
    run = stopped(name)
    log = run.play_with_stops(lambda: int(draw.integers(1, 9)), lambda: int(draw.integers(0, 30)))
    assert log == whole_log(name)
    assert run.notes == []
