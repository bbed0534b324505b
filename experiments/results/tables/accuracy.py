"""The accuracy of arms, and their gains over the reference arm; needs no target.

`mean_accuracy` is over virtual time from `Horizon.start_s` to the horizon; `gain_pp` is the difference of
these means, in percentage points. `gain_after_drift_pp` is the same from the first mass event of each run, if
that is later than `Horizon.start_s`; it is None unless every run has a mass event before the horizon.
`final_accuracy` is the smoothed accuracy at the horizon, and `final_gain_pp` the difference of that.
`adjusted_rand_index` is the mean of `Agreement` up to the horizon, where concepts are known.
"""

from __future__ import annotations

from dataclasses import replace

from experiments.results.statistics.adjusted_rand import agreement_with_concepts
from experiments.results.statistics.comparisons import Compared, Comparison, Run
from experiments.results.statistics.intervals import Gain, mean_estimate, share_estimate
from experiments.results.statistics.scales import index_scale, percent_scale, points_scale
from experiments.results.statistics.summary import Summary
from experiments.results.tables.costs import RECLUSTERED, TRAINED, TRAINED_SAMPLES
from experiments.results.tables.notes import any_trigger, at_their_own_levels
from experiments.results.tables.table import (
    Column,
    InManyRuns,
    InTerminal,
    Place,
    Table,
    any_measured,
    gain,
    over_seeds,
)

GAINS = ("gain_pp", "gain_after_drift_pp", "final_gain_pp")

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


def mean_accuracy(run: Run) -> float | None:
    """The accuracy averaged over virtual time, in [0, 1]; None without such time."""
    return run.curve.mean_accuracy(run.horizon.start_s, run.horizon.horizon_s)


def mean_accuracy_after_drift(run: Run) -> float | None:
    """The same from the first mass event, if that is later; None without one before the horizon."""
    if run.event_s is None:
        return None
    return run.curve.mean_accuracy(max(run.horizon.start_s, run.event_s), run.horizon.horizon_s)


def gain_after_drift(arm: Comparison, compared: Compared) -> Gain | None:
    """The gain after drift; None for the reference arm, and where not every run has a mass event."""
    if not compared.has_event or compared.horizon.start_s >= compared.horizon.horizon_s:
        return None
    found: Gain | None = gain(mean_accuracy_after_drift, scale=100.0)(arm, compared)
    return found


def final_accuracy(run: Run) -> float | None:
    """The smoothed accuracy at the horizon; None without an evaluation by then."""
    return run.curve.final(run.horizon.horizon_s)


def adjusted_rand_index(run: Run) -> float | None:
    """The mean agreement of clusters with concepts up to the horizon; None where concepts are not known."""
    return agreement_with_concepts(run.log).mean(run.horizon.horizon_s)


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


def _columns(summary: Summary) -> list[Column]:
    mean, over, *others = TABLE.columns
    trained = [TRAINED] if _has_trained(summary) else []
    return [mean, replace(over, heading=over_reference(summary)), *others, *trained]


def _note(summary: Summary) -> str:
    gains = [row[key] for row in summary.rows for key in GAINS if row[key] is not None]
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


INDEX = Column("adjusted_rand_index", "adjusted Rand index", index_scale, only_if=any_measured)

TABLE = Table(
    title="Accuracy over time",
    place=Place("pays"),
    quantities={
        "mean_accuracy": over_seeds(mean_accuracy, share_estimate),
        "gain_pp": gain(mean_accuracy, scale=100.0),
        "gain_after_drift_pp": gain_after_drift,
        "final_accuracy": over_seeds(final_accuracy, share_estimate),
        "final_gain_pp": gain(final_accuracy, scale=100.0),
        "adjusted_rand_index": over_seeds(adjusted_rand_index, mean_estimate),
    },
    columns=(
        Column("mean_accuracy", "mean accuracy", percent_scale),
        Column("gain_pp", "gain", points_scale),
        Column("gain_after_drift_pp", "gain after drift", points_scale, only_if=any_measured),
        Column("final_accuracy", "final accuracy", percent_scale),
        Column("final_gain_pp", "final gain", points_scale),
        RECLUSTERED,
        INDEX,
    ),
    columns_for=_columns,
    note=_note,
    notes_on_page=lambda summary: joint_note(summary, "gain_pp", "gains in mean accuracy"),
    in_terminal=InTerminal("accuracy over virtual time", is_against_reference=True, in_notebook=True),
    in_many_runs=InManyRuns(
        keys=("reclustered_seeds", "adjusted_rand_index"),
        columns=(RECLUSTERED, INDEX),
        notes={"reclustered_seeds": BY_SEED, "adjusted_rand_index": ADJUSTED_RAND_INDEX},
    ),
)
