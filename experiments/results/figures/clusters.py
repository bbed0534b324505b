"""Which cluster each client was in, over the rounds of one run of each arm that has several clusters."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from emulator.arrays import Ints
from experiments.results.drawing.arms import Arm
from experiments.results.drawing.plain_figure import PlainFigure
from experiments.results.drawing.plot import Plot
from experiments.results.drawing.style import (
    CLUSTER_COLOURS,
    MAX_POINTS,
    NO_CLUSTER_COLOUR,
    add_cells,
    blank_map,
    evenly,
    mark_column,
    thinned,
)
from experiments.results.figures.figure import Figure
from experiments.results.reading.clusters_in_force import clusters_in_force, num_clients
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
    present, cells = np.unique(labels[order], return_inverse=True)
    colours = {
        str(label): CLUSTER_COLOURS[label % len(CLUSTER_COLOURS)] for label in present.tolist() if label >= 0
    }
    if present[0] < 0:
        colours = {NO_CLUSTER: NO_CLUSTER_COLOUR, **colours}
    figure = blank_map(480, x_title="round", y_title="clients, sorted by their sequence of clusters")
    names = [f"client {client}" for client in clients[order].tolist()]
    cells, text = cells.reshape(labels.shape), "%{y}, round %{x}<extra></extra>"
    add_cells(figure, cells, colours, "cluster", x=rounds, y=names, text=text)
    for record in run.records:
        if record.reclustered:
            mark_column(figure, record.round, "#000000", font={"size": 14})
    return figure


def clustered_run(arm: Arm) -> ReportedRun | None:
    """The arm's first run that has more than one cluster in some round; None if there is no such run."""
    for run in arm.runs:
        if num_clients(run) and any(len(record.clusters) > 1 for record in run.records):
            return run
    return None


def is_thinned(run: ReportedRun) -> bool:
    """Whether the heat map of `run` leaves out clients or rounds."""
    return num_clients(run) > MAX_POINTS or len(run.records) > MAX_POINTS


def _memberships(run: ReportedRun, clients: Ints) -> tuple[Ints, Ints]:
    """(rounds (columns,), labels (clients, columns)): the cluster labels of `clients` over rounds.

    Rounds are thinned to at most `MAX_POINTS`.
    """
    drawn = evenly(list(zip(run.records, clusters_in_force(run.records), strict=True)), MAX_POINTS)
    rounds = np.array([record.round for record, _ in drawn], dtype=np.int64)
    # The first record has them.
    labels = [members[clients] for _, members in drawn if members is not None]
    return rounds, np.stack(labels, axis=1).astype(np.int64)


def _plots(report: Report) -> Iterator[Plot]:
    for arm in report.arms:
        if (run := clustered_run(arm)) is not None:
            yield _plot(arm, run)


def _plot(arm: Arm, run: ReportedRun) -> Plot:
    """The map of the clusters of a run of an arm."""
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
    return Plot(f"clusters-{arm.position}", title, caption, membership_figure(run))


FIGURE = Figure("for-whom", _plots)
