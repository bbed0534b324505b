"""How different the clients are that share a model, over rounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from experiments.results.drawing.arms import Arm, add_spread, by_round
from experiments.results.drawing.plain_figure import PlainFigure
from experiments.results.drawing.plot import Plot
from experiments.results.drawing.style import INK, blank_figure, spread, verbatim
from experiments.results.figures.figure import Figure
from experiments.results.reading.run_directory import ReportedRun
from experiments.results.tables.report import Report

DISTANCES = {
    "l1": "L1 distance",
    "js": "Jensen-Shannon distance",
    "squared_euclidean": "squared Euclidean distance",
    "cosine": "cosine distance",
}
"""Distances in which the logged distance between clients may be, as they are written."""

VECTORS = {
    "label": "label shares",
    "embedding": "mean embeddings by the reference model",
    "gradient": "gradients at the reference model",
}
"""The vectors between which they are distances, by representation."""


def client_distance(run: ReportedRun) -> str:
    """The distance between clients that a run logged, as its header states it."""
    measure = run.header.get("client_distance", {"kind": "label", "distance": "l1"})
    kind, distance = measure["kind"], measure["distance"]
    return f"{DISTANCES.get(distance, distance)} of {VECTORS.get(kind, kind)}"


def client_distance_figure(arms: Sequence[Arm]) -> PlainFigure:
    """Mean client distance over rounds, for each arm, and with all clients in one cluster.

    Triangles mark the rounds of global re-clusterings.
    """
    measure = verbatim(client_distance(arms[0].runs[0]))
    figure = blank_figure(440, x_title="round", y_title=f"mean client distance ({measure})")
    unclustered = by_round(arms[0].runs, lambda record: record.unclustered_distance)
    for arm in arms:
        curves = by_round(arm.runs, lambda record: record.mean_client_distance)
        if not curves:
            continue
        grid, mean = add_spread(figure, arm, curves)
        reclustered = [record.round for run in arm.runs for record in run.records if record.reclustered]
        rounds, counts = np.unique(np.array(reclustered, dtype=np.int64), return_counts=True)
        if len(rounds):
            figure.add_scatter(
                x=rounds,
                y=np.interp(rounds, grid, mean),
                mode="markers",
                marker={"symbol": "triangle-down", "size": 11, "color": arm.colour, "line": {"color": INK}},
                customdata=counts,
                hovertemplate=f"{arm.label}: re-clustered in %{{customdata}} of {len(arm.runs)} seeds"
                "<br>round %{x}<extra></extra>",
                legendgroup=arm.name,
                showlegend=False,
            )
    if unclustered:
        grid, mean, _, _ = spread(unclustered)
        figure.add_scatter(
            x=grid, y=mean, name="unclustered", line={"color": INK, "width": 1.5, "dash": "dash"}
        )
    figure.update_yaxes(rangemode="tozero")
    return figure


def _plots(report: Report) -> Iterator[Plot]:
    arms = report.arms
    sampled = ", within that sample of clients" if report.scores_a_sample else ""
    band = (
        f"Lines are means over {report.seeds}, as far as all of them go; bands are the range of the seeds. "
        if report.most_seeds > 1
        else "With one seed there is no band. "
    )
    yield Plot(
        "heterogeneity",
        "How different are clients that share a model?",
        "Mean distance between a client's data and that of the others in its cluster: "
        f"{client_distance(arms[0].runs[0])}, of the samples that it holds for training{sampled}; lower "
        f"is more alike. {band}The dashed line is the distance with all clients in one cluster: the gap "
        "below it is the effect of clustering. Triangles mark rounds in which at least one seed "
        "re-clustered globally."
        f"{_resting_on(arms, report.num_clients)}",
        client_distance_figure(arms),
    )


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


FIGURE = Figure("why", _plots)
