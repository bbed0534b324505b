"""The accuracies of a round that are not `accuracy`, beside it, and the age of what clients remember.

Up to the horizon. The mean of an accuracy is over virtual time, as `mean_accuracy`, and the final one is
smoothed, as `final_accuracy`; a mean is None if the first evaluation that has the accuracy is later than
`Horizon.start_s`. `memory_age`, `memory_age_90` and `without_memory` are means over evaluations.

If some arm has a personal accuracy, that of an arm without is its accuracy: clients use what serves them. So
all arms can be compared in it: `personal_gain_pp` is the gain of an arm's mean over the reference arm,
`personal_gain_over_best_pp` and `personal_gain_of_clusters_pp` are those over arms without clusters, and
`final_personal_gain_pp` that of the final ones; see tables/baselines.py and tables/accuracy.py.

`personal_accuracy_by_age_1` to `_3` are the personal accuracy of clients in the three bands of ages of the
log, the youngest first: means over evaluations, weighted by the clients in the band.

The table is there if some arm has one of these accuracies.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from emulator.storage.runlog import RoundRecord
from experiments.results.statistics.comparisons import Compared, Comparison, Run, personal_curve
from experiments.results.statistics.intervals import Estimate, amount_estimate, share_estimate
from experiments.results.statistics.memory_ages import accuracy_in_band, age_bands, bands_in_words
from experiments.results.statistics.scales import index_scale, percent_scale, points_scale
from experiments.results.statistics.summary import Summary
from experiments.results.tables.accuracy import over_reference
from experiments.results.tables.baselines import Beside, beside_columns, on_the_best
from experiments.results.tables.costs import TRAINED_IF_KNOWN, TRAINED_SAMPLES
from experiments.results.tables.table import (
    Column,
    InManyRuns,
    InTerminal,
    OfRun,
    Place,
    Quantity,
    Table,
    any_measured,
    gain,
    over_seeds,
)

WHICH_IS_WHICH: Mapping[str, str] = {
    "accuracy": "Accuracy is that of the model that serves a client, after the arm's adaptation.",
    "personal_accuracy": "Personal accuracy is that of what each scored client would use itself, made from "
    "what it remembers, however old; a client that remembers nothing, or whose arm makes nothing of it, "
    "counts with the model that serves it.",
    "trained_accuracy": "Accuracy just trained is that of the participants of a round's last server step "
    "alone, with what each has just trained, and sent.",
    "pooled_accuracy": "Pooled accuracy is over all test samples in one pool, by what serves their clients.",
}
"""A sentence on each of the `ACCURACIES`."""

MEMORY = (
    "Age of memory is the number of rounds since a client last wrote what it remembers: the median over the "
    "scored clients that remember something, and the age that 90 % of them do not exceed, both averaged over "
    "evaluations. Accuracies by age are personal ones, averaged over evaluations by the clients of that age."
)

GAINS = "Gains are in mean personal accuracy, paired by seed, with intervals at their own levels of 95 %."

NUM_BANDS = 3


def has_accuracy(summary: Summary, name: str) -> bool:
    """Whether some run has this one of the `ACCURACIES`."""
    return any(name in run.curves for arm in summary.rows for run in arm.measured)


def which_is_which(summary: Summary) -> str:
    """The sentences on the accuracies that some run has; empty if that is `accuracy` alone."""
    sentences = [text for name, text in WHICH_IS_WHICH.items() if has_accuracy(summary, name)]
    return " ".join(sentences) if len(sentences) > 1 else ""


def trained_note(summary: Summary) -> str:
    """The note on the samples trained per client, if they are known."""
    return TRAINED_SAMPLES if any_measured([row[TRAINED_IF_KNOWN.key] for row in summary.rows]) else ""


def _mean_of(name: str) -> OfRun:
    """The mean over virtual time of one of the `ACCURACIES`; None if the run does not have it."""

    def of_run(run: Run) -> float | None:
        curve, horizon = run.curves.get(name), run.horizon
        return None if curve is None else curve.mean_accuracy(horizon.start_s, horizon.horizon_s)

    return of_run


def mean_used_accuracy(run: Run) -> float | None:
    """The mean over virtual time of the accuracy of what clients use."""
    used = personal_curve(run.log) or run.curve
    return used.mean_accuracy(run.horizon.start_s, run.horizon.horizon_s)


def _final_used_accuracy(run: Run) -> float | None:
    return run.used.final(run.horizon.horizon_s)


IN_PERSONAL_ACCURACY = Beside("mean_personal_accuracy", "mean personal accuracy")


def _estimate(of_run: OfRun) -> Quantity:
    """The estimate of an accuracy of what clients use, if some arm has a personal one."""

    def measure(arm: Comparison, compared: Compared) -> Estimate:
        return share_estimate([of_run(run) if compared.has_personal else None for run in arm.measured])

    return measure


def _if_personal(quantity: Quantity) -> Quantity:
    """The quantity; None if no arm has a personal accuracy."""
    return lambda arm, compared: quantity(arm, compared) if compared.has_personal else None


def _over_evaluations(of_round: Callable[[RoundRecord], float | None]) -> OfRun:
    """The mean over the rounds up to the horizon that have a number; None if none has."""

    def of_run(run: Run) -> float | None:
        found = [value for record in run.records if (value := of_round(record)) is not None]
        return math.fsum(found) / len(found) if found else None

    return of_run


def _in_band(band: int) -> Quantity:
    return over_seeds(lambda run: accuracy_in_band(run.records, band), share_estimate)


def _columns(summary: Summary) -> list[Column]:
    runs = (run for arm in summary.rows for run in arm.measured)
    bands = next((found for run in runs if (found := age_bands(run.records))), [])
    by_age = [
        Column(f"personal_accuracy_by_age_{number}", heading, percent_scale)
        for number, heading in enumerate(bands_in_words(bands)[:NUM_BANDS], 1)
    ]
    accuracy, personal, *others = TABLE.columns
    gains = _gain_columns(summary) if summary.comparison.has_personal else []
    return [accuracy, personal, *gains, *others, *by_age, TRAINED_IF_KNOWN]


def _gain_columns(summary: Summary) -> list[Column]:
    over = Column("personal_gain_pp", over_reference(summary), points_scale)
    if not summary.comparison.has_baselines:
        return [over]
    return [over, *beside_columns(summary, IN_PERSONAL_ACCURACY, "personal_")]


def _note(summary: Summary) -> str:
    memory = MEMORY if has_accuracy(summary, "personal_accuracy") else ""
    mean = "Means are over virtual time up to the horizon, each evaluation holding until the next."
    gains = _on_gains(summary) if summary.comparison.has_personal else ""
    return " ".join(filter(None, [which_is_which(summary), mean, gains, memory, trained_note(summary)]))


def _on_gains(summary: Summary) -> str:
    """What gains are in, and if there are baselines, which one is the best."""
    compared = summary.comparison
    best = on_the_best(IN_PERSONAL_ACCURACY.best(compared)) if compared.has_baselines else ""
    return f"{GAINS} {best}".rstrip()


def _measured(key: str, heading: str, *, in_terminal: bool = True) -> Column:
    return Column(key, heading, percent_scale, in_terminal, only_if=any_measured)


PERSONAL = _measured("mean_personal_accuracy", "personal accuracy")

SERVED = "Mean accuracies, gains and times to targets are of the models that serve clients."

TABLE = Table(
    title="Personal accuracy, and the age of what clients remember",
    place=Place("pays", id="personal-accuracy"),
    quantities={
        "mean_personal_accuracy": _estimate(mean_used_accuracy),
        "personal_gain_pp": _if_personal(gain(mean_used_accuracy, scale=100.0)),
        "personal_gain_over_best_pp": _if_personal(IN_PERSONAL_ACCURACY.gain_over_best),
        "personal_gain_of_clusters_pp": _if_personal(IN_PERSONAL_ACCURACY.gain_of_clusters),
        "final_personal_accuracy": _estimate(_final_used_accuracy),
        "final_personal_gain_pp": _if_personal(gain(_final_used_accuracy, scale=100.0)),
        "mean_trained_accuracy": over_seeds(_mean_of("trained_accuracy"), share_estimate),
        "mean_pooled_accuracy": over_seeds(_mean_of("pooled_accuracy"), share_estimate),
        "memory_age": over_seeds(_over_evaluations(lambda record: record.memory_age), amount_estimate),
        "memory_age_90": over_seeds(_over_evaluations(lambda record: record.memory_age_90), amount_estimate),
        "without_memory": over_seeds(_over_evaluations(lambda record: record.without_memory), share_estimate),
        **{f"personal_accuracy_by_age_{band + 1}": _in_band(band) for band in range(NUM_BANDS)},
    },
    columns=(
        Column("mean_accuracy", "accuracy", percent_scale),
        PERSONAL,
        _measured("final_personal_accuracy", "final personal accuracy", in_terminal=False),
        _measured("mean_trained_accuracy", "just trained"),
        _measured("mean_pooled_accuracy", "pooled"),
        Column("memory_age", "age of memory, median", index_scale, only_if=any_measured),
        Column("memory_age_90", "age, 90 %", index_scale, in_terminal=False, only_if=any_measured),
        _measured("without_memory", "without memory"),
    ),
    columns_for=_columns,
    says_something=lambda summary: any(
        has_accuracy(summary, name) for name in WHICH_IS_WHICH if name != "accuracy"
    ),
    note=_note,
    in_terminal=InTerminal("personal accuracy, and the age of memory", in_notebook=True),
    in_many_runs=InManyRuns(
        keys=("mean_personal_accuracy",),
        columns=(PERSONAL,),
        notes={PERSONAL.key: f"{WHICH_IS_WHICH['personal_accuracy']} {SERVED}"},
    ),
)
