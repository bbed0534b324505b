"""Puts the report together: tables and captions here, the page itself in `report_page.html`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from emulator.bounded import MOST_TOML_BYTES, read_text
from emulator.checkpoints import write_durably
from emulator.errors import InputError
from experiments.formats import (
    PickScale,
    Scale,
    bytes_scale,
    count_scale,
    factor_scale,
    is_undetermined,
    percent_scale,
    points_scale,
    show_estimate,
    show_speedup,
    time_scale,
)
from experiments.report import figures
from experiments.report.drift_section import drift_section
from experiments.report.environment import template
from experiments.report.faults_section import faults_section
from experiments.report.figures import Arm
from experiments.report.headline import drift_sentence, sentences
from experiments.report.missing import missing_runs
from experiments.report.what_was_run import lead, settings_of_run
from experiments.run_directory import FinishedRun, RunDirectory
from experiments.summary import Summary, summarise_directory

PLOT_CONFIG = {"displaylogo": False, "showSendToCloud": False, "responsive": True}

Columns = tuple[tuple[str, str, PickScale], ...]  # figure of the summary, heading, how it is written

RESULTS: Columns = (
    ("final_accuracy", "final accuracy", percent_scale),
    ("gain_pp", "gain", points_scale),
    ("mean_accuracy", "mean accuracy", percent_scale),
    ("mean_gain_pp", "mean gain", points_scale),
    ("tta_s", "TTA", time_scale),
    ("speedup", "speed-up", factor_scale),
)
COSTS: Columns = (
    ("virtual_time_s", "virtual time", time_scale),
    ("wall_s", "wall time", time_scale),
    ("download_bytes", "download", bytes_scale),
    ("upload_bytes", "upload", bytes_scale),
    ("control_bytes", "control", bytes_scale),
    ("dropouts", "drop-outs", count_scale),
    ("moves", "moves", count_scale),
    ("global_reclusterings", "re-clusterings", count_scale),
)
FAULTS: Columns = (
    ("crashed_visits", "crashed visits", count_scale),
    ("rejected_updates", "updates dropped", count_scale),
    ("dropouts", "drop-outs in all", count_scale),
    ("abandoned", "abandoned", count_scale),
)
COMPARISONS = ("gain_pp", "mean_gain_pp", "speedup")  # say nothing of the reference arm


@dataclass(frozen=True)
class Plot:
    """One drawn figure; its `id` names its element and nothing else in the page."""

    id: str
    title: str
    caption: str
    figure: go.Figure

    @property
    def drawing(self) -> Markup:
        """The element and the script that draws it; plotly escapes `<` in the data it embeds."""
        return Markup(
            self.figure.to_html(
                full_html=False,
                include_plotlyjs=False,
                div_id=self.id,
                config=PLOT_CONFIG,
                default_width="100%",
            )
        )


def write_report(directory: RunDirectory, runs: Sequence[FinishedRun] | None = None) -> Path:
    """Write `report.html` from the finished runs (read here unless given) and return its path.

    The same files give the same bytes. InputError when the reference arm has no finished run.
    """
    runs = directory.finished_runs() if runs is None else runs
    summary = summarise_directory(directory, runs)
    reference_arm = summary["reference_arm"]
    if not summary["arms"]:
        raise InputError(f"{directory.path}: the reference arm {reference_arm!r} has no finished run")
    experiment = directory.experiment()
    arms = _arms(directory.arms(), runs, summary)
    plots = _plots(arms, summary["window"], experiment.get("round", {}).get("evaluate_clients"))
    target = _configured_target(directory)
    page = template("report_page.html").render(
        name=summary["name"],
        lead=lead(experiment),
        drift_sentence=drift_sentence(summary["finished"], reference_arm, experiment["report"]),
        sentences=sentences(arms, target),
        facts=settings_of_run(directory),
        experiment_text=read_text(directory.experiment_path, MOST_TOML_BYTES),
        results=_table(arms, RESULTS),
        costs=_table(arms, COSTS),
        faults=faults_section(experiment.get("faults", {}), arms[0].runs, summary["arms"]),
        fault_counts=_table(arms, FAULTS),
        any_censored=any(arm.is_censored for arm in arms),
        undetermined=any(is_undetermined(arm.summary["speedup"]) for arm in arms),
        single_seed=any(arm.summary["seeds"] == 1 for arm in arms),
        reference_arm=reference_arm,
        target=None if target is None else percent_scale(target)(target),
        window=summary["window"],
        missing=missing_runs(directory, {(run.arm, run.seed) for arm in arms for run in arm.runs}),
        drift=drift_section(directory.arms(), summary["finished"], runs, experiment["report"]),
        plots=plots,
        plotly_js=Markup(get_plotlyjs()),
    )
    write_durably(directory.report_path, page)
    return directory.report_path


def _table(arms: Sequence[Arm], columns: Columns) -> dict[str, Any]:
    """Headings and rows; a cell is (mean, interval, flagged). A column has one unit, its largest mean's."""
    scales = {}
    for figure, _, pick_scale in columns:
        means = [arm.summary[figure]["mean"] for arm in arms]
        scales[figure] = pick_scale(max((mean for mean in means if mean is not None), default=0.0))
    return {
        "headings": [heading for _, heading, _ in columns],
        "rows": [
            {
                "name": arm.name,
                "colour": arm.colour,
                "reached": f"{arm.summary['reached']} of {arm.summary['seeds']}",
                "cells": [_cell(arm, arms[0], figure, scale) for figure, scale in scales.items()],
            }
            for arm in arms
        ],
    }


def _cell(arm: Arm, reference: Arm, figure: str, scale: Scale) -> tuple[str, str, bool]:
    if arm is reference and figure in COMPARISONS:
        return "reference", "", False
    flagged = (figure == "tta_s" and arm.is_censored) or (
        figure == "speedup" and arm.is_bounded_by(reference)
    )
    show = show_speedup if figure == "speedup" else show_estimate
    return (*show(arm.summary[figure], scale), flagged)


def _arms(order: Sequence[str], runs: Sequence[FinishedRun], summary: Summary) -> list[Arm]:
    """The arms that the summary has, in the configured order, with the runs that count in it."""
    arms = []
    for place, name in enumerate(order):
        if name in summary["arms"]:
            figures_of_arm = summary["arms"][name]
            paired = [run for run in runs if run.arm == name and run.seed in figures_of_arm["seed_ids"]]
            arms.append(Arm(name, paired, figures_of_arm, place))
    return arms


def _configured_target(directory: RunDirectory) -> float | None:
    target: float | None = directory.experiment()["report"].get("target")
    return target


def _plots(arms: Sequence[Arm], window: int, scored: int | None) -> list[Plot]:
    seeds = max(arm.summary["seeds"] for arm in arms)
    band = (
        f"Lines are means over {seeds} seeds as far as all of them go, bands the range of the seeds. "
        if seeds > 1
        else "One seed: there is no band. "
    )
    clients = figures.num_clients(arms[0].runs[0])
    is_sample = scored is not None and scored < clients
    some = f"a fixed sample of {scored:,} of the {clients:,} clients" if is_sample else "the clients"
    return [
        Plot(
            "accuracy",
            "Accuracy against virtual time",
            f"Every client's accuracy on its own held-out data, averaged over {some} and over the last "
            f"{window} evaluations. {band}The further left a line crosses the dashed target for good, the "
            "better. A diamond is an arm's mean time-to-accuracy, hollow where a seed never got there and "
            "count with the end of their run.",
            figures.accuracy_figure(arms, window),
        ),
        Plot(
            "heterogeneity",
            "How different are clients that share a model?",
            "Mean distance between a client's data and that of the others in its cluster"
            f"{', within that sample' if is_sample else ''}; lower is more alike. {band}The dashed line puts "
            "all clients into one cluster: the gap below it is what "
            "clustering buys. Triangles mark rounds in which at least one seed re-clustered globally."
            f"{_resting_on(arms, clients)}",
            figures.heterogeneity_figure(arms),
        ),
        *(plot for arm in arms for plot in _membership_plots(arm)),
        Plot(
            "durations",
            "How long rounds took",
            "The spread of round durations in virtual time over all rounds and seeds, from opening to the "
            "new models: waiting for reports and for the slowest participant that was kept is included. The "
            "box is the middle half with the median, the dashed line the mean.",
            figures.durations_figure(arms),
        ),
        Plot(
            "outcomes",
            "What became of the participants",
            "Kept: the update was absorbed. Abandoned: still out when enough others had arrived, or at the "
            "deadline. Dropped out: went offline, or crashed, before its exchange was complete.",
            figures.outcomes_figure(arms),
        ),
    ]


def _resting_on(arms: Sequence[Arm], clients: int) -> str:
    """On how many reports global clusterings rest, where that is not all of them."""
    records = [record for arm in arms for run in arm.runs for record in run.records]
    fitted = [record.kmeans_clients for record in records if record.kmeans_clients is not None]
    scored = [record.silhouette_clients for record in records if record.silhouette_clients is not None]
    if not fitted or min(fitted + scored) >= clients:
        return ""
    return (
        f" Centres are fitted to the reports of {min(fitted):,} clients, drawn at random, and their number "
        f"is chosen by those of {min(scored):,}; then everybody joins the nearest."
    )


def _membership_plots(arm: Arm) -> list[Plot]:
    """The heat map of an arm that ever had more than one cluster."""
    run = figures.clustered_run(arm)
    if run is None:
        return []
    sampled = (
        f" Drawn from an even sample of at most {figures.MAX_POINTS} clients and {figures.MAX_POINTS} rounds."
        if figures.is_thinned(run)
        else ""
    )
    caption = (
        "A row is a client, read from left to right: where its colour changes it moved to another cluster. "
        "A colour keeps its cluster across re-clusterings (matched by largest overlap). Dashed lines under ▼ "
        f"are global re-clusterings.{sampled}"
    )
    title = f"Which cluster each client was in: {arm.name}, seed {run.seed}"
    return [Plot(f"clusters-{arm.place}", title, caption, figures.membership_figure(run))]
