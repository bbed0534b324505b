"""The workloads digits, aggregators and round-calls: runs of digits, with the log and all files of a run.

The former is one arm and one seed as shipped. The latter has 40 participants a round, who are always online,
and compares a round with FedYogi with one with FedAvg: both clusterings follow from the same reports, so that
the runs differ only in the aggregator.

The calls in a round are of one arm of `digits` with its report, without a mass event. E1 has neither
training nor evaluation nor a real log.

The time outside training, evaluation, scores and clustering is our overhead: events, selection, the trace,
views, the log. Wall times are those of the run's `timing.json`.
"""

from __future__ import annotations

import tempfile
from importlib import resources
from pathlib import Path

import numpy as np

from benchmarks.figures import Figure, Reference, Target, figure
from benchmarks.measure import Measured, Say, calls_of_one, interleaved
from emulator.errors import RunError
from experiments.config import Experiment
from experiments.locating import locator
from experiments.reading import load_experiment
from experiments.results.pages import write_results
from experiments.running.plan import PlannedRun, Reached, plan_run
from experiments.running.runner import run_plan

ARM = "fielding-last-global"
MOST_CALLS = 4_700


class Silence:
    """A progress that prints nothing; a run that fails raises RunError, which ends the bench."""

    def drawing(self, run: PlannedRun) -> None:
        pass

    def begun(self, run: PlannedRun) -> None:
        pass

    def resumed(self, run: PlannedRun, rounds: int) -> None:
        pass

    def round_done(self, run: PlannedRun, reached: Reached) -> None:
        pass

    def done(self, run: PlannedRun, until: object = None) -> None:
        pass

    def left(self, run: PlannedRun) -> None:
        pass

    def note(self, text: str) -> None:
        pass

    def skipped(self, run: PlannedRun, until: object = None) -> None:
        pass

    def failed(self, run: PlannedRun, reason: str) -> None:
        raise RunError(f"bench digits: {reason}")


def digits_online(*overrides: str) -> Experiment:
    """The shipped experiment, hearing those online, with `overrides` applied, for seed 0."""
    return _shipped("digits-online.toml", "sweep={}", *overrides)


def _shipped(name: str, *overrides: str) -> Experiment:
    with resources.as_file(resources.files("experiments").joinpath("configs", name)) as path:
        return load_experiment(Path(path), overrides, seeds=[0])


def measure_digits(repeats: int, say: Say) -> list[Figure]:
    return digits_figures(digits_online(), repeats, say)


def digits_figures(experiment: Experiment, repeats: int, say: Say) -> list[Figure]:
    """Wall seconds of one run, and the percentage outside training, evaluation, scores and clustering."""
    outside: list[float] = []
    measured = _run(experiment, outside)
    samples = interleaved({"wall": measured}, repeats, warm_up=False, say=say)
    about = f"one run of the {experiment.name} experiment, arm {ARM}, {experiment.round.rounds} rounds"
    return [
        figure("digits-wall", about, samples["wall"], "s", better="lower"),
        figure(
            "digits-outside",
            f"{about}: wall time outside training, evaluation and clustering",
            100 * np.array(outside),
            "%",
            better="lower",
            target=Target("value", 20.0, 10.0),
        ),
    ]


def measure_aggregators(repeats: int, say: Say) -> list[Figure]:
    return aggregator_figures(repeats, say, "round.rounds=60", "round.participants=40")


def aggregator_figures(repeats: int, say: Say, *overrides: str) -> list[Figure]:
    """Milliseconds of a round with FedYogi, against one with FedAvg, of digits-online with `overrides`."""
    always = ("devices.availability=always", "trace.drift.events=[]", *overrides)
    experiments = {name: digits_online(*always, f"parts.aggregator={name}") for name in ("fedyogi", "fedavg")}
    runs = {name: _run(experiment, []) for name, experiment in experiments.items()}
    samples = interleaved(runs, repeats, say=say)
    sizes = experiments["fedyogi"].round
    return [
        figure(
            "fedyogi-round",
            f"one round of digits-online with fedyogi, {sizes.participants} participants",
            1000 * samples["fedyogi"] / sizes.rounds,
            "ms",
            better="lower",
            against=Reference(1000 * samples["fedavg"] / sizes.rounds, "the same with fedavg"),
            target=Target("ratio", 1 / 1.1),
        )
    ]


def measure_round_calls(repeats: int, say: Say) -> list[Figure]:
    """The number of calls in a round, which is the same each time: it is counted once."""
    number = np.array([sum(calls_in_a_round().values())])
    about = f"calls of Python and C in a round of digits, run and report, arm {ARM}"
    return [figure("round-calls", about, number, "calls", better="lower", target=Target("value", MOST_CALLS))]


def calls_in_a_round(few: int = 20, more: int = 60) -> dict[str, float]:
    """The calls that a round adds to run and report, by the function of ours that makes them."""

    def work(rounds: int) -> None:
        quiet = ("round.hear=online", "trace.drift.events=[]", "executor.threads=1")
        experiment = _shipped("digits.toml", *quiet, f"round.rounds={rounds}")
        with tempfile.TemporaryDirectory() as folder:
            plan = plan_run(experiment, Path(folder) / "run", [ARM], locator(None, None), fresh=False)
            run_plan(plan, Silence())
            write_results(plan.directory)

    return calls_of_one(work, few, more)


def _run(experiment: Experiment, outside: list[float]) -> Measured:
    """A function that plays the run into a fresh folder and returns its wall seconds.

    Each call appends to `outside` the share of them outside training, evaluation, scores and clustering.
    """

    def measured() -> float:
        with tempfile.TemporaryDirectory() as folder:
            plan = plan_run(experiment, Path(folder) / "run", [ARM], locator(None, None), fresh=False)
            run_plan(plan, Silence())
            [run] = plan.runs()
            timing = plan.directory.read_timing(run.arm, run.seed)
        inside_s = timing.train_s + timing.evaluate_s + timing.score_s + timing.cluster_s
        outside.append(1 - inside_s / timing.wall_s)
        return timing.wall_s

    return measured
