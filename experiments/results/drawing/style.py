"""The style that all figures share: colours, blank figures, marks of mass events, thinning and bands.

Every line and row is thinned evenly to at most `MAX_POINTS` points, so that the report of a long run or of
many clients stays small. Nothing here is random: the same rounds give the same figure.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from emulator.arrays import Floats, Ints
from experiments.results.drawing.plain_figure import PlainFigure

MAX_POINTS = 400
MAX_SEED_POINTS = 150  # of the thin line of a single seed

MOST_EVENTS = 12  # that are marked; of more mass events none is, since the clients drift all the time

# For clusters: the colours of Okabe and Ito, then the muted ones of Tol.
CLUSTER_COLOURS = (
    *("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#332288"),
    *("#999933", "#882255", "#44AA99", "#AA4499", "#117733", "#DDCC77", "#661100", "#BBBBBB"),
)
NO_CLUSTER_COLOUR = "#FFFFFF"
VALUE_COLOUR = "#0072B2"
INK = "#1f2933"
GRID = "#e4e7eb"
EVENT_COLOUR = "#E69F00"
TRANSPARENT = "rgba(0,0,0,0)"
"""The ground of every figure: that of the page, in light and in dark mode."""

COLOUR_BAR = {"thickness": 18, "outlinewidth": 0, "len": 1}

T = TypeVar("T")
Curve = tuple[Floats, Floats]
Span = tuple[float, float]


def verbatim(text: str) -> str:
    """The text, escaped so that plotly shows it as it is: plotly's texts are pseudo-HTML or templates."""
    # Quotes stay: plotly does not know their entities, and outside a tag they need no escape.
    return html.escape(text, quote=False).replace("%{", "%&#123;")


def mark_events(figure: PlainFigure, spans_s: Sequence[Span], seconds: float) -> None:
    """Mark each mass event by a band from the first to the last time at which it began; x is in `seconds`."""
    for first_s, last_s in spans_s:
        figure.add_vrect(
            x0=first_s / seconds,
            x1=last_s / seconds,
            line={"color": EVENT_COLOUR, "width": 1},
            fillcolor=EVENT_COLOUR,
            opacity=0.35,
            note={"text": "mass event", "textangle": -90, "font": {"size": 12}},
        )


def blank_figure(height: int, *, x_title: str, y_title: str) -> PlainFigure:
    """A figure without data, in the style of the report, `height` pixels high."""
    axis = {"gridcolor": GRID, "linecolor": "#9aa5b1", "zeroline": False, "automargin": True}
    return PlainFigure(
        paper_bgcolor=TRANSPARENT,
        plot_bgcolor=TRANSPARENT,
        modebar={
            "orientation": "v",
            "bgcolor": TRANSPARENT,
            "color": "#7b8794",
            "activecolor": INK,
        },  # in the right margin, and so never over the legend
        height=height,
        margin={"l": 70, "r": 44, "t": 48, "b": 60},
        font={"family": "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif", "size": 14, "color": INK},
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        hoverlabel={"font": {"size": 13}},
        xaxis={"title": {"text": x_title}, **axis},
        yaxis={"title": {"text": y_title}, **axis},
    )


def blank_map(height: int, *, x_title: str, y_title: str) -> PlainFigure:
    """A blank figure with a row per client, in the order in which its data name them."""
    figure = blank_figure(height, x_title=x_title, y_title=y_title)
    figure.update_yaxes(type="category", showticklabels=False, ticks="", showgrid=False)
    return figure


def add_cells(
    figure: PlainFigure, cells: Ints, colours: Mapping[str, str], title: str, *, x: Ints, y: Any, text: str
) -> None:
    """Draw the cells of a map, with a legend beside it that names at most about 25 values, evenly spread.

    Args:
        figure: The figure, from `blank_map`.
        cells: (rows, columns) the index of the value of each cell.
        colours: The colour of each value, by its name.
        title: The title of the legend.
        x: (columns,) the numbers of the columns.
        y: (rows,) the names of the rows.
        text: The template of the text on hovering.
    """
    names = list(colours)
    shown = list(range(0, len(names), 1 + len(names) // 25))
    named = {"tickvals": shown, "ticktext": [names[index] for index in shown]}
    figure.add_heatmap(
        z=cells.astype(np.uint8 if len(names) < 256 else np.int32),
        x=x,
        y=y,
        colorscale=colour_steps(list(colours.values())),
        zmin=-0.5,
        zmax=len(names) - 0.5,
        colorbar={"title": {"text": title}, **named, **COLOUR_BAR},
        hovertemplate=text,
    )


def mark_column(figure: PlainFigure, column: int, colour: str, font: Mapping[str, Any] | None = None) -> None:
    """Mark the beginning of a column, half a unit before its middle, by a dashed line under a triangle."""
    x, line = column - 0.5, {"color": colour, "width": 2, "dash": "dash"}
    note = {"text": "▼", "font": font, "showarrow": False, "xanchor": "center", "yanchor": "bottom"}
    figure.add_shape(type="line", line=line, x0=x, x1=x, y0=0, y1=1, yref="y domain")
    figure.add_annotation(**note, x=x, y=1, yref="y domain")


def spread(curves: Sequence[Curve], most_points: int = MAX_POINTS) -> tuple[Floats, Floats, Floats, Floats]:
    """(grid, mean, lowest, highest) of curves (x, y) over the range of x that all of them cover.

    A value of y holds until the next x. The grid is thinned to at most `most_points`.
    """
    grid = np.unique(np.concatenate([x for x, _ in curves]))
    grid = grid[(grid >= max(x[0] for x, _ in curves)) & (grid <= min(x[-1] for x, _ in curves))]
    if not len(grid):  # one curve ends before another begins
        grid = np.array([max(x[0] for x, _ in curves)])
    grid = grid[thinned(len(grid), most_points)]
    held = np.stack([y[np.searchsorted(x, grid, side="right") - 1] for x, y in curves])
    return grid, held.mean(axis=0), held.min(axis=0), held.max(axis=0)


def event_spans(by_run: Sequence[Sequence[float]]) -> list[Span]:
    """(first, last) virtual time at which the round of each mass event opened, over all runs.

    `by_run` has the virtual times of each run's events, ascending.
    """
    num_events = max((len(events_s) for events_s in by_run), default=0)
    by_event = [
        [events_s[event] for events_s in by_run if event < len(events_s)] for event in range(num_events)
    ]
    return [(min(openings_s), max(openings_s)) for openings_s in by_event]


def thinned(count: int, most: int = MAX_POINTS) -> Ints:
    """At most `most` indices in [0, count), ascending and evenly spread, with the first and the last."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.int64))


def evenly(items: Sequence[T], most: int) -> list[T]:
    """At most `most` of the items, evenly spread, with the first and the last."""
    return [items[index] for index in thinned(len(items), most).tolist()]


def colour_steps(colours: Sequence[str]) -> list[tuple[float, str]]:
    """A plotly colour scale with one step for each colour, all of equal width."""
    edges = np.linspace(0, 1, len(colours) + 1)
    return [(float(edge), colour) for i, colour in enumerate(colours) for edge in edges[i : i + 2]]


def translucent(colour: str) -> str:
    """The colour of a band in the colour `colour`, such as "#0072B2"."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.16)"
