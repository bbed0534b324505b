"""Figures of whole runs, of all that are finished: also of seeds that the reference arm has not finished.

They are `finished` of `summary.json`:

    steps           number of data steps in the trace; null if no log records concepts
    scored_steps    number of data steps with an evaluation, of the run that has the fewest; null if no run
                    records drift cells
    arms.<arm>      seed_ids, and <figure> {mean, ci95, per_seed} as in the summary

The figures of an arm are the accuracies with and without drift cells, `models_sent`, and
`relative_models_sent`, the ratio to the reference arm. That ratio is over the seeds that both arms have
finished; without such a seed its mean is null.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from experiments.results.reading.run_directory import ReportedRun
from experiments.results.statistics.comparisons import once
from experiments.results.statistics.drift.accuracy import drift_accuracies, has_drift_cells, last_evaluations
from experiments.results.statistics.intervals import Estimate, amount_estimate, mean_estimate, ratio_estimate
from experiments.results.statistics.published import COMPARED
from experiments.results.wording import ACCURACY


@dataclass(frozen=True)
class Finished:
    """The figures of the finished runs: `arms` by arm and name, `seed_ids` the seeds of each `per_seed`.

    `word` is what the mean of hits is called in texts.
    """

    steps: int | None
    scored_steps: int | None
    seed_ids: Mapping[str, Sequence[int]]
    arms: Mapping[str, Mapping[str, Estimate]]
    word: str = ACCURACY

    @property
    def is_known(self) -> bool:
        """Whether some arm has an accuracy with or without drift cells."""
        return any(arm[figure].mean is not None for arm in self.arms.values() for figure in COMPARED)

    def as_json(self) -> dict[str, object]:
        """The entry in `summary.json`."""
        arms = {
            name: {
                "seed_ids": list(self.seed_ids[name]),
                **{figure: estimate.as_json() for figure, estimate in figures.items()},
            }
            for name, figures in self.arms.items()
        }
        return {"steps": self.steps, "scored_steps": self.scored_steps, "arms": arms}


@once
def drift_of_run(log: ReportedRun) -> Mapping[str, float | None]:
    """The accuracies with and without drift cells of a whole run; None of one that --until stopped."""
    return drift_accuracies(log.records if log.until is None else [])


@once
def models_sent(log: ReportedRun) -> float:
    """The models that a whole run has transferred, either way."""
    return log.records[-1].models_sent


@once
def data_steps(log: ReportedRun) -> tuple[int | None, int | None]:
    """(data steps of the trace, those with an evaluation) of a run; None where the log tells none."""
    known = len(log.header["concepts"]) - 1 if "concepts" in log.header else None
    return known, len(last_evaluations(log.records)) if has_drift_cells(log.records) else None


@once
def objective(log: ReportedRun) -> tuple[str, str]:
    """The kind and the word of its objective."""
    recorded = log.header.get("objective", {"kind": "labels", "word": ACCURACY})
    return recorded["kind"], recorded["word"]


def figures_of_finished(
    logs: Sequence[ReportedRun], reference_arm: str, with_triggers: Collection[str] = ()
) -> Finished:
    """The figures of the finished runs among `logs`; arms are in the order of their first runs.

    Those of the arms `with_triggers`, and those beside one, are by seed.
    """
    arms: dict[str, dict[int, ReportedRun]] = {}
    for log in logs:
        if log.until is None:
            arms.setdefault(log.arm, {})[log.seed] = log
    steps = [data_steps(log) for by_seed in arms.values() for log in by_seed.values()]
    reference = arms.get(reference_arm, {})
    return Finished(
        max((known for known, _ in steps if known is not None), default=None),
        min((scored for _, scored in steps if scored is not None), default=None),
        {arm: list(by_seed) for arm, by_seed in arms.items()},
        {
            arm: _figures(by_seed, reference, arm in with_triggers, reference_arm in with_triggers)
            for arm, by_seed in arms.items()
        },
        objective(logs[0])[1] if logs else ACCURACY,
    )


def _figures(
    by_seed: Mapping[int, ReportedRun],
    reference: Mapping[int, ReportedRun],
    has_trigger: bool,
    is_beside_one: bool,
) -> dict[str, Estimate]:
    logs = list(by_seed.values())
    paired = [seed for seed in by_seed if seed in reference]
    figures = {
        **{name: mean_estimate([drift_of_run(log)[name] for log in logs]) for name in COMPARED},
        "models_sent": amount_estimate([models_sent(log) for log in logs]),
        "relative_models_sent": ratio_estimate(
            [models_sent(by_seed[seed]) for seed in paired], [models_sent(reference[seed]) for seed in paired]
        ),
    }
    by_seed_alone = list(figures) if has_trigger else ["relative_models_sent"] if is_beside_one else []
    return figures | {name: figures[name].by_seed() for name in by_seed_alone}
