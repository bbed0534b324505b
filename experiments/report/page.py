"""Puts the report together: tables and captions here, the page itself in `template.html`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from experiments.report import figures
from experiments.report.drift_section import drift_section
from experiments.report.environment import template
from experiments.report.figures import Arm
from experiments.report.formats import (
    PickScale,
    Scale,
    bytes_scale,
    count_scale,
    factor_scale,
    percent_scale,
    points_scale,
    show_estimate,
    time_scale,
)
from experiments.report.headline import sentences
from experiments.run_directory import FinishedRun, RunDirectory, write_atomically
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
LEAD = (
    ("trace", "source", "trace"),
    ("trace", "clients", "clients"),
    ("devices", "profile", "devices"),
    ("devices", "availability", "availability"),
    ("training", "model", "model"),
    ("round", "rounds", "rounds"),
    ("round", "participants", "participants a round"),
)  # section, key and noun of what the page says first
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
    arms = _arms(directory.arms(), runs, summary)
    plots = _plots(arms, summary["window"])
    target = _configured_target(directory)
    page = template("template.html").render(
        name=summary["name"],
        lead=_lead(directory.experiment()),
        sentences=sentences(arms, target),
        facts=_facts(directory),
        experiment_text=directory.experiment_path.read_text(encoding="utf-8"),
        results=_table(arms, RESULTS),
        costs=_table(arms, COSTS),
        any_censored=any(arm.is_censored for arm in arms),
        single_seed=any(arm.summary["seeds"] == 1 for arm in arms),
        reference_arm=summary["reference_arm"],
        target=None if target is None else percent_scale(target)(target),
        window=summary["window"],
        missing=_missing(directory, arms),
        drift=drift_section(arms, directory.experiment()["report"]),
        plots=plots,
        plotly_js=Markup(get_plotlyjs()),
    )
    write_atomically(directory.report_path, page)
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
    return (*show_estimate(arm.summary[figure], scale), flagged)


def _arms(order: Sequence[str], runs: Sequence[FinishedRun], summary: Summary) -> list[Arm]:
    """The arms that the summary has, in the configured order, with the runs that count in it."""
    arms = []
    for place, name in enumerate(order):
        if name in summary["arms"]:
            figures_of_arm = summary["arms"][name]
            paired = [run for run in runs if run.arm == name and run.seed in figures_of_arm["seed_ids"]]
            arms.append(Arm(name, paired, figures_of_arm, place))
    return arms


def _missing(directory: RunDirectory, arms: Sequence[Arm]) -> list[str]:
    """A line for each configured run that does not count, with the reason."""
    counted = {(run.arm, run.seed) for arm in arms for run in arm.runs}
    lines = []
    for arm in directory.arms():
        for seed in directory.seeds():
            if (arm, seed) in counted:
                continue
            failure = directory.failure(arm, seed)
            if directory.is_done(arm, seed):
                reason = "finished, but the reference arm did not finish this seed"
            else:
                reason = "not finished" if failure is None else f"failed: {failure}"
            lines.append(f"{arm}, seed {seed}: {reason}")
    return lines


def _configured_target(directory: RunDirectory) -> float | None:
    target: float | None = directory.experiment()["report"].get("target")
    return target


def _lead(experiment: Mapping[str, Any]) -> str:
    """One line on what was run; what the configuration does not have is left out."""
    facts = []
    for section, key, noun in LEAD:
        value = experiment.get(section, {}).get(key)
        if value is not None:
            facts.append(f"{value['kind'] if isinstance(value, Mapping) else value} {noun}")
    for noun, things in (("arm", experiment["arm"]), ("seed", experiment["seeds"])):
        facts.append(f"{len(things)} {noun}{'s' if len(things) > 1 else ''}")
    return " · ".join(facts)


def _facts(directory: RunDirectory) -> list[tuple[str, str]]:
    """(section, its settings) of the configuration, the arms, and the versions that the manifest names."""
    experiment, manifest = directory.experiment(), directory.manifest()
    experiment["report"].pop("published", None)  # has a table of its own
    facts = [
        (key, _settings(value) if isinstance(value, Mapping) else _value(value))
        for key, value in experiment.items()
        if key not in ("name", "arm")
    ]
    facts += _arm_parts(experiment)
    if manifest is not None and "versions" in manifest:
        facts.append(("versions", _settings(manifest["versions"])))
    return facts


def _arm_parts(experiment: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(arm, its parts), after the parts that all arms share; its training where it is not `[training]`."""
    arms = [_without_shared_training(arm, experiment.get("training", {})) for arm in experiment["arm"]]
    shared = {key: value for key, value in arms[0].items() if all(arm.get(key) == value for arm in arms)}
    rows = [("all arms", _settings(shared))] if shared else []
    for arm in arms:
        own = {key: value for key, value in arm.items() if key != "name" and key not in shared}
        rows.append((f"arm {arm['name']}", _settings(own) or "nothing of its own"))
    return rows


def _without_shared_training(arm: Mapping[str, Any], shared: Mapping[str, Any]) -> dict[str, Any]:
    own = {key: value for key, value in arm.get("training", {}).items() if shared.get(key) != value}
    rest = {key: value for key, value in arm.items() if key != "training"}
    return {**rest, "training": own} if own else rest


def _settings(table: Mapping[str, Any]) -> str:
    return " · ".join(f"{key} {_value(value)}" for key, value in table.items())


def _value(value: Any) -> str:
    """A configured value as it reads best; a part as its kind and, in brackets, its settings."""
    if isinstance(value, Mapping):
        inner = ", ".join(f"{key} {_value(item)}" for key, item in value.items() if key != "kind")
        if "kind" not in value:
            return inner or "none"
        return f"{value['kind']} ({inner})" if inner else str(value["kind"])
    if isinstance(value, list):
        return ", ".join(_value(item) for item in value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _plots(arms: Sequence[Arm], window: int) -> list[Plot]:
    seeds = max(arm.summary["seeds"] for arm in arms)
    band = (
        f"Lines are means over {seeds} seeds as far as all of them go, bands the range of the seeds. "
        if seeds > 1
        else "One seed: there is no band. "
    )
    return [
        Plot(
            "accuracy",
            "Accuracy against virtual time",
            "Every client's accuracy on its own held-out data, averaged over the clients and over the last "
            f"{window} evaluations. {band}The further left a line crosses the dashed target for good, the "
            "better. A diamond is an arm's mean time-to-accuracy, hollow where a seed never got there and "
            "count with the end of their run.",
            figures.accuracy_figure(arms, window),
        ),
        Plot(
            "heterogeneity",
            "How different are clients that share a model?",
            "Mean distance between a client's data and that of the others in its cluster; lower is more "
            f"alike. {band}The dashed line puts all clients into one cluster: the gap below it is what "
            "clustering buys. Triangles mark rounds in which at least one seed re-clustered globally.",
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
            "deadline. Dropped out: went offline before its exchange was complete.",
            figures.outcomes_figure(arms),
        ),
    ]


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
