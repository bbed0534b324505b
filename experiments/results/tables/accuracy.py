"""The accuracy of arms, and their gains over the reference arm; needs no target."""

from __future__ import annotations

from experiments.results.statistics.adjusted_rand import agreement_with_concepts
from experiments.results.statistics.comparisons import Compared, Comparison, Run
from experiments.results.statistics.intervals import Gain, gain_estimate, mean_estimate
from experiments.results.statistics.scales import index_scale, points_scale
from experiments.results.statistics.summary import Summary
from experiments.results.tables.costs import RECLUSTERED, TRAINED, TRAINED_SAMPLES
from experiments.results.tables.notes import any_trigger, at_their_own_levels
from experiments.results.tables.quantities import (
    IS_REFERENCE,
    NO_EVENT,
    POINTS,
    SHARE,
    Quantity,
    any_measured,
    gain,
    gain_over_reference,
    means,
    quantity,
)
from experiments.results.tables.table import InTerminal, Place, Table

INDEX = "index, at most 1"
UNEVALUATED = "if a run was not evaluated by the horizon"

MEAN_ACCURACY = (
    "Mean accuracy is averaged over virtual time, each evaluation holding until the next; it equals the "
    "share of that time at or above a target, averaged over all targets from 0 to 100 %."
)
SERVED = (
    " All figures here are of the models that serve clients; what clients use themselves has a table of its "
    "own, Personal accuracy."
)
AFTER_DRIFT = " Gain after drift is over the time from the first mass event of each run."
BY_SEED = (
    "Of an arm whose trigger may fire or not, dots are the values of seeds: results may fall into groups, "
    "for which no t interval holds. Re-clustered is in how many seeds it fired by the horizon, with the "
    "exact 95 % interval of the share."
)
ADJUSTED_RAND_INDEX = (
    "The adjusted Rand index compares clusters with the true concepts: 1 if they are the same, as one "
    "cluster is with one concept, and 0 on average if they agree by chance. It is the mean over evaluations "
    "from the first data step at which not all clients are of the first concept."
)


@means(
    "accuracy, averaged over virtual time from the first instant by which every run has been evaluated, to "
    "the horizon",
    UNEVALUATED,
)
@quantity(SHARE, "mean accuracy")
def mean_accuracy(run: Run) -> float | None:
    """The accuracy averaged over virtual time, in [0, 1]; None without such time."""
    return run.mean_of(run.curve)


def _mean_accuracy_after_drift(run: Run) -> float | None:
    """The same from the first mass event, if that is later; None without one before the horizon."""
    if run.event_s is None:
        return None
    return run.curve.mean_accuracy(max(run.horizon.start_s, run.event_s), run.horizon.horizon_s)


def _gain_after_drift(arm: Comparison, compared: Compared) -> Gain | None:
    """The gain after drift; None for the reference arm, and where not every run has a mass event."""
    if not compared.has_event or compared.horizon.start_s >= compared.horizon.horizon_s:
        return None
    found: Gain | None = gain_over_reference(_mean_accuracy_after_drift, 100.0)(arm, compared)
    return found


def gain_after_drift_over(arm: Comparison, other: Comparison, compared: Compared) -> Gain | None:
    """The gain of an arm after drift over another one, on the seeds that both have; None as above."""
    theirs = {run.seed: run for run in other.measured}
    pairs = [(run, theirs[run.seed]) for run in arm.measured if run.seed in theirs]
    if not pairs or not compared.has_event or compared.horizon.start_s >= compared.horizon.horizon_s:
        return None
    values = ([_mean_accuracy_after_drift(run) for run in runs] for runs in zip(*pairs, strict=True))
    return arm.stated(gain_estimate(*values, scale=100.0, comparisons=compared.num_gains))


@quantity(SHARE, "final accuracy", missing=UNEVALUATED)
def final_accuracy(run: Run) -> float | None:
    """Accuracy at the horizon, the mean of the last `report.window` evaluations."""
    return run.curve.final(run.horizon.horizon_s)


@means(
    "agreement of the clusters with the true concepts: 1 if they are the same, 0 on average by chance; the "
    "mean over evaluations",
    "if the trace does not know its concepts",
)
@quantity(INDEX, "adjusted Rand index", index_scale, estimate=mean_estimate, only_if=any_measured)
def adjusted_rand_index(run: Run) -> float | None:
    """The mean agreement of clusters with concepts; None where concepts are not known."""
    index = run.rounds(agreement_with_concepts)["index"]
    return float(index.mean()) if len(index) else None


GAIN = gain(mean_accuracy, "gain_pp", "gain").means(
    "mean accuracy minus that of the reference arm", IS_REFERENCE
)
GAIN_AFTER_DRIFT = (
    Quantity("gain_after_drift_pp", _gain_after_drift, POINTS, "gain after drift")
    .if_measured()
    .means("the same from each run's first mass event on", f"{IS_REFERENCE}, and {NO_EVENT}")
)
FINAL_GAIN = gain(final_accuracy, "final_gain_pp", "final gain").means(
    "final accuracy minus that of the reference arm", IS_REFERENCE
)


def _over_one_model(summary: Summary) -> bool:
    """Whether the heading of gains over the reference arm is "over one model", which is not its name."""
    configured = summary.comparison.reference.configured
    is_plain = configured is not None and configured.has_one_model and not configured.has_adaptation
    return is_plain and summary.comparison.has_baselines


def over_reference(summary: Summary) -> str:
    """The heading of gains over the reference arm: "gain" where no arm is a baseline."""
    if not summary.comparison.has_baselines:
        return "gain"
    return "over one model" if _over_one_model(summary) else f"over {summary.reference_arm}"


def joint_note(summary: Summary, key: str, what: str) -> list[str]:
    """A note with the intervals of the gains `key` that hold for all arms at once; none for a single one."""
    scale = points_scale(0.0)
    shown = [
        f"{row.arm} [{scale.bare(gain.ci95_joint[0])}, {scale.bare(gain.ci95_joint[1])}]"
        for row in summary.rows
        if (gain := row[key]) is not None and gain.ci95_joint is not None
    ]
    if len(shown) < 2:
        return []
    none = "; arms with a trigger have none" if any_trigger(summary.rows) else ""
    return [
        f"Intervals of {what} that hold for all arms at once (Bonferroni, 95 %): {', '.join(shown)}{none}."
    ]


def _has_trained(summary: Summary) -> bool:
    """Whether it has the samples trained: arms adapt their models, and no table of baselines has them."""
    compared = summary.comparison
    adapt = any(arm.configured is not None and arm.configured.has_adaptation for arm in compared.arms)
    return adapt and not compared.has_baselines


def _columns(summary: Summary) -> list[Quantity]:
    trained = [TRAINED] if _has_trained(summary) else []
    over = GAIN.headed(over_reference(summary))
    final = (final_accuracy, FINAL_GAIN, RECLUSTERED, adjusted_rand_index)
    return [mean_accuracy, over, GAIN_AFTER_DRIFT, *final, *trained]


def _note(summary: Summary) -> str:
    all_gains = [row[of.key] for row in summary.rows for of in (GAIN, GAIN_AFTER_DRIFT, FINAL_GAIN)]
    gains = [found for found in all_gains if found is not None]
    has_intervals = any(row["mean_accuracy"].ci95 for row in summary.rows)
    statistic = "Mean and 95 % interval over seeds (Student's t)" if has_intervals else "Mean over seeds"
    after_drift = AFTER_DRIFT if any(row["gain_after_drift_pp"] for row in summary.rows) else ""
    served = SERVED if summary.comparison.has_personal else ""
    knows_concepts = any_measured([row["adjusted_rand_index"] for row in summary.rows])
    by_seed = f" {BY_SEED}" if any_trigger(summary.rows) else ""
    one_model = ", the one model," if _over_one_model(summary) else ""
    return (
        f"{statistic}; gains over {summary.reference_arm}{one_model} are paired by seed. "
        f"{at_their_own_levels(gain.ci95 for gain in gains)}{MEAN_ACCURACY}{after_drift} Final gain is that "
        f"of the final accuracy, over {summary.reference_arm}.{served}{by_seed}"
        f"{' ' + ADJUSTED_RAND_INDEX if knows_concepts else ''}"
        f"{' ' + TRAINED_SAMPLES if _has_trained(summary) else ''}"
    )


TABLE = Table(
    title="Accuracy over time",
    place=Place("pays"),
    quantities=(mean_accuracy, GAIN, GAIN_AFTER_DRIFT, final_accuracy, FINAL_GAIN, adjusted_rand_index),
    columns_for=_columns,
    note=_note,
    notes_on_page=lambda summary: joint_note(summary, "gain_pp", "gains in mean accuracy"),
    in_terminal=InTerminal("accuracy over virtual time", is_against_reference=True, in_notebook=True),
    in_many_runs=(RECLUSTERED.noted(BY_SEED), adjusted_rand_index.noted(ADJUSTED_RAND_INDEX)),
)
