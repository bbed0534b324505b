"""Which cluster each client was in, over the rounds of one run of each arm that has several clusters."""

from __future__ import annotations

from typing import Any

import numpy as np

from emulator.arrays import Ints
from experiments.results.drawing.arms import Arm
from experiments.results.drawing.plain_figure import PlainFigure
from experiments.results.drawing.plot import Plot
from experiments.results.drawing.style import (
    CLUSTER_COLOURS,
    MAX_POINTS,
    NO_CLUSTER_COLOUR,
    blank_figure,
    colour_steps,
    thinned,
)
from experiments.results.figures.figure import Figure
from experiments.results.reading.clusters_in_force import num_clients
from experiments.results.reading.run_directory import ReportedRun
from experiments.results.tables.report import Report

NO_CLUSTER = "none"
"""The name in the legend of no cluster, as of a client that holds no data."""


def membership_figure(run: ReportedRun) -> PlainFigure:
    """The cluster of each client: a row per client, a column per round, a colour per cluster label."""
    clients = thinned(num_clients(run))
    rounds, labels = _memberships(run, clients)
    # Rows are sorted by their label sequences, first round first: clients that stay together are adjacent.
    order = np.lexsort(labels.T[::-1])
    present, codes = np.unique(labels[order], return_inverse=True)
    colours = [
        CLUSTER_COLOURS[label % len(CLUSTER_COLOURS)] if label >= 0 else NO_CLUSTER_COLOUR
        for label in present.tolist()
    ]
    figure = blank_figure(480, x_title="round", y_title="clients, sorted by their sequence of clusters")
    figure.add_heatmap(
        z=codes.reshape(labels.shape).astype(np.uint8 if len(present) < 256 else np.int32),
        x=rounds,
        y=[f"client {client}" for client in clients[order].tolist()],
        colorscale=colour_steps(colours),
        zmin=-0.5,
        zmax=len(present) - 0.5,
        colorbar=_cluster_legend(present),
        hovertemplate="%{y}, round %{x}<extra></extra>",
    )
    figure.update_yaxes(type="category", showticklabels=False, ticks="", showgrid=False)
    marks = [record.round - 0.5 for record in run.records if record.reclustered]
    line = {"type": "line", "line": {"color": "#000000", "width": 2, "dash": "dash"}}
    note = {"text": "▼", "font": {"size": 14}, "showarrow": False, "xanchor": "center", "yanchor": "bottom"}
    for x in marks:
        figure.add_shape(**line, x0=x, x1=x, y0=0, y1=1, yref="y domain")
        figure.add_annotation(**note, x=x, y=1, yref="y domain")
    return figure


def clustered_run(arm: Arm) -> ReportedRun | None:
    """The arm's first run that has more than one cluster in some round; None if there is no such run."""
    return next(
        (
            run
            for run in arm.runs
            if num_clients(run) and any(len(record.clusters) > 1 for record in run.records)
        ),
        None,
    )


def is_thinned(run: ReportedRun) -> bool:
    """Whether the heat map of `run` leaves out clients or rounds."""
    return num_clients(run) > MAX_POINTS or len(run.records) > MAX_POINTS


def _memberships(run: ReportedRun, clients: Ints) -> tuple[Ints, Ints]:
    """(rounds (columns,), labels (clients, columns)): the cluster labels of `clients` over rounds.

    Rounds are thinned to at most `MAX_POINTS`.
    """
    drawn = set(thinned(len(run.records)).tolist())
    labels: list[Ints] = []
    for position, record in enumerate(run.records):
        if record.members is not None:
            members = record.members[clients].astype(np.int64)
        if position in drawn:
            labels.append(members)
    rounds = np.array([run.records[position].round for position in sorted(drawn)], dtype=np.int64)
    return rounds, np.stack(labels, axis=1)


def _cluster_legend(present: Ints) -> dict[str, Any]:
    shown = np.arange(0, len(present), 1 + len(present) // 25)
    return {
        "title": {"text": "cluster"},
        "tickvals": shown.tolist(),
        "ticktext": [str(label) if label >= 0 else NO_CLUSTER for label in present[shown].tolist()],
        "thickness": 18,
        "outlinewidth": 0,
        "len": 1,
    }


def _membership_plots(arm: Arm) -> list[Plot]:
    """The heat map of an arm's clusters; empty if the arm never had more than one cluster."""
    run = clustered_run(arm)
    if run is None:
        return []
    sampled = (
        f" At most {MAX_POINTS} clients and {MAX_POINTS} rounds, evenly spaced, are drawn."
        if is_thinned(run)
        else ""
    )
    absent = (
        f" {NO_CLUSTER.capitalize()}: the client holds no training samples then."
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
    return [Plot(f"clusters-{arm.position}", title, caption, membership_figure(run))]


def _plots(report: Report) -> list[Plot]:
    return [plot for arm in report.arms for plot in _membership_plots(arm)]


FIGURE = Figure("for-whom", _plots)
