"""The plots of the report: plotly figures of logged rounds.

Every line and row is thinned evenly to at most `MAX_POINTS` points, so that the report of a long run or of
many clients stays small. Nothing here is random: the same rounds give the same figure.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from emulator.arrays import Floats, Ints
from emulator.storage.runlog import RoundRecord
from experiments.results.drawing.plain_figure import PlainFigure
from experiments.results.reading.run_directory import FinishedRun
from experiments.results.statistics.horizon import Horizon
from experiments.results.statistics.medians import Bounds, MedianEstimate
from experiments.results.statistics.time_to_accuracy import AccuracyCurve
from experiments.results.tables.accuracy_tables import TargetRow, TargetTable
from experiments.results.tables.formats import time_unit

MAX_POINTS = 400
MAX_SEED_POINTS = 150  # of the thin line of a single seed

# The colours of Okabe and Ito, which colour-blind readers can tell apart; the reference arm is grey.
REFERENCE_COLOUR = "#555555"
ARM_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
SYMBOLS = ("circle", "diamond", "square", "cross")  # of dots, as the dashes of lines
DASHES = ("solid", "dash", "dot", "dashdot")  # the next one after every sixth arm
# For clusters: the colours of Okabe and Ito, then the muted ones of Tol.
CLUSTER_COLOURS = (
    *("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#332288"),
    *("#999933", "#882255", "#44AA99", "#AA4499", "#117733", "#DDCC77", "#661100", "#BBBBBB"),
)
NO_CLUSTER = "none"
"""What the legend of clusters calls being in none, as a client is that holds no data."""
NO_CLUSTER_COLOUR = "#FFFFFF"
OUTCOME_COLOURS = {"completed": "#009E73", "abandoned": "#B8C4CC", "dropped out": "#D55E00"}
INK = "#1f2933"
GRID = "#e4e7eb"
EVENT_COLOUR = "#E69F00"
TRANSPARENT = "rgba(0,0,0,0)"
"""The ground of every figure: that of the page, in light and in dark mode."""

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
"""What they are distances of, by representation."""

Curve = tuple[Floats, Floats]
Span = tuple[float, float]


@dataclass(frozen=True)
class Arm:
    """An arm to draw: the runs that are compared, their curves, and its index in the configuration."""

    name: str
    runs: Sequence[FinishedRun]
    curves: Sequence[AccuracyCurve]
    position: int

    @property
    def label(self) -> str:
        """The arm's name, escaped so that plotly shows it verbatim."""
        return verbatim(self.name)

    @property
    def colour(self) -> str:
        return arm_colour(self.position)

    @property
    def line(self) -> dict[str, Any]:
        return {"color": self.colour, "width": 2.5, "dash": DASHES[self._turn % len(DASHES)]}

    @property
    def symbol(self) -> str:
        """The symbol of the arm's dots, which tells it from another arm of its colour."""
        return SYMBOLS[self._turn % len(SYMBOLS)]

    @property
    def _turn(self) -> int:
        """How many times the colours were all used up by the arms before this one."""
        return max(self.position - 1, 0) // len(ARM_COLOURS)


def verbatim(text: str) -> str:
    """The text, escaped so that plotly shows it as it is: plotly's texts are pseudo-HTML or templates."""
    # Quotes stay: plotly does not know their entities, and outside a tag they need no escape.
    return html.escape(text, quote=False).replace("%{", "%&#123;")


def arm_colour(position: int) -> str:
    """The colour of the arm at that position in the configuration; the first, the reference, is grey."""
    return REFERENCE_COLOUR if position == 0 else ARM_COLOURS[(position - 1) % len(ARM_COLOURS)]


def accuracy_figure(arms: Sequence[Arm], horizon: Horizon, targets: Sequence[float]) -> PlainFigure:
    """Smoothed accuracy (%) against virtual time: thick lines are means over seeds, thin lines single seeds.

    The start and end of the comparison, mass events and targets are marked.
    """
    seconds, unit = time_unit(horizon.longest_s)
    figure = blank_figure(460, x_title=f"virtual time ({unit})", y_title="mean client accuracy (%)")
    for arm in arms:
        curves = [(curve.times_s / seconds, 100 * curve.smoothed) for curve in arm.curves]
        for x, y in curves if len(curves) > 1 else []:
            drawn = thinned(len(x), MAX_SEED_POINTS)
            figure.add_scatter(
                x=x[drawn],
                y=y[drawn],
                mode="lines",
                line={**arm.line, "width": 0.8},
                opacity=0.45,
                **_quiet(arm),
            )
        grid, mean, _, _ = spread(curves)
        figure.add_scatter(x=grid, y=mean, mode="lines", name=arm.label, legendgroup=arm.name, line=arm.line)
    figure.update_xaxes(rangemode="tozero")
    mark_events(figure, [(first_s / seconds, last_s / seconds) for first_s, last_s in _events(arms, horizon)])
    for time_s, text in ((horizon.start_s, "start"), (horizon.horizon_s, "horizon")):
        figure.add_vline(
            x=time_s / seconds,
            line={"color": INK, "width": 1.2, "dash": "dot"},
            note={"text": text, "textangle": -90, "font": {"size": 12}},
        )
    for target in targets:
        figure.add_hline(y=100 * target, line={"color": INK, "width": 1.2, "dash": "dash"})
        figure.add_annotation(
            x=1,
            xref="x domain",
            xanchor="left",
            xshift=6,
            align="left",
            y=100 * target,
            text=f"target<br>{100 * target:.1f} %",
            showarrow=False,
        )
    figure.update_layout(margin={"r": 112})
    return figure


def below_figure(arms: Sequence[Arm], tables: Sequence[TargetTable], horizon: Horizon) -> PlainFigure:
    """The time below a target against the target: medians over seeds, with their intervals as bands.

    Here and in `speedup_figure`, two seeds have dots instead of a band, and one seed has neither.
    """
    seconds, unit = time_unit(horizon.horizon_s)
    figure = blank_figure(420, x_title="target accuracy (%)", y_title=f"time below the target ({unit})")
    for arm in arms:
        estimates = [row.time_below_s for row in _rows_of(arm, tables)]
        _add_intervals(figure, arm, tables, estimates, seconds)
        y = [estimate.median.low / seconds for estimate in estimates]
        figure.add_scatter(
            x=_targets(tables), y=y, mode="lines", name=arm.label, legendgroup=arm.name, line=arm.line
        )
    figure.update_yaxes(rangemode="tozero")
    return figure


def speedup_figure(arms: Sequence[Arm], tables: Sequence[TargetTable]) -> PlainFigure:
    """The speed-up to a target against the target, on a logarithmic axis; `arms` begins with the reference.

    Lines are medians that are known exactly. Triangles that point up are lower bounds of medians, triangles
    that point down are upper bounds, vertical bars are medians with both.
    """
    figure = blank_figure(420, x_title="target accuracy (%)", y_title="speed-up")
    for arm in arms[1:]:
        estimates = [row.speedup for row in _rows_of(arm, tables) if row.speedup is not None]
        _add_intervals(figure, arm, tables, estimates, 1.0, above_zero=True)
        medians = [estimate.median for estimate in estimates]
        for x, bounds in zip(_targets(tables), medians, strict=True):
            if bounds.status == "range":
                figure.add_scatter(
                    x=[x, x], y=[bounds.low, bounds.high], mode="lines", line=arm.line, **_quiet(arm)
                )
        known = [bounds.low if bounds.status == "=" else None for bounds in medians]
        figure.add_scatter(
            x=_targets(tables), y=known, mode="lines", name=arm.label, legendgroup=arm.name, line=arm.line
        )
        for status, symbol in ((">=", "triangle-up"), ("<=", "triangle-down")):
            bounded = [
                (x, bounds.low if status == ">=" else bounds.high)
                for x, bounds in zip(_targets(tables), medians, strict=True)
                if bounds.status == status
            ]
            if bounded:
                figure.add_scatter(
                    x=[x for x, _ in bounded],
                    y=[y for _, y in bounded],
                    mode="markers",
                    marker={"symbol": symbol, "size": 7, "color": arm.colour},
                    hovertemplate=f"{arm.label}: {status} %{{y:.3g}}x<extra></extra>",
                    legendgroup=arm.name,
                    showlegend=False,
                )
    figure.add_hline(y=1, line={"color": INK, "width": 1.2, "dash": "dash"})
    figure.update_yaxes(type="log")
    return figure


def client_distance(run: FinishedRun) -> str:
    """The distance between clients that a run logged, as its header states it."""
    measure = run.header.get("client_distance", {"kind": "label", "distance": "l1"})
    kind, distance = measure["kind"], measure["distance"]
    return f"{DISTANCES.get(distance, distance)} of {VECTORS.get(kind, kind)}"


def heterogeneity_figure(arms: Sequence[Arm]) -> PlainFigure:
    """Mean client distance over rounds, for each arm, and with all clients in one cluster.

    Triangles mark the rounds of global re-clusterings.
    """
    measure = verbatim(client_distance(arms[0].runs[0]))
    figure = blank_figure(440, x_title="round", y_title=f"mean client distance ({measure})")
    unclustered = _by_round(arms[0].runs, lambda record: record.unclustered_distance)
    for arm in arms:
        curves = _by_round(arm.runs, lambda record: record.mean_client_distance)
        if not curves:
            continue
        grid, mean = _add_spread(figure, arm, curves)
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


def membership_figure(run: FinishedRun) -> PlainFigure:
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
        colorscale=_steps(colours),
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


def durations_figure(arms: Sequence[Arm]) -> PlainFigure:
    """Durations of rounds in virtual time: a violin per arm over the rounds of all its seeds."""
    durations = [_durations(arm.runs) for arm in arms]
    seconds, unit = time_unit(max(float(np.median(values)) for values in durations))
    figure = blank_figure(130 + 75 * len(arms), x_title=f"duration of a round ({unit})", y_title="")
    for arm, values in zip(arms, durations, strict=True):
        figure.add_violin(
            x=np.quantile(values, np.linspace(0, 1, MAX_POINTS)) / seconds,
            name=arm.label,
            orientation="h",
            line={"color": arm.colour},
            box={"visible": True},
            meanline={"visible": True},
            points=False,
            spanmode="hard",
            width=0.9,
        )
    figure.update_layout(showlegend=False)
    figure.update_xaxes(rangemode="tozero")
    figure.update_yaxes(autorange="reversed", showgrid=False)
    return figure


def outcomes_figure(arms: Sequence[Arm]) -> PlainFigure:
    """The mean number of participants per round that completed, were abandoned or dropped out, by arm."""
    figure = blank_figure(130 + 48 * len(arms), x_title="participants per round (mean)", y_title="")
    for outcome, colour in OUTCOME_COLOURS.items():
        figure.add_bar(
            x=[_per_round(arm.runs)[outcome] for arm in arms],
            y=[arm.label for arm in arms],
            name=outcome,
            orientation="h",
            marker={"color": colour},
            texttemplate="%{x:.1f}",
            textposition="inside",
            insidetextanchor="middle",
            textangle=0,
            hovertemplate=f"%{{y}}: %{{x:.2f}} {outcome} per round<extra></extra>",
        )
    figure.update_layout(barmode="stack", legend={"traceorder": "normal"})
    figure.update_yaxes(autorange="reversed", showgrid=False)
    return figure


def clustered_run(arm: Arm) -> FinishedRun | None:
    """The arm's first run that has more than one cluster in some round; None if there is no such run."""
    return next(
        (
            run
            for run in arm.runs
            if num_clients(run) and any(len(record.clusters) > 1 for record in run.records)
        ),
        None,
    )


def num_clients(run: FinishedRun) -> int:
    """The number of clients of a run, by the memberships in its first record; 0 if it has none."""
    members = run.records[0].members
    return 0 if members is None else len(members)


def is_thinned(run: FinishedRun) -> bool:
    """Whether the heat map of `run` leaves out clients or rounds."""
    return num_clients(run) > MAX_POINTS or len(run.records) > MAX_POINTS


def mark_events(figure: PlainFigure, spans: Sequence[Span]) -> None:
    """Mark each mass event by a band from the first to the last x at which it began."""
    for first, last in spans:
        figure.add_vrect(
            x0=first,
            x1=last,
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


def _add_spread(figure: PlainFigure, arm: Arm, curves: Sequence[Curve]) -> tuple[Floats, Floats]:
    """Draw the mean of an arm's curves in a band from the lowest seed to the highest; return (grid, mean)."""
    grid, mean, low, high = spread(curves)
    shared = {"legendgroup": arm.name, "hoverinfo": "skip", "showlegend": False, "line": {"width": 0}}
    if len(curves) > 1:
        figure.add_scatter(x=grid, y=low, mode="lines", **shared)
        figure.add_scatter(
            x=grid, y=high, mode="lines", fill="tonexty", fillcolor=translucent(arm.colour), **shared
        )
    figure.add_scatter(x=grid, y=mean, mode="lines", name=arm.label, legendgroup=arm.name, line=arm.line)
    return grid, mean


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


def _add_intervals(
    figure: PlainFigure,
    arm: Arm,
    tables: Sequence[TargetTable],
    estimates: Sequence[MedianEstimate],
    divisor: float,
    above_zero: bool = False,
) -> None:
    """Draw the intervals of medians as a band; if there are two seeds, draw their values as dots instead.

    The band is interrupted where an interval has an infinite bound or, if `above_zero`, reaches 0.
    """
    x = _targets(tables)
    for stretch in _stretches([_can_be_drawn(estimate.interval, above_zero) for estimate in estimates]):
        intervals = [estimates[index].interval for index in stretch]
        lows = [interval.low / divisor for interval in intervals if interval is not None]
        highs = [interval.high / divisor for interval in intervals if interval is not None]
        shared = {"x": [x[index] for index in stretch], "mode": "lines", **_quiet(arm)}
        figure.add_scatter(y=lows, line={"width": 0}, **shared)
        figure.add_scatter(
            y=highs, line={"width": 0}, fill="tonexty", fillcolor=translucent(arm.colour), **shared
        )
    dots = [
        (x[index], seed.low / divisor)
        for index, estimate in enumerate(estimates)
        if estimate.interval is None and len(estimate.per_seed) > 1
        for seed in estimate.per_seed
        if seed.status == "="
    ]
    if dots:
        figure.add_scatter(
            x=[target for target, _ in dots],
            y=[value for _, value in dots],
            mode="markers",
            marker={"size": 3, "color": arm.colour},
            **_quiet(arm),
        )


def _stretches(present: Sequence[bool]) -> list[list[int]]:
    """The indices of each run of consecutive True values.

    >>> _stretches([True, True, False, True])
    [[0, 1], [3]]
    """
    stretches: list[list[int]] = []
    for index, is_present in enumerate(present):
        if is_present and index and present[index - 1]:
            stretches[-1].append(index)
        elif is_present:
            stretches.append([index])
    return stretches


def _can_be_drawn(bounds: Bounds | None, above_zero: bool) -> bool:
    if bounds is None or not math.isfinite(bounds.high):
        return False
    return bounds.low > 0 if above_zero else math.isfinite(bounds.low)


def _rows_of(arm: Arm, tables: Sequence[TargetTable]) -> list[TargetRow]:
    return [next(row for row in table.rows if row.arm == arm.name) for table in tables]


def _targets(tables: Sequence[TargetTable]) -> list[float]:
    return [100 * float(table.target) for table in tables]


def _quiet(arm: Arm) -> dict[str, Any]:
    return {"legendgroup": arm.name, "hoverinfo": "skip", "showlegend": False}


def _events(arms: Sequence[Arm], horizon: Horizon) -> list[Span]:
    return event_spans([horizon.events_s(run) for arm in arms for run in arm.runs])


def event_spans(by_run: Sequence[Sequence[float]]) -> list[Span]:
    """(first, last) virtual time at which the round of each mass event opened, over all runs.

    `by_run` has the virtual times of each run's events, ascending.
    """
    num_events = max((len(events_s) for events_s in by_run), default=0)
    by_event = [
        [events_s[event] for events_s in by_run if event < len(events_s)] for event in range(num_events)
    ]
    return [(min(openings_s), max(openings_s)) for openings_s in by_event]


def _by_round(runs: Sequence[FinishedRun], value: Callable[[RoundRecord], float | None]) -> list[Curve]:
    """(rounds, values) of each run, over the rounds in which `value` is not None.

    A run without such a round has no curve.
    """
    curves = []
    for run in runs:
        measured = [(record.round, value(record)) for record in run.records if value(record) is not None]
        if measured:
            rounds, values = np.array(measured, dtype=np.float64).T
            curves.append((rounds, values))
    return curves


def _memberships(run: FinishedRun, clients: Ints) -> tuple[Ints, Ints]:
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


def thinned(count: int, most: int = MAX_POINTS) -> Ints:
    """At most `most` indices in [0, count), ascending and evenly spread, with the first and the last."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.int64))


def _durations(runs: Sequence[FinishedRun]) -> Floats:
    return np.array([record.closed_s - record.opened_s for run in runs for record in run.records])


def _per_round(runs: Sequence[FinishedRun]) -> dict[str, float]:
    records = [record for run in runs for record in run.records]
    totals = {
        "completed": sum(len(record.completed) for record in records),
        "abandoned": sum(record.abandoned for record in records),
        "dropped out": sum(len(record.dropped) for record in records),
    }
    return {outcome: total / len(records) for outcome, total in totals.items()}


def _steps(colours: Sequence[str]) -> list[tuple[float, str]]:
    """A plotly colour scale with one step for each colour, all of equal width."""
    edges = np.linspace(0, 1, len(colours) + 1)
    return [(float(edge), colour) for i, colour in enumerate(colours) for edge in edges[i : i + 2]]


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


def translucent(colour: str) -> str:
    """The colour of a band in the colour `colour`, such as "#0072B2"."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.16)"
