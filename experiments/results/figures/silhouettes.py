"""How many clusters there were, and how well each number of clusters that was tried fits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from emulator.arrays import Floats, Ints
from emulator.storage.runlog import RoundRecord
from experiments.results.drawing.arms import Arm
from experiments.results.drawing.menus import add_choices, list_clause, shown_at_first
from experiments.results.drawing.plain_figure import PlainFigure, Trace, floats, single, small, trace
from experiments.results.drawing.plot import Plot
from experiments.results.drawing.style import (
    MAX_SEED_POINTS,
    NO_CLUSTER_COLOUR,
    VALUE_COLOUR,
    blank_figure,
    evenly,
)
from experiments.results.figures.figure import Figure
from experiments.results.reading.run_directory import ReportedRun
from experiments.results.tables.report import Report

TRIED_COLOUR = "#9aa5b1"
MOST_CLUSTERINGS = 40
"""Most global clusterings of which all silhouettes are drawn, per arm."""


def chosen_silhouette(record: RoundRecord) -> float | None:
    """The silhouette of the number of clusters in force at the end of the round; None if it has none."""
    return (record.silhouettes or {}).get(len(record.clusters))


def has_silhouettes(run: ReportedRun) -> bool:
    """Whether silhouettes were computed in some round."""
    return any(record.silhouettes for record in run.records)


def silhouettes_figure(arms: Sequence[Arm]) -> PlainFigure:
    """The number of clusters over rounds, and above it the silhouettes of the numbers that were tried.

    One arm is shown at a time, at first the last one that re-clustered globally; a list below the figure
    chooses it. Lines and diamonds are of single seeds; small
    dots are all numbers of clusters tried at a global clustering of the first seed.
    """
    figure = blank_figure(560, x_title="round", y_title="clusters (k)")
    upper = {**figure.layout["yaxis"], "title": {"text": "silhouette"}}
    figure.update_layout(
        yaxis={"domain": [0, 0.44], "rangemode": "tozero"},
        yaxis2={**upper, "domain": [0.56, 1], "anchor": "x"},
    )
    figure.update_xaxes(rangemode="tozero")
    add_choices(
        figure,
        [(arm.label, _traces(arm)) for arm in arms],
        shown=shown_at_first(arms, lambda record: record.reclustered),
    )
    return figure


def _traces(arm: Arm) -> Iterator[Trace]:
    """The silhouettes that the first seed tried, and of each seed those that it chose and its clusters."""
    first = arm.runs[0]
    rounds, tried, values = _tried(first.records)
    yield trace(
        "scatter",
        visible=False,
        x=small(rounds),
        y=single(values),
        yaxis="y2",
        customdata=small(tried),
        mode="markers",
        name="every k tried",
        marker={"size": 4, "color": TRIED_COLOUR},
        hovertemplate=f"seed {first.seed}, round %{{x}}: k = %{{customdata}}, silhouette %{{y:.3f}}"
        "<extra></extra>",
    )
    for run in arm.runs:
        clustered = [record for record in run.records if chosen_silhouette(record) is not None]
        clustered = evenly(clustered, MAX_SEED_POINTS)
        yield trace(
            "scatter",
            visible=False,
            x=small([record.round for record in clustered]),
            y=single(floats([chosen_silhouette(record) for record in clustered])),
            yaxis="y2",
            customdata=small([len(record.clusters) for record in clustered]),
            mode="markers",  # a silhouette is of one clustering: between two of them there is none
            name="chosen k",
            cliponaxis=False,  # the first one is often of round 0
            marker={
                "color": VALUE_COLOUR,
                "symbol": "diamond",
                "size": 6,
                "line": {"color": NO_CLUSTER_COLOUR, "width": 0.5},
            },
            hovertemplate=f"seed {run.seed}, round %{{x}}: chosen k = %{{customdata}}, "
            "silhouette %{y:.3f}<extra></extra>",
            legendgroup="k",
            showlegend=run is first,
        )
        changed, counts = _cluster_counts(run.records)
        yield trace(
            "scatter",
            visible=False,
            x=small(changed),
            y=small(counts),
            mode="lines",
            line={"color": VALUE_COLOUR, "width": 1.2, "shape": "hv"},
            hovertemplate=f"seed {run.seed}, round %{{x}}: %{{y}} clusters<extra></extra>",
            legendgroup="k",
            showlegend=False,
        )


def _tried(records: Sequence[RoundRecord]) -> tuple[Sequence[int], Sequence[int], Floats]:
    """(rounds, k, silhouettes) of every k tried, at `MOST_CLUSTERINGS` evenly spread global clusterings."""
    rows = [
        (record.round, k, value)
        for record in evenly([record for record in records if record.silhouettes], MOST_CLUSTERINGS)
        for k, value in (record.silhouettes or {}).items()
        if value is not None
    ]
    rounds, tried, values = zip(*rows, strict=True) if rows else ((), (), ())
    return rounds, tried, floats(values)


def _cluster_counts(records: Sequence[RoundRecord]) -> tuple[Ints, Ints]:
    """(rounds, numbers of clusters) where the number changed, with the first and the last round; thinned."""
    counts = np.array([len(record.clusters) for record in records], dtype=np.int64)
    changed = np.flatnonzero(np.concatenate(([True], np.diff(counts) != 0)))
    kept = evenly(np.union1d(changed, [len(counts) - 1]).tolist(), MAX_SEED_POINTS)
    return np.array([record.round for record in records], dtype=np.int64)[kept], counts[kept]


def _plots(report: Report) -> Iterator[Plot]:
    if arms := [arm for arm in report.arms if has_silhouettes(arm.runs[0])]:
        yield Plot(
            "silhouettes",
            "How many clusters, and how well they fit",
            "Below: the number of clusters over rounds. Above: as diamonds, the mean silhouette of the "
            "number that each global clustering chose, and, as small dots, of every number that it tried, "
            f"for at most {MOST_CLUSTERINGS} clusterings of the first seed, evenly spread. A silhouette near "
            "1 means that clusters are far apart, near 0 that they overlap. Lines are single seeds"
            f"{list_clause(arms)}.",
            silhouettes_figure(arms),
        )


FIGURE = Figure("why", _plots, "no arm chose a number of clusters by silhouettes")
