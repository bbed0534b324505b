"""Assembles `report.html`: tables and captions come from here, the page itself from `report_page.html`.

`write_results` writes everything that is made from finished runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from emulator.errors import InputError
from emulator.storage.bounded import read_text
from emulator.storage.checkpoints import write_durably
from experiments.results.accuracy_tables import TargetTable, target_table
from experiments.results.formats import points_scale
from experiments.results.recorded import MOST_EXPERIMENT_BYTES
from experiments.results.report import figures
from experiments.results.report.columns import (
    ACCURACY,
    CLUSTER_CHANGES,
    COSTS,
    FAULTS,
    HONEST,
    TARGET,
    target_name,
    text_table,
)
from experiments.results.report.difference import can_be_compared, difference_caption, difference_figure
from experiments.results.report.drift_section import drift_section
from experiments.results.report.faults_section import faults_section
from experiments.results.report.figures import Arm
from experiments.results.report.headline import drift_sentence, sentences
from experiments.results.report.notes import (
    HOW_TO_SET_A_TARGET,
    accuracy_note,
    as_warning,
    cluster_change_note,
    come_and_go_note,
    few_seeds_note,
    heard_note,
    honest_note,
    horizon_note,
    target_note,
)
from experiments.results.report.plotly_js import PLOTLY_FILE
from experiments.results.report.scripted_page import Plot, page_with_nonce
from experiments.results.report.what_was_run import lead, missing_runs, settings_of_run
from experiments.results.rounds_table import write_rounds_table
from experiments.results.run_directory import FinishedRun, RunDirectory
from experiments.results.summary import Summary, summarise_directory, write_summary

MOST_DRAWN_TARGETS = 50


def write_results(directory: RunDirectory, *, shared_plotly: bool = False) -> Summary:
    """Write `summary.json`, `rounds.parquet` and, once the reference arm has a finished run, `report.html`.

    Returns the summary. Raises InputError if no run is finished, and ForeignFileError, before anything is
    written, if a file or folder of the run directory is of another kind, such as a link. `shared_plotly`: see
    `write_report`.
    """
    directory.refuse_foreign()
    runs = directory.finished_runs()
    summary = write_summary(directory, runs)
    write_rounds_table(directory.rounds_path, runs)
    if summary.accuracy:
        write_report(directory, runs, summary, shared_plotly=shared_plotly)
    return summary


def write_report(
    directory: RunDirectory,
    runs: Sequence[FinishedRun] | None = None,
    summary: Summary | None = None,
    *,
    shared_plotly: bool = False,
) -> Path:
    """Write `report.html` and return its path. The same files give the same bytes.

    Args:
        directory: The run directory.
        runs: Its finished runs; by default they are read here.
        summary: Their summary; by default it is made here.
        shared_plotly: Whether the page loads plotly.js from the folder above, where `write_plotly` writes it.
            By default the page contains it, and stands alone.

    Raises:
        InputError: The reference arm has no finished run.
    """
    runs = directory.finished_runs() if runs is None else runs
    summary = summarise_directory(directory, runs) if summary is None else summary
    if not summary.accuracy:
        raise InputError(f"{directory.path}: the reference arm {summary.reference_arm!r} has no finished run")
    experiment, order = directory.experiment(), directory.arms()
    arms = [Arm(arm.arm, arm.runs, arm.curves, order.index(arm.arm)) for arm in summary.compared]
    colours = {arm.name: arm.colour for arm in arms}
    page = page_with_nonce(
        "report_page.html",
        name=summary.name,
        reference_arm=summary.reference_arm,
        lead=lead(experiment),
        drift_sentence=drift_sentence(summary.finished, summary.reference_arm, experiment["report"]),
        sentences=sentences(summary),
        horizon_note=horizon_note(summary),
        warnings=[as_warning(text) for text in summary.warnings()],
        heard_note=heard_note(summary),
        come_and_go_note=come_and_go_note(summary),
        facts=settings_of_run(directory),
        experiment_text=read_text(directory.experiment_path, MOST_EXPERIMENT_BYTES),
        colours=colours,
        accuracy=text_table(ACCURACY, summary.accuracy),
        accuracy_note=accuracy_note(summary),
        joint_note=_joint_note(summary),
        targets=[
            (target_name(table, summary.reference_arm), text_table(TARGET, table.rows))
            for table in summary.targets
        ],
        target_note=target_note(summary) if summary.targets else HOW_TO_SET_A_TARGET,
        few_seeds_note=few_seeds_note(summary),
        costs=text_table(COSTS, summary.costs),
        cluster_changes=(
            text_table(CLUSTER_CHANGES, summary.cluster_changes) if summary.shows_cluster_changes else None
        ),
        cluster_change_note=cluster_change_note(summary),
        faults=faults_section(experiment.get("faults", {}), arms[0].runs, summary.costs),
        fault_counts=text_table(FAULTS, summary.costs),
        honest=text_table(HONEST, summary.honest) if summary.shows_honest_clients else None,
        honest_note=honest_note(summary),
        missing=missing_runs(directory, {(run.arm, run.seed) for arm in arms for run in arm.runs}),
        drift=drift_section(order, summary.finished, runs, experiment["report"]),
        plots=_plots(arms, summary, experiment.get("round", {}).get("evaluate_clients")),
        plotly_js=None if shared_plotly else Markup(get_plotlyjs()),
        plotly_file=PLOTLY_FILE,
    )
    write_durably(directory.report_path, page)
    return directory.report_path


def _joint_note(summary: Summary) -> str:
    """A note with the intervals of gains that hold for all arms at once; empty for a single comparison."""
    scale = points_scale(0.0)
    shown = [
        f"{row.arm} [{scale.bare(row.gain_pp.ci95_joint[0])}, {scale.bare(row.gain_pp.ci95_joint[1])}]"
        for row in summary.accuracy
        if row.gain_pp is not None and row.gain_pp.ci95_joint is not None
    ]
    if len(shown) < 2:
        return ""
    return f"Intervals of gains that hold for all arms at once (Bonferroni, 95 %): {', '.join(shown)}."


def _every_target(summary: Summary) -> list[TargetTable]:
    """Tables of evenly spaced targets, over the accuracies that are reached by the horizon; for plots.

    Targets are whole percentages, at most about `MOST_DRAWN_TARGETS` of them.
    """
    accuracies = np.concatenate(
        [
            curve.accuracy[curve.times_s <= summary.horizon.horizon_s]
            for arm in summary.compared
            for curve in arm.curves
        ]
    )
    if not len(accuracies):
        return []
    first, last = max(1, int(100 * accuracies.min())), min(100, int(100 * accuracies.max()) + 1)
    step = 1 + (last - first) // MOST_DRAWN_TARGETS
    return [
        target_table(percent / 100, summary.compared, summary.horizon)
        for percent in range(first, last + 1, step)
    ]


def _plots(arms: Sequence[Arm], summary: Summary, scored: int | None) -> list[Plot]:
    seeds = max(len(arm.runs) for arm in arms)
    band = (
        f"Lines are means over {seeds} seeds, as far as all of them go; bands are the range of the seeds. "
        if seeds > 1
        else "With one seed there is no band. "
    )
    clients = figures.num_clients(arms[0].runs[0])
    is_sample = scored is not None and scored < clients
    scored_clients = (
        f"a fixed sample of {scored:,} of the {clients:,} clients" if is_sample else "the clients"
    )
    if come_and_go_note(summary) is not None:
        scored_clients += ", while they hold samples to train on and to be tested on,"
    return [
        Plot(
            "accuracy",
            "Accuracy against virtual time",
            f"Accuracy of each client on its own held-out data, averaged over {scored_clients} and over the "
            f"last {summary.window} evaluations. Thick lines are means over {seeds} seeds, as far as all of "
            "them go; thin lines are single seeds. Arms are compared from the first dotted line to the "
            "second, the horizon. Orange bands are the times of mass events in the runs, dashed lines are "
            "targets.",
            figures.accuracy_figure(
                arms, summary.horizon, [goal for table in summary.targets if (goal := table.accuracy.mean)]
            ),
        ),
        *_difference_plots(arms, summary),
        *_target_plots(arms, summary),
        Plot(
            "heterogeneity",
            "How different are clients that share a model?",
            "Mean distance between a client's data and that of the others in its cluster: "
            f"{figures.client_distance(arms[0].runs[0])}, of the samples that it holds for training"
            f"{', within that sample of clients' if is_sample else ''}; lower is more alike. {band}"
            "The dashed line is the distance with all clients in one cluster: the gap below it is the effect "
            "of clustering. Triangles mark rounds in which at least one seed re-clustered globally."
            f"{_resting_on(arms, clients)}",
            figures.heterogeneity_figure(arms),
        ),
        *(plot for arm in arms for plot in _membership_plots(arm)),
        Plot(
            "durations",
            "How long rounds took",
            "Durations of rounds in virtual time, over all rounds and seeds. A round lasts from its opening "
            "to the new models, including the wait for reports and for the slowest participant that "
            "completed. The box is the middle half with the median, the dashed line is the mean.",
            figures.durations_figure(arms),
        ),
        Plot(
            "outcomes",
            "What became of the participants",
            "Completed: the update was absorbed. Abandoned: the visit was still out when enough others had "
            "arrived, or at the deadline. Dropped out: the client went offline or crashed before its visit "
            "was complete.",
            figures.outcomes_figure(arms),
        ),
    ]


def _difference_plots(arms: Sequence[Arm], summary: Summary) -> list[Plot]:
    """The plot of differences in accuracy over time; empty if there is nothing to compare."""
    if not can_be_compared(arms, summary.horizon):
        return []
    events = figures.event_spans([summary.horizon.events_s(run) for arm in arms for run in arm.runs])
    return [
        Plot(
            "difference",
            "Difference in accuracy over time",
            difference_caption(arms, summary.window),
            difference_figure(arms, summary.horizon, events),
        )
    ]


def _target_plots(arms: Sequence[Arm], summary: Summary) -> list[Plot]:
    """The plots of time below a target and of speed-up, over every target.

    Empty for a single arm, and if no run has an evaluation by the horizon.
    """
    tables = _every_target(summary)
    if not tables or len(arms) < 2:
        return []
    level = tables[0].rows[0].time_below_s.level
    band = (
        "dots are single seeds"
        if level is None
        else f"bands are their intervals at each target by itself ({100 * level:.1f} % for the first arm), "
        "without a test"
    )
    return [
        Plot(
            "below",
            "Time below a target, for every target",
            f"How long the unsmoothed accuracy was below a target up to the horizon; lower is better. Lines "
            f"are medians over seeds, {band}.",
            figures.below_figure(arms, tables, summary.horizon),
        ),
        Plot(
            "speedups",
            "Speed-up to a target, for every target",
            f"How many times sooner than {arms[0].name} an arm holds a target up to the horizon, on a "
            f"logarithmic axis; above 1 is sooner. Lines are medians over seeds, {band}. Triangles that "
            "point up are lower bounds, triangles that point down are upper bounds, vertical bars reach from "
            "the lower to the upper bound; where there is none of these, the median is undetermined. Bands "
            "end where an interval reaches 0 or has no upper end.",
            figures.speedup_figure(arms, tables),
        ),
    ]


def _resting_on(arms: Sequence[Arm], clients: int) -> str:
    """A sentence on the numbers of reports that global clusterings use; empty if they use all reports.

    It is also empty if no global clustering was made.
    """
    records = [record for arm in arms for run in arm.runs for record in run.records]
    fitted = [record.kmeans_clients for record in records if record.kmeans_clients is not None]
    scored = [record.silhouette_clients for record in records if record.silhouette_clients is not None]
    # Where clients come and go, a clustering is of those that hold data then.
    draws = any(
        count is not None and count < (record.holding or clients)
        for record in records
        for count in (record.kmeans_clients, record.silhouette_clients)
    )
    if not draws:
        return ""
    return (
        f" Centres are fitted to the reports of {min(fitted):,} clients, drawn at random, and their number "
        f"is chosen by those of {min(scored):,}; then every client joins the nearest centre."
    )


def _membership_plots(arm: Arm) -> list[Plot]:
    """The heat map of an arm's clusters; empty if the arm never had more than one cluster."""
    run = figures.clustered_run(arm)
    if run is None:
        return []
    sampled = (
        f" At most {figures.MAX_POINTS} clients and {figures.MAX_POINTS} rounds, evenly spaced, are drawn."
        if figures.is_thinned(run)
        else ""
    )
    absent = (
        f" {figures.NO_CLUSTER.capitalize()}: the client holds no training samples then."
        if any(record.holding is not None for record in run.records)
        else ""
    )
    caption = (
        "Each row is a client, read from left to right: where its colour changes, it moved to another "
        "cluster. A cluster keeps its colour across re-clusterings (matched by largest overlap). Dashed "
        f"lines under ▼ are global re-clusterings.{absent}{sampled}"
    )
    title = f"Which cluster each client was in: {arm.name}, seed {run.seed}"
    return [Plot(f"clusters-{arm.position}", title, caption, figures.membership_figure(run))]
