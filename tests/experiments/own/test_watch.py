"""Runs with own code: what is watched in them, and when a trial is played before them."""

from __future__ import annotations

import random
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.build import build_world
from experiments.own.trial import tried_arms
from experiments.reading import load_experiment
from experiments.running.plan import PlannedRun, Reached, check, plan_run
from experiments.running.runner import run_one, run_plan
from experiments.running.stop import Stop
from tests.experiments.own.test_trial import write
from tests.experiments.running.played import logs, play
from tests.experiments.small import Story, small


class Draws(Story):
    """A story that draws from a global generator between rounds, as a notebook may."""

    def round_done(self, run: PlannedRun, reached: Reached) -> None:
        random.random()


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(own_modules: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("has_threads", [False, True])
def test_a_draw_in_a_later_round_ends_the_run_with_the_generator_and_the_part(has_threads: bool) -> None:
    write(Path(), "selector", "args[2].round == 2 and random.random()", "answer")
    plan = plan_run(experiment := load_experiment(Path("mine.toml")), Path("out"), None, Path, fresh=False)
    world, [run] = build_world(experiment, 0, Path), plan.runs()
    failed = run_one(plan, run, world, Story(), Stop(), has_threads=has_threads)
    assert failed == {run.arm: (reason := plan.directory.failure(run.arm, 0))}
    for words in ("round 2: ", "selector 'my_parts:Mine'", "generator of random", 'view.rng("my purpose")'):
        assert words in str(reason)


def test_a_trial_comes_first_unless_left_out_or_begun_and_draws_between_rounds_are_nobodys_business() -> None:
    write(Path(), "selector", "pass", "answer")
    experiment = load_experiment(Path("mine.toml"))

    def calls(out: str, until: int | None, *, trial: bool) -> int:
        plan = plan_run(experiment, Path(out), None, Path, fresh=False, trial=trial)
        before = len(sys.modules["my_parts"].calls)
        run_plan(replace(plan, until=until), Draws())
        return len(sys.modules["my_parts"].calls) - before

    assert calls("one", 2, trial=True) == 2 + 2
    assert calls("one", None, trial=True) == 2
    assert calls("two", None, trial=False) == 4
    assert tried_arms(small(), ["global", "fielding"]) == []


@pytest.mark.parametrize(
    ("kind", "after"),
    [
        ("selector", "np.array([9, 11])"),  # ids of the fleet that it is for
        ("detector", "self.streams.generator('mine', 1).random(len(answer)) < 0.5"),
        ("pacing", "answer + self.streams.generator('mine', 1).integers(answer + 1)"),
    ],
)
def test_a_part_that_draws_from_its_streams_passes_a_trial_which_writes_nothing_and_is_repeatable(
    kind: str, after: str
) -> None:
    write(Path(), kind, "pass", after)
    experiment = load_experiment(Path("mine.toml"))
    before = sorted(Path().rglob("*"))
    check(experiment, Path, scratch=Path(), trial=True)
    assert sorted(Path().rglob("*")) == before
    for out in ("one", "two"):
        play(experiment, Path(out))
    assert logs(Path("one")) == logs(Path("two"))
    assert sys.modules["my_parts"].calls
