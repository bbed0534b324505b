"""The plots of a trace's page: label shares over time, and a map of distances from each client's start."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from plotly.colors import get_colorscale

from emulator.arrays import Floats, Ints
from emulator.seeding import RandomStreams
from experiments.results.drawing.plain_figure import PlainFigure
from experiments.results.drawing.style import CLUSTER_COLOURS, MAX_POINTS, blank_figure, verbatim
from traces.inspection.over_time import ClientShares

MOST_CLIENTS = 500
"""Most rows of the map; of more clients, so many are drawn at random."""

MOST_NAMED_ROWS = 40
"""Most rows of the map whose clients are named beside them."""

MOST_DRAWN_LABELS = 11
"""Most labels with a colour of their own; the others share one."""

OTHER_COLOUR = "#D0D5DA"


Area = tuple[str, str, Ints]
"""An area of the plots: its name, its colour, and the labels that it stands for."""


def drawn_labels(clients: Sequence[ClientShares], names: Sequence[str]) -> list[Area]:
    """The labels that `clients` have, each with a colour, the one with the largest shares first.

    If they are more than MOST_DRAWN_LABELS, the others are one area, the last. `names` are those of the first
    labels; others are called by their numbers.
    """
    totals = np.sum([each.shares.sum(axis=0) for each in clients], axis=0)
    order = np.argsort(-totals, kind="stable")[: int((totals > 0).sum())]
    alone = order if len(order) <= MOST_DRAWN_LABELS else order[: MOST_DRAWN_LABELS - 1]
    drawn = [
        (names[label] if label < len(names) else str(label), colour, np.array([label]))
        for label, colour in zip(alone.tolist(), CLUSTER_COLOURS, strict=False)
    ]
    others = order[len(alone) :]
    return [*drawn, (f"{len(others)} other labels", OTHER_COLOUR, others)] if len(others) else drawn


def stretch_of(num_windows: int) -> int:
    """How many windows are drawn as one: as few as make at most MAX_POINTS of all.

    >>> stretch_of(400), stretch_of(401), stretch_of(1000)
    (1, 2, 3)
    """
    return max(1, -(-num_windows // MAX_POINTS))


def area_edges(windows: Ints) -> tuple[Ints, Ints]:
    """The corners of areas that are as wide as their windows, and blank between two that are not adjacent.

    Args:
        windows: (n,) the windows with shares, ascending.

    Returns:
        (m,) the windows at which a height begins, and (m,) which of the n windows it is of; -1 for none.

    >>> edges, which = area_edges(np.array([3, 4, 7]))
    >>> edges.tolist(), which.tolist()
    ([3, 4, 5, 7, 8], [0, 1, -1, 2, -1])
    """
    ends = np.concatenate((windows[1:] != windows[:-1] + 1, [True]))[: len(windows)]
    edges = np.concatenate((windows, windows[ends] + 1))
    which = np.concatenate((np.arange(len(windows)), np.full(int(ends.sum()), -1)))
    order = np.argsort(edges, kind="stable")
    return edges[order], which[order]


def shares_figure(
    client: ClientShares, labels: Sequence[Area], *, first_step: int, num_windows: int, x_title: str
) -> PlainFigure:
    """The label shares (%) of one client over time, as stacked areas of the colours of `labels`.

    Of a trace of many windows, `stretch_of` of them are drawn as one: the mean of those with shares.
    """
    stretch = stretch_of(num_windows)
    stretches, place = np.unique(client.windows // stretch, return_inverse=True)
    edges, which = area_edges(stretches)
    figure = blank_figure(230, x_title=x_title, y_title="share (%)")
    for name, colour, of_area in labels:
        share = 100 * client.shares[:, of_area].sum(axis=1)
        mean = np.bincount(place, weights=share) / np.bincount(place) if len(place) else share
        figure.add_scatter(
            x=(edges * stretch + first_step).tolist(),
            y=np.round(np.where(which >= 0, mean[which], 0.0), 2).tolist() if len(place) else [],
            name=verbatim(name),
            mode="lines",
            line={"shape": "hv", "width": 0, "color": colour},
            fillcolor=colour,
            stackgroup="labels",
            hovertemplate=f"{verbatim(name)}: %{{y:.3g}} %<extra></extra>",
            showlegend=False,
        )
    figure.update_xaxes(range=[first_step, first_step + num_windows])
    figure.update_yaxes(range=[0, 100])
    figure.update_layout(margin={"l": 50, "r": 16, "t": 30, "b": 48}, hovermode="x")
    return figure


def mean_of_stretches(distances: Floats, stretch: int) -> Floats:
    """The means (clients, ceil(windows / stretch)) over the known distances of each stretch; NaN without any.

    >>> mean_of_stretches(np.array([[0.0, np.nan, np.nan, np.nan, 1.0]]), 2)
    array([[ 0., nan,  1.]])
    """
    clients, windows = distances.shape
    missing = -windows % stretch
    padded = np.concatenate((distances, np.full((clients, missing), np.nan)), axis=1)
    of_stretch = padded.reshape(clients, -1, stretch)
    known = (~np.isnan(of_stretch)).sum(axis=2)
    means: Floats = np.where(known > 0, np.nansum(of_stretch, axis=2) / np.maximum(known, 1), np.nan)
    return means


def sampled_clients(clients: Ints) -> Ints:
    """All of `clients` (n,), ascending, or MOST_CLIENTS of them, drawn at random and always the same."""
    if len(clients) <= MOST_CLIENTS:
        return clients
    generator = RandomStreams(0).generator("shown")
    return np.sort(generator.choice(clients, MOST_CLIENTS, replace=False))


def distance_figure(
    distances: Floats, names: Sequence[str], *, first_step: int, x_title: str, one: str
) -> PlainFigure:
    """The map of distances (clients, windows) from each client's start; NaN is blank.

    `names` are those of its rows, and `one` is what a row is. Of a trace of many windows, `stretch_of` of
    them are drawn as one, with the mean of their distances.
    """
    stretch = stretch_of(distances.shape[1])
    means = mean_of_stretches(distances, stretch)
    z = [[None if np.isnan(value) else round(value, 3) for value in row] for row in means.tolist()]
    is_named = len(names) <= MOST_NAMED_ROWS
    figure = blank_figure(
        max(260, 120 + min(len(names), 120) * (18 if is_named else 5)),
        x_title=x_title,
        y_title="" if is_named else f"{one}s, in their order",
    )
    figure.add_heatmap(
        z=z,
        x=(np.arange(means.shape[1]) * stretch + first_step).tolist(),
        y=list(range(len(names))),
        customdata=[[verbatim(name)] * means.shape[1] for name in names],
        zmin=0,
        zmax=2,
        colorscale=get_colorscale("Cividis"),
        hoverongaps=False,
        hovertemplate=f"{one} %{{customdata}}, %{{x}}: %{{z:.3f}}<extra></extra>",
        colorbar={"title": {"text": "L1"}, "thickness": 12, "len": 1, "tickvals": [0, 0.5, 1, 1.5, 2]},
    )
    figure.update_xaxes(showgrid=False)
    figure.update_yaxes(showgrid=False, autorange="reversed")
    if is_named:
        ticks = [verbatim(name if len(name) <= 14 else f"{name[:13]}…") for name in names]
        figure.update_yaxes(tickvals=list(range(len(names))), ticktext=ticks, tickfont={"size": 11})
    figure.update_layout(margin={"l": 50, "r": 10, "t": 40, "b": 48})
    return figure
