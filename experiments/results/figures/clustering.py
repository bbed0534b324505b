"""Figures on global clusterings: what the trigger compared, and how well each number of clusters fits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from emulator.arrays import Floats, Ints
from emulator.storage.runlog import RoundRecord
from experiments.results.drawing.menus import add_list_of_arms
from experiments.results.drawing.plain_figure import PlainFigure
from experiments.results.figures.figures import (
    MAX_POINTS,
    MAX_SEED_POINTS,
    NO_CLUSTER_COLOUR,
    Arm,
    blank_figure,
    thinned,
)
from experiments.results.reading.run_directory import FinishedRun
from experiments.results.statistics.trigger_limits import limit, measured

VALUE_COLOUR, LIMIT_COLOUR, FIRED_COLOUR, TRIED_COLOUR = "#0072B2", "#D55E00", "#CC79A7", "#9aa5b1"
MOST_CLUSTERINGS = 40
"""Most global clusterings of which all silhouettes are drawn, per arm."""


def has_trigger(run: FinishedRun) -> bool:
    """Whether a trigger was evaluated in some round."""
    return any(record.trigger is not None for record in run.records)


def trigger_figure(arms: Sequence[Arm], *, squared: Mapping[str, bool] | None = None) -> PlainFigure:
    """What the trigger of an arm measured, its limit, and the rounds in which it fired, over rounds.

    One arm is shown at a time, at first the last one whose trigger fired; a list below the figure chooses it.
    Thin lines are single seeds.

    Args:
        arms: Arms with a trigger; at least one.
        squared: Whether the distances of an arm's clusterer are squared, by the arm's name; by default none
            are.
    """
    figure = blank_figure(420, x_title="round", y_title="distance")
    drawn_for: list[str] = []
    shown = _shown(arms, lambda record: record.trigger is not None and record.trigger.fired)
    for arm in arms:
        are_squared = (squared or {}).get(arm.name, False)
        fired: list[tuple[int, float]] = []
        for number, run in enumerate(arm.runs):
            evaluated = [(record.round, record.trigger) for record in run.records if record.trigger]
            if not evaluated:
                continue
            rounds = np.array([round_ for round_, _ in evaluated])
            values = _floats([measured(trigger) for _, trigger in evaluated])
            limits = _floats([limit(trigger, are_squared=are_squared) for _, trigger in evaluated])
            is_fired = np.array([trigger.fired for _, trigger in evaluated])
            # A trigger with a single cluster may fire without a distance: its mark is at 0.
            heights = np.nan_to_num(values)[is_fired].tolist()
            fired += zip(rounds[is_fired].tolist(), heights, strict=True)
            drawn = thinned(len(rounds), MAX_SEED_POINTS)
            for name, y, colour, dash in (
                ("measured", values, VALUE_COLOUR, "solid"),
                ("limit", limits, LIMIT_COLOUR, "dash"),
            ):
                figure.add_scatter(
                    x=_small(rounds[drawn]),
                    y=y[drawn].astype(np.float32),
                    name=name,
                    legendgroup=name,
                    showlegend=number == 0,
                    visible=arm is arms[shown],
                    mode="lines+markers",
                    line={"color": colour, "width": 1, "dash": dash},
                    marker={"size": 3},
                    hovertemplate=f"seed {run.seed}, round %{{x}}: {name} %{{y:.4g}}<extra></extra>",
                )
                drawn_for.append(arm.label)
        marked = [fired[index] for index in _drawn(len(fired), MAX_POINTS)]
        figure.add_scatter(
            x=[round_ for round_, _ in marked],
            y=[round(height, 6) for _, height in marked],
            name="fired",
            showlegend=True,
            visible=arm is arms[shown],
            mode="markers",
            marker={"symbol": "triangle-down", "size": 10, "color": FIRED_COLOUR},
            hovertemplate="round %{x}: fired at %{y:.4g}<extra></extra>",
        )
        drawn_for.append(arm.label)
    figure.update_yaxes(rangemode="tozero")
    figure.update_xaxes(rangemode="tozero")
    add_list_of_arms(figure, [arm.label for arm in arms], drawn_for, shown)
    return figure


def chosen_silhouette(record: RoundRecord) -> float | None:
    """The silhouette of the number of clusters in force at the end of the round; None if it has none."""
    return (record.silhouettes or {}).get(len(record.clusters))


def has_silhouettes(run: FinishedRun) -> bool:
    """Whether silhouettes were computed in some round."""
    return any(record.silhouettes for record in run.records)


def silhouettes_figure(arms: Sequence[Arm]) -> PlainFigure:
    """The number of clusters over rounds, and above it the silhouettes of the numbers that were tried.

    One arm is shown at a time, at first the last one that re-clustered globally; a list below the figure
    chooses it. Lines and diamonds are of single seeds; small
    dots are all numbers of clusters tried at a global clustering of the first seed.
    """
    figure = blank_figure(560, x_title="round", y_title="clusters (k)")
    drawn_for: list[str] = []
    shown = _shown(arms, lambda record: record.reclustered)

    def add(arm: Arm, **properties: Any) -> None:
        figure.add_scatter(visible=arm is arms[shown], **properties)
        drawn_for.append(arm.label)

    for arm in arms:
        rounds, tried, values = _tried(arm.runs[0].records)
        add(
            arm,
            x=_small(rounds),
            y=values.astype(np.float32),
            yaxis="y2",
            customdata=_small(tried),
            mode="markers",
            name="every k tried",
            marker={"size": 4, "color": TRIED_COLOUR},
            hovertemplate=f"seed {arm.runs[0].seed}, round %{{x}}: k = %{{customdata}}, silhouette %{{y:.3f}}"
            "<extra></extra>",
        )
        for number, run in enumerate(arm.runs):
            clustered = [record for record in run.records if chosen_silhouette(record) is not None]
            clustered = [clustered[index] for index in _drawn(len(clustered), MAX_SEED_POINTS)]
            shared = {"legendgroup": "k", "showlegend": number == 0}
            add(
                arm,
                x=_small(np.array([record.round for record in clustered], dtype=np.int64)),
                y=_floats([chosen_silhouette(record) for record in clustered]).astype(np.float32),
                yaxis="y2",
                customdata=_small(np.array([len(record.clusters) for record in clustered], dtype=np.int64)),
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
                **shared,
            )
            changed, counts = _cluster_counts(run.records)
            add(
                arm,
                x=_small(changed),
                y=_small(counts),
                mode="lines",
                line={"color": VALUE_COLOUR, "width": 1.2, "shape": "hv"},
                hovertemplate=f"seed {run.seed}, round %{{x}}: %{{y}} clusters<extra></extra>",
                legendgroup="k",
                showlegend=False,
            )
    lower = deepcopy(figure.layout["yaxis"])
    figure.update_layout(
        yaxis={"domain": [0, 0.44], "rangemode": "tozero"},
        yaxis2={**lower, "domain": [0.56, 1], "anchor": "x", "title": {"text": "silhouette"}},
    )
    figure.update_xaxes(rangemode="tozero")
    add_list_of_arms(figure, [arm.label for arm in arms], drawn_for, shown)
    return figure


def _tried(records: Sequence[RoundRecord]) -> tuple[Ints, Ints, Floats]:
    """(rounds, k, silhouettes) of every k tried, at `MOST_CLUSTERINGS` evenly spread global clusterings."""
    clusterings = [record for record in records if record.silhouettes]
    rows = [
        (clusterings[index].round, k, value)
        for index in _drawn(len(clusterings), MOST_CLUSTERINGS)
        for k, value in (clusterings[index].silhouettes or {}).items()
        if value is not None
    ]
    rounds, tried, values = zip(*rows, strict=True) if rows else ((), (), ())
    return np.array(rounds, dtype=np.int64), np.array(tried, dtype=np.int64), np.array(values, dtype=float)


def _cluster_counts(records: Sequence[RoundRecord]) -> tuple[Ints, Ints]:
    """(rounds, numbers of clusters) where the number changed, with the first and the last round; thinned."""
    counts = np.array([len(record.clusters) for record in records], dtype=np.int64)
    kept = np.flatnonzero(np.concatenate(([True], np.diff(counts) != 0)))
    kept = np.union1d(kept, [len(counts) - 1])
    kept = kept[thinned(len(kept), MAX_SEED_POINTS)]
    return np.array([record.round for record in records], dtype=np.int64)[kept], counts[kept]


def _shown(arms: Sequence[Arm], has: Callable[[RoundRecord], bool]) -> int:
    """The index of the last arm with a record of which `has` is true; 0 if there is none."""
    found = [
        index for index, arm in enumerate(arms) if any(has(item) for run in arm.runs for item in run.records)
    ]
    return found[-1] if found else 0


def _drawn(count: int, most: int) -> list[int]:
    """At most `most` indices in [0, count), evenly spread; none if `count` is 0."""
    return thinned(count, most).tolist() if count else []


def _floats(values: Sequence[float | None]) -> Floats:
    """The values, NaN for None."""
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _small(values: Ints) -> Ints:
    """The whole numbers in the smallest type that holds them, which makes the page smaller."""
    most = int(values.max(initial=0))
    small: Ints = values.astype(np.uint8 if most < 2**8 else np.uint16 if most < 2**16 else np.int32)
    return small
