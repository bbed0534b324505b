"""Arms that differ in their adaptation alone are trained once; their files are those that each has alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coordinator.adaptations.base import ClientView, Served
from coordinator.adaptations.prior import Prior
from coordinator.adaptations.tuned import Tuned
from emulator.errors import RunError
from emulator.messages import Evaluation
from executor.executor import LocalExecutor
from experiments.config import Experiment, parse_experiment
from experiments.locating import locator
from experiments.results.reading.run_directory import RunDirectory
from experiments.running.plan import PlannedRun, Reached, plan_run
from experiments.running.runner import FailedRunsError, run_plan
from experiments.running.stop import Stop
from tests.experiments.running.played import logs
from tests.experiments.small import SMALL, Story, merged
from tests.reliability.rows import ARMS as ROWS
from tests.reliability.rows import AVAILABILITY

USES: dict[str, Any] = {
    "plain": "none",
    "prior": "prior",
    "tuned": "tuned",
    "kept": {"kind": "tuned", "again": "data", "local_steps": 2},
    "named": "relabelled",
}
REPORTED = {"kind": "prior", "shares": "reported"}
"""Adaptations by arm: without and with work, with batches of its own, with copies that it keeps."""

ALIKE = ("lane", "deadline", "buffered", "buffered-by-seconds", "labels-by-js", "ifca", "scaffold", "faulty")
"""Rows with several models, reports, requests, visits in flight, crashes, and clients that remember."""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (folder := tmp_path / "data").mkdir()
    (folder / "availability.csv").write_text(AVAILABILITY)
    return folder


def of_row(name: str, uses: Sequence[str] = tuple(USES)) -> Experiment:
    """A row of the reliability tests, as arms with these uses; it logs and keeps all that a run can."""
    table, arm = ROWS[name]
    arms = [{"name": use, **arm, "adaptation": USES[use]} for use in uses]
    wanted = {"round": {"log_visits": True, "log_client_accuracy": True, "accuracies": ["pooled"]}}
    return parse_experiment(merged(table, {"name": name, "arm": arms, **wanted}), name)


def played(
    experiment: Experiment, out: Path, data: Path, story: Story | None = None, **how: Any
) -> list[PlannedRun]:
    """Play the experiment into `out`; the runs that were planned."""
    plan = plan_run(experiment, out, how.pop("arms", None), locator(data, None), fresh=False)
    run_plan(replace(plan, **how), story or Story())
    return plan.runs()


def files(out: Path) -> dict[str, dict[str, bytes]]:
    names = ("log.jsonl", "models.safetensors", "visits.parquet", "clients.parquet")
    return {name: logs(out, name) for name in names}


def played_alone(experiment: Experiment, out: Path, data: Path) -> dict[str, dict[str, bytes]]:
    """The files of each arm as a command of its own plays it."""
    for arm in experiment.arm:
        assert [run.uses for run in played(experiment, out, data, arms=[arm.name])] == [()]
    return files(out)


@pytest.mark.parametrize("name", ALIKE)
def test_every_use_of_a_training_has_the_files_of_a_run_of_its_own(
    name: str, tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = of_row(name)
    alone = played_alone(experiment, tmp_path / "alone", data)
    trained, train = [], LocalExecutor.train

    def counted(executor: LocalExecutor, tasks: Any, *args: Any) -> Any:
        trained.append(len(tasks.client))
        return train(executor, tasks, *args)

    monkeypatch.setattr(LocalExecutor, "train", counted)
    only = of_row(name, ["plain"])
    played(only, tmp_path / "only", data)
    of_one = len(trained)
    runs = played(of_row(name, ["plain", "prior", "named"]), tmp_path / "three", data)
    assert [run.arms for run in runs] == [("plain", "prior", "named")]
    assert len(trained) == 2 * of_one  # neither of the two trains anything
    played(experiment, tmp_path / "together", data)
    assert files(tmp_path / "together") == alone


@pytest.mark.parametrize("name", ["lane", "flexcfl", "distance"])
def test_shares_that_clients_report_anyway_are_read_by_another_use_too(
    name: str, tmp_path: Path, data: Path
) -> None:
    table, arm = ROWS[name]
    arms = [{"name": "plain", **arm}, {"name": "reported", **arm, "adaptation": REPORTED}]
    changes = {"name": name, "arm": arms, "round": {"log_visits": True}}
    experiment = parse_experiment(merged(table, changes), name)
    alone = played_alone(experiment, tmp_path / "alone", data)
    runs = played(experiment, tmp_path / "together", data)
    assert [run.arms for run in runs] == [("plain", "reported")]
    assert logs(tmp_path / "together") == alone["log.jsonl"]


class Stopping(Story):
    """A story that requests a stop at every so many rounds."""

    def __init__(self, every: int) -> None:
        super().__init__()
        self.stop, self._every = Stop(), every

    def round_done(self, run: PlannedRun, reached: Reached) -> None:
        super().round_done(run, reached)
        if self.rounds % self._every == 0:
            self.stop.leave_word()


@pytest.mark.parametrize("name", ["lane", "buffered", "ifca"])
def test_stopped_at_every_round_and_gone_on_with_they_have_the_bytes_of_an_undisturbed_run(
    name: str, tmp_path: Path, data: Path
) -> None:
    experiment, out, commands = of_row(name), tmp_path / "out", 0
    played(experiment, tmp_path / "whole", data)
    while True:
        plan = plan_run(experiment, out, None, locator(data, None), fresh=False)
        story = Stopping(every=1)
        try:
            run_plan(plan, story, story.stop)
            break
        except KeyboardInterrupt:
            commands += 1
    assert commands >= experiment.round.rounds - 1
    assert files(out) == files(tmp_path / "whole")


def test_a_run_that_was_begun_with_others_goes_on_without_them_and_they_without_it(
    tmp_path: Path, data: Path
) -> None:
    experiment, out = of_row("lane"), tmp_path / "out"
    story = Stopping(every=5)
    with pytest.raises(KeyboardInterrupt):
        run_plan(plan_run(experiment, out, None, locator(data, None), fresh=False), story, story.stop)
    played(experiment, out, data, arms=["tuned"])  # to its end
    played(experiment, out, data, Story(), arms=["prior", "named"], until=8)  # further than the others
    story = Story()
    played(experiment, out, data, story)
    goes_on = [told[3] for told in story.told if told[0] == "going on"]
    assert goes_on == [5, 8]  # the plain and the kept one together, then the two
    played(experiment, tmp_path / "whole", data)
    assert files(out) == files(tmp_path / "whole")


def test_timing_says_with_how_many_others_an_arm_was_trained(tmp_path: Path, data: Path) -> None:
    played(of_row("lane", ["plain", "prior", "tuned"]), tmp_path, data)
    directory = RunDirectory(tmp_path)
    timings = [directory.read_timing(arm, 0) for arm in ("plain", "prior", "tuned")]
    assert [timing.arms_beside for timing in timings] == [2, 2, 2]
    assert len({timing.train_s for timing in timings}) == 1


@pytest.fixture
def copies_diverge(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From a call on, tuned copies are not finite from the evaluation of round 3 on."""
    adapt = Tuned.adapt

    def diverging(tuned: Tuned, view: ClientView) -> Served:
        served = adapt(tuned, view)
        return replace(served, models=served.models * np.float32("inf")) if view.rounds > 3 else served

    return lambda: monkeypatch.setattr(Tuned, "adapt", diverging)


def test_a_use_that_diverges_ends_its_own_figures_and_no_others(
    tmp_path: Path, data: Path, copies_diverge: Callable[[], None]
) -> None:
    whole = of_row("lane", ["plain", "tuned", "prior"])
    played(whole, tmp_path / "whole", data)
    copies_diverge()
    story, out = Story(), tmp_path / "out"
    with pytest.raises(FailedRunsError, match=r"^1 of 3 runs failed \(tuned, seed 0\)"):
        played(whole, out, data, story)
    reason = RunDirectory(out).failure("tuned", 0)
    assert reason is not None
    assert "round 3: training diverged" in reason
    assert ("note", f"tuned, seed 0 failed: {reason}") in story.told
    assert story.ends == [("done", "plain", 0)]
    for arm in ("plain", "prior"):
        name = f"{arm}/seed-0/log.jsonl"
        assert logs(out)[name] == logs(tmp_path / "whole")[name]
    with pytest.raises(RunError, match="1 of 1 runs failed"):  # as it fails alone
        played(of_row("lane", ["tuned"]), tmp_path / "alone", data)
    assert RunDirectory(tmp_path / "alone").failure("tuned", 0) == reason


def test_the_others_go_on_where_the_use_diverges_that_trains(
    tmp_path: Path, data: Path, copies_diverge: Callable[[], None]
) -> None:
    pair = of_row("lane", ["tuned", "prior"])  # neither is plain: the first one trains
    played(pair, tmp_path / "whole", data)
    copies_diverge()
    with pytest.raises(FailedRunsError, match=r"^1 of 2 runs failed \(tuned, seed 0\)"):
        played(pair, tmp_path / "out", data)
    name = "prior/seed-0/log.jsonl"
    assert logs(tmp_path / "out")[name] == logs(tmp_path / "whole")[name]


def test_training_that_diverges_fails_all_of_its_arms_at_once(tmp_path: Path, data: Path) -> None:
    table, arm = ROWS["lane"]
    arms = [{"name": use, **arm, "adaptation": USES[use]} for use in ("plain", "prior")]
    hot = {"name": "hot", "arm": arms, "training": {"learning_rate": 1e38}}
    story = Story()
    with pytest.raises(FailedRunsError, match=r"^2 of 2 runs failed"):
        played(parse_experiment(merged(table, hot), "hot"), tmp_path, data, story)
    directory = RunDirectory(tmp_path)
    assert directory.failure("plain", 0) == directory.failure("prior", 0) is not None
    assert [told[0] for told in story.told] == ["run", "failed"]  # it was tried once


def test_what_diverges_in_every_use_at_an_evaluation_is_not_trained_again_for_each(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate = LocalExecutor.evaluate

    def endless(executor: LocalExecutor, *args: Any) -> Evaluation:
        found = evaluate(executor, *args)
        return replace(found, loss=found.loss + np.inf)

    monkeypatch.setattr(LocalExecutor, "evaluate", endless)
    story = Story()
    with pytest.raises(FailedRunsError, match=r"^4 of 4 runs failed"):
        played(of_row("lane", ["plain", "prior", "tuned", "kept"]), tmp_path, data, story)
    assert [told[0] for told in story.told] == ["run", "failed"]
    reasons = {RunDirectory(tmp_path).failure(arm, 0) for arm in ("plain", "prior", "tuned", "kept")}
    assert len(reasons) == 1


class OwnPrior(Prior):
    """An adaptation of somebody else."""


def test_an_adaptation_of_ones_own_is_trained_apart(tmp_path: Path, data: Path) -> None:
    """It may write into the models that it is shown, and its errors are its own."""
    own = {"kind": f"{__name__}:OwnPrior"}
    arms = [{"name": name, "adaptation": use} for name, use in (("a", "none"), ("b", "prior"), ("c", own))]
    experiment = parse_experiment(merged(SMALL, {"arm": arms}), "own")
    plan = plan_run(experiment, tmp_path, None, locator(data, None), fresh=False)
    assert [run.arms for run in plan.runs()] == [("a", "b"), ("c",)]


def test_arms_of_the_same_name_but_for_nothing_else_are_trained_apart(tmp_path: Path, data: Path) -> None:
    twins = [{"name": "a"}, {"name": "b"}, {"name": "c", "adaptation": "prior"}]
    runs = played(parse_experiment(merged(SMALL, {"arm": twins}), "twins"), tmp_path, data)
    assert [run.arms for run in runs] == [("a", "c"), ("b",)]


def test_trackers_follow_each_arm_in_a_run_of_its_own(tmp_path: Path, data: Path) -> None:
    experiment = of_row("lane", ["plain", "prior"])
    plan = plan_run(experiment, tmp_path, None, locator(data, None), fresh=False)
    assert [run.arms for run in plan.runs()] == [("plain", "prior")]
    assert [run.arms for run in replace(plan, track=("tensorboard",)).runs()] == [("plain",), ("prior",)]
