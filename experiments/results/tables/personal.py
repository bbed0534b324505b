"""The accuracies of a round that are not `accuracy`, beside it, and the age of what clients remember.

If some arm has a personal accuracy, that of an arm without is its accuracy: clients use what serves them. So
all arms can be compared in it. `personal_accuracy_by_age_1` to `_3` are of the three bands of ages of the
log, the youngest first. The table is there if some arm has one of these accuracies.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from emulator.storage.runlog import IMPERSONAL
from experiments.results.statistics.comparisons import Compared, Comparison, Run, personal_curve
from experiments.results.statistics.intervals import Estimate, share_estimate
from experiments.results.statistics.memory_ages import accuracy_in_band, age_bands, bands_in_words
from experiments.results.statistics.scales import index_scale
from experiments.results.statistics.summary import Summary
from experiments.results.tables.accuracy import mean_accuracy, over_reference
from experiments.results.tables.baselines import (
    NO_BASELINE,
    OF_CLUSTERS,
    ONE_MODEL,
    OVER_BEST,
    Beside,
    beside_columns,
    on_the_best,
)
from experiments.results.tables.costs import TRAINED_IF_KNOWN, TRAINED_SAMPLES
from experiments.results.tables.quantities import (
    IS_REFERENCE,
    POINTS,
    SHARE,
    Measure,
    OfRun,
    Quantity,
    any_measured,
    gain_over_reference,
    means,
    over_seeds,
    quantity,
)
from experiments.results.tables.table import InTerminal, Place, Table

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

NO_PERSONAL = "if no arm has a personal accuracy"
LATE = "if a run has it only after all runs have been evaluated"
UNREMEMBERED = f"if no scored client remembers anything, and {IMPERSONAL}"
NO_BAND = f"if never a scored client is in it, and {IMPERSONAL}"


def has_accuracy(summary: Summary, name: str) -> bool:
    """Whether some run has this one of the `ACCURACIES`."""
    return any(name in run.curves for run in summary.comparison.runs)


def which_is_which(summary: Summary) -> str:
    """The sentences on the accuracies that some run has; empty if that is `accuracy` alone."""
    sentences = [text for name, text in WHICH_IS_WHICH.items() if has_accuracy(summary, name)]
    return " ".join(sentences) if len(sentences) > 1 else ""


def trained_note(summary: Summary) -> str:
    """The note on the samples trained per client, if they are known."""
    return TRAINED_SAMPLES if any_measured([row[TRAINED_IF_KNOWN.key] for row in summary.rows]) else ""


def mean_used_accuracy(run: Run) -> float | None:
    """The mean over virtual time of the accuracy of what clients use."""
    return run.mean_of(personal_curve(run.log) or run.curve)


def _final_used_accuracy(run: Run) -> float | None:
    return run.used.final(run.horizon.horizon_s)


IN_PERSONAL_ACCURACY = Beside("mean_personal_accuracy", "mean personal accuracy")


def _estimate(of_run: OfRun) -> Measure:
    """Measures an accuracy of what clients use, if some arm has a personal one."""

    def measure(arm: Comparison, compared: Compared) -> Estimate:
        return share_estimate([of_run(run) if compared.has_personal else None for run in arm.measured])

    return measure


def _if_personal(measure: Measure) -> Measure:
    """Measures it if some arm has a personal accuracy, and else None."""
    return lambda arm, compared: measure(arm, compared) if compared.has_personal else None


def _over_evaluations(name: str, run: Run) -> float | None:
    """The mean over the rounds up to the horizon that have this number; None if none has."""
    found = [value for record in run.records if (value := getattr(record, name)) is not None]
    return math.fsum(found) / len(found) if found else None


PERSONAL = (
    Quantity("mean_personal_accuracy", _estimate(mean_used_accuracy), SHARE, "personal accuracy")
    .if_measured()
    .means(
        "personal accuracy, averaged over virtual time as `mean_accuracy` is; "
        "of an arm without one its accuracy",
        f"{NO_PERSONAL}, and {LATE}",
    )
)
PERSONAL_GAIN = Quantity(
    "personal_gain_pp", _if_personal(gain_over_reference(mean_used_accuracy, 100.0)), POINTS
).means("mean personal accuracy minus that of the reference arm", f"{IS_REFERENCE}, and {NO_PERSONAL}")
PERSONAL_OVER_BEST = replace(
    OVER_BEST, key="personal_gain_over_best_pp", measure=_if_personal(IN_PERSONAL_ACCURACY.gain_over_best)
).means(
    "mean personal accuracy minus that of the best baseline, chosen by it, which `over` names",
    f"for the best baseline, {NO_BASELINE}, and {NO_PERSONAL}",
)
PERSONAL_OF_CLUSTERS = replace(
    OF_CLUSTERS,
    key="personal_gain_of_clusters_pp",
    measure=_if_personal(IN_PERSONAL_ACCURACY.gain_of_clusters),
).means(
    "mean personal accuracy minus that of the arm with one model and otherwise the same parts",
    f"{ONE_MODEL}, {NO_BASELINE}, and {NO_PERSONAL}",
)
FINAL_PERSONAL = (
    Quantity("final_personal_accuracy", _estimate(_final_used_accuracy), SHARE, "final personal accuracy")
    .if_measured(in_terminal=False)
    .means(
        "personal accuracy at the horizon, the mean of the last `report.window` evaluations; of an arm "
        "without one its accuracy",
        NO_PERSONAL,
    )
)
FINAL_PERSONAL_GAIN = Quantity(
    "final_personal_gain_pp", _if_personal(gain_over_reference(_final_used_accuracy, 100.0)), POINTS
).means("final personal accuracy minus that of the reference arm", f"{IS_REFERENCE}, and {NO_PERSONAL}")


@means(
    "accuracy of the participants of a round with the parameters that they have just trained, averaged over "
    "virtual time as `mean_accuracy` is",
    f'without "trained" in round.accuracies, and {LATE}',
)
@quantity(SHARE, "just trained", only_if=any_measured)
def mean_trained_accuracy(run: Run) -> float | None:
    """The mean of the accuracy just trained."""
    return run.mean_of(run.curves.get("trained_accuracy"))


@means(
    "accuracy over all test samples in one pool, averaged over virtual time as `mean_accuracy` is",
    f'without "pooled" in round.accuracies, and {LATE}',
)
@quantity(SHARE, "pooled", only_if=any_measured)
def mean_pooled_accuracy(run: Run) -> float | None:
    """The mean of the pooled accuracy."""
    return run.mean_of(run.curves.get("pooled_accuracy"))


@means(
    "rounds since a scored client last wrote what it remembers: the median over those that remember "
    "something, averaged over evaluations",
    UNREMEMBERED,
)
@quantity("rounds", "age of memory, median", index_scale, only_if=any_measured)
def memory_age(run: Run) -> float | None:
    """The median age of what clients remember."""
    return _over_evaluations("memory_age", run)


@means("the age that 90 % of these clients do not exceed, averaged over evaluations", UNREMEMBERED)
@quantity("rounds", "age, 90 %", index_scale, in_terminal=False, only_if=any_measured)
def memory_age_90(run: Run) -> float | None:
    """The age that 90 % of them do not exceed."""
    return _over_evaluations("memory_age_90", run)


@quantity(SHARE, "without memory", missing=IMPERSONAL, only_if=any_measured)
def without_memory(run: Run) -> float | None:
    """Share of the scored clients that remember nothing, averaged over evaluations."""
    return _over_evaluations("without_memory", run)


def _by_age(band: int, meaning: str) -> Quantity:
    """The personal accuracy of clients in a band of ages, from 0."""
    measure = over_seeds(lambda run: accuracy_in_band(run.records, band), share_estimate)
    return Quantity(f"personal_accuracy_by_age_{band + 1}", measure, SHARE).means(meaning, NO_BAND)


YOUNGEST = (
    "personal accuracy of the scored clients whose memory is in the youngest band of ages of the log, "
    "averaged over evaluations, weighted by these clients"
)
BY_AGE = (
    *(_by_age(0, YOUNGEST), _by_age(1, "the same of the second band")),
    _by_age(2, "the same of the third band"),
)


def _columns(summary: Summary) -> list[Quantity]:
    bands = next((found for run in summary.comparison.runs if (found := age_bands(run.records))), [])
    names = bands_in_words(bands)[: len(BY_AGE)]
    by_age = [of_band.headed(name) for name, of_band in zip(names, BY_AGE, strict=False)]
    gains = _gain_columns(summary) if summary.comparison.has_personal else []
    others = (FINAL_PERSONAL, mean_trained_accuracy, mean_pooled_accuracy)
    memory = (memory_age, memory_age_90, without_memory)
    return [mean_accuracy.headed("accuracy"), PERSONAL, *gains, *others, *memory, *by_age, TRAINED_IF_KNOWN]


def _gain_columns(summary: Summary) -> list[Quantity]:
    over = PERSONAL_GAIN.headed(over_reference(summary))
    if not summary.comparison.has_baselines:
        return [over]
    beside = beside_columns(summary, IN_PERSONAL_ACCURACY, PERSONAL_OVER_BEST, PERSONAL_OF_CLUSTERS)
    return [over, *beside]


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


SERVED = "Mean accuracies, gains and times to targets are of the models that serve clients."

TABLE = Table(
    title="Personal accuracy, and the age of what clients remember",
    place=Place("pays", id="personal-accuracy"),
    quantities=(
        *(PERSONAL, PERSONAL_GAIN, PERSONAL_OVER_BEST, PERSONAL_OF_CLUSTERS),
        *(FINAL_PERSONAL, FINAL_PERSONAL_GAIN, mean_trained_accuracy, mean_pooled_accuracy),
        *(memory_age, memory_age_90, without_memory, *BY_AGE),
    ),
    columns_for=_columns,
    says_something=lambda summary: any(
        has_accuracy(summary, name) for name in WHICH_IS_WHICH if name != "accuracy"
    ),
    note=_note,
    in_terminal=InTerminal("personal accuracy, and the age of memory", in_notebook=True),
    in_many_runs=(PERSONAL.noted(f"{WHICH_IS_WHICH['personal_accuracy']} {SERVED}"),),
)
