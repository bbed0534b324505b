"""kill -9 of the command: the results do not change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tomli_w

from experiments.locating import locator
from experiments.reading import load_experiment
from experiments.results.pages import write_results
from experiments.running.plan import plan_run
from experiments.running.runner import run_plan
from tests.experiments.small import Story
from tests.reliability.kills import Killing, results
from tests.reliability.rows import ARMS, row

SHORT = ("scaffold", "ditto", "apfl")
SWEEP = [
    *(pytest.param(name, 2, 0) for name in SHORT),
    *(pytest.param(name, 4, draw, marks=pytest.mark.sweep) for name in ARMS for draw in (0, 1)),
]
LONGER = ("lane", "pooled", "deadline", "away", "static", "embedding", "gradient")
"""Rows over phones, whose trace has no end, with 60 rounds; those over concepts end with their pattern."""


@pytest.fixture
def killing(data: Path, tmp_path: Path) -> Callable[[str], tuple[Killing, Path, dict[str, object]]]:
    """By the name of a row: the runs to be killed, their directory, and the results of undisturbed runs."""

    def killing(name: str) -> tuple[Killing, Path, dict[str, object]]:
        experiment = row(name, seeds=[0, 1], round={"rounds": 60} if name in LONGER else {})
        config = tmp_path / f"{name}.toml"
        config.write_text(tomli_w.dumps(experiment.resolved()))
        whole = tmp_path / "whole"
        plan = plan_run(load_experiment(config), whole, None, locator(data, None), fresh=False)
        run_plan(plan, Story())
        write_results(plan.directory)
        out = tmp_path / "killed"
        return Killing(config, out, "--data", str(data)), out, results(whole)

    return killing


@pytest.mark.slow
@pytest.mark.parametrize(("name", "times", "draw"), SWEEP)
def test_a_run_that_is_killed_at_random_ends_as_if_it_never_had_been(
    name: str, times: int, draw: int, killing: Callable[[str], tuple[Killing, Path, dict[str, object]]]
) -> None:
    killed, out, whole = killing(name)
    lines = sum(log.count(b"\n") for path, log in whole.items() if path.endswith("log.jsonl"))  # type: ignore[attr-defined]
    killed.kill_at_random(times, lines, np.random.default_rng([times + 100 * draw, *name.encode()]))
    assert not any("Traceback" in stderr or "cannot resume" in stderr for stderr in killed.stderr)
    print(f"{name}: {killed.kills} kills")
    assert killed.kills >= times - times // 4  # one that is killed at a drawn time may have ended
    outcome = results(out)
    assert [file for file in outcome.pop("files") if file != ".lock"] == whole.pop("files")
    assert outcome == whole
