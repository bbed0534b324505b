"""Figures of all finished runs, even of seeds that the reference arm has not finished.

    steps           number of data steps in the trace; null if no log records concepts
    scored_steps    number of data steps with an evaluation, of the run that has the fewest; null if no run
                    records drift cells
    arms.<arm>      seed_ids, and <figure> {mean, ci95, per_seed} as in the summary

The figures of an arm are the accuracies with and without drift cells, `models_sent`, and
`relative_models_sent`, the ratio to the reference arm. That ratio is over the seeds that both arms have
finished; without such a seed its mean is null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from experiments.results.reading.json_files import ArmFigures, Finished
from experiments.results.reading.run_directory import FinishedRun
from experiments.results.statistics.drift_accuracy import drift_accuracies, has_drift_cells, last_evaluations
from experiments.results.statistics.intervals import amount_estimate, mean_estimate, ratio_estimate


def drift_figures(runs: Sequence[FinishedRun], reference_arm: str) -> Finished:
    """The figures of `runs`, each of at least one round; arms are in the order of their first runs."""
    arms: dict[str, dict[int, FinishedRun]] = {}
    for run in runs:
        arms.setdefault(run.arm, {})[run.seed] = run
    known = [len(run.header["concepts"]) - 1 for run in runs if "concepts" in run.header]
    scored = [len(last_evaluations(run.records)) for run in runs if has_drift_cells(run.records)]
    reference = arms.get(reference_arm, {})
    return Finished(
        steps=max(known, default=None),
        scored_steps=min(scored, default=None),
        arms={arm: _arm_figures(by_seed, reference) for arm, by_seed in arms.items()},
    )


def _arm_figures(by_seed: Mapping[int, FinishedRun], reference: Mapping[int, FinishedRun]) -> ArmFigures:
    runs = list(by_seed.values())
    paired = [seed for seed in by_seed if seed in reference]
    accuracies = [drift_accuracies(run.records) for run in runs]
    figures = {
        **{name: mean_estimate([of[name] for of in accuracies]) for name in accuracies[0]},
        "models_sent": amount_estimate([_models_sent(run) for run in runs]),
        "relative_models_sent": ratio_estimate(
            [_models_sent(by_seed[seed]) for seed in paired],
            [_models_sent(reference[seed]) for seed in paired],
        ),
    }
    written = {figure: estimate.as_json() for figure, estimate in figures.items()}
    return ArmFigures.model_validate({"seed_ids": list(by_seed), **written})


def _models_sent(run: FinishedRun) -> float:
    return run.records[-1].models_sent
