"""The plots of the report, by the question that they answer."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.results.figures import figures
from experiments.results.figures.difference import can_be_compared, difference_caption, difference_figure
from experiments.results.figures.every_target import every_target
from experiments.results.figures.figures import Arm
from experiments.results.pages.scripted_page import Plot
from experiments.results.tables.notes import come_and_go_note
from experiments.results.tables.summary import Summary


def pays_plots(arms: Sequence[Arm], summary: Summary, scored: int | None) -> list[Plot]:
    """Plots for "Does it pay?": accuracy over time, differences, and times to every target.

    `scored` is the configured number of clients that are scored; None for all.
    """
    seeds = max(len(arm.runs) for arm in arms)
    scored_clients = _scored_clients(arms, scored)
    if come_and_go_note(summary) is not None:
        scored_clients += ", while they hold samples to train on and to be tested on,"
    return [
        Plot(
            "accuracy",
            "Accuracy against virtual time",
            f"Accuracy of each client on its own held-out data, averaged over {scored_clients} and over the "
            f"last {summary.window} evaluations. {_lines(seeds)} Arms are compared from the first dotted "
            "line to the second, the horizon. Orange bands are the times of mass events in the runs, dashed "
            "lines are targets.",
            figures.accuracy_figure(
                arms, summary.horizon, [goal for table in summary.targets if (goal := table.accuracy.mean)]
            ),
        ),
        *_difference_plots(arms, summary),
        *_target_plots(arms, summary),
    ]


def membership_plots(arms: Sequence[Arm]) -> list[Plot]:
    """Plots for "For whom?": a map of the clusters of clients for each arm with more than one cluster."""
    return [plot for arm in arms for plot in _membership_plots(arm)]


def round_plots(arms: Sequence[Arm], scored: int | None) -> list[Plot]:
    """Plots for "Why?": client distance, durations of rounds, and what became of the participants."""
    seeds = max(len(arm.runs) for arm in arms)
    clients = figures.num_clients(arms[0].runs[0])
    band = (
        f"Lines are means over {seeds} seeds, as far as all of them go; bands are the range of the seeds. "
        if seeds > 1
        else "With one seed there is no band. "
    )
    return [
        Plot(
            "heterogeneity",
            "How different are clients that share a model?",
            "Mean distance between a client's data and that of the others in its cluster: "
            f"{figures.client_distance(arms[0].runs[0])}, of the samples that it holds for training"
            f"{', within that sample of clients' if _is_sample(clients, scored) else ''}; lower is more "
            f"alike. {band}"
            "The dashed line is the distance with all clients in one cluster: the gap below it is the effect "
            "of clustering. Triangles mark rounds in which at least one seed re-clustered globally."
            f"{_resting_on(arms, clients)}",
            figures.heterogeneity_figure(arms),
        ),
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


def _lines(seeds: int) -> str:
    """What the lines of the figure of accuracy are."""
    if seeds == 1:
        return "Lines are of a single seed."
    return f"Thick lines are means over {seeds} seeds, as far as all of them go; thin lines are single seeds."


def _scored_clients(arms: Sequence[Arm], scored: int | None) -> str:
    clients = figures.num_clients(arms[0].runs[0])
    if scored is None or not _is_sample(clients, scored):
        return "the clients"
    return f"a fixed sample of {scored:,} of the {clients:,} clients"


def _is_sample(clients: int, scored: int | None) -> bool:
    return scored is not None and scored < clients


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
    tables = every_target(summary)
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
    others = f" Seed {run.seed} is drawn of {len(arm.runs)}." if len(arm.runs) > 1 else ""
    caption = (
        "Each row is a client, read from left to right: where its colour changes, it moved to another "
        "cluster. A cluster keeps its colour across re-clusterings (matched by largest overlap). Dashed "
        f"lines under ▼ are global re-clusterings.{absent}{sampled}{others}"
    )
    title = f"Which cluster each client was in: {arm.name}, seed {run.seed}"
    return [Plot(f"clusters-{arm.position}", title, caption, figures.membership_figure(run))]
