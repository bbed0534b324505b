"""The scores of the runs of a tune, from their logs."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.errors import RunError
from experiments.results.reading.run_directory import RunDirectory
from experiments.results.statistics.horizon import stretch
from experiments.results.statistics.time_to_accuracy import accuracy_curve
from experiments.tuning.halving import Scores


def read_scores(
    directory: RunDirectory, arms: Sequence[str], seeds: Sequence[int], asked_s: float | None
) -> Scores:
    """The mean accuracy of each of these runs, as `summary.json` has it; None for those that FAILED.

    Args:
        directory: Their run directory.
        arms: Names of their arms.
        seeds: Their seeds.
        asked_s: `report.horizon_s`, if it is set.

    Raises:
        InputError: A run was never evaluated, or is damaged.
        RunError: Some run has no evaluation before the horizon.
    """
    curves = {
        (arm, seed): accuracy_curve(directory.read_run(arm, seed), window=1)
        for arm in arms
        for seed in seeds
        if directory.failure(arm, seed) is None
    }
    scores: dict[str, dict[int, float | None]] = {arm: dict.fromkeys(seeds) for arm in arms}
    if not curves:
        return scores
    start_s, horizon_s = stretch(list(curves.values()), asked_s)
    for (arm, seed), curve in curves.items():
        score = scores[arm][seed] = curve.mean_accuracy(start_s, horizon_s)
        if score is None:
            raise RunError(
                f"{directory.path}: some run has no evaluation before the horizon ({horizon_s:g} s), so "
                f"there is no mean accuracy to choose by; evaluate more often (round.evaluate_every)"
            )
    return scores
