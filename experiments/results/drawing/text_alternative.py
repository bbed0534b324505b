"""Text alternatives of figures: what a figure shows and its main values, for readers who do not see it."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

import numpy as np

from emulator.arrays import Floats
from experiments.results.drawing.plain_figure import PlainFigure, Trace

MOST_NAMED = 30
"""Most lines, bars or groups of a figure that its text names."""


def text_alternative(title: str, figure: PlainFigure) -> str:
    """The title, the axes, and of each named line its first, last, lowest and highest value; without markup.

    Of bars it has their values, of distributions the quartiles, of a map the numbers of rows and columns.

    >>> figure = PlainFigure(xaxis={"title": {"text": "hours"}}, yaxis={"title": {"text": "%"}})
    >>> figure.add_scatter(x=[0, 1, 2], y=[40, 80, 60], name="static")
    >>> text_alternative("Accuracy", figure)
    'Accuracy. Horizontal axis: hours. Vertical axis: %. static: from 40 to 60, lowest 40, highest 80.'
    """
    axes = [
        f"{name} axis: {text}"
        for name, key in (("Horizontal", "xaxis"), ("Vertical", "yaxis"))
        if (text := figure.layout.get(key, {}).get("title", {}).get("text"))
    ]
    named = [
        described
        for trace in figure.data
        if trace.get("visible") is not False
        and trace.get("showlegend") is not False
        and (described := _described(trace))
    ]
    more = [f"and {len(named) - MOST_NAMED} more"] if len(named) > MOST_NAMED else []
    sentences = [title, *axes, *named[:MOST_NAMED], *more]
    plain = (html.unescape(sentence.replace("<br>", ", ")) for sentence in sentences)
    return " ".join(sentence if sentence.endswith(("?", "!", ".")) else f"{sentence}." for sentence in plain)


def _described(trace: Trace) -> str:
    """The content of a trace in words; empty if it has no name or no values."""
    kind, name = trace["type"], trace.get("name")
    if kind == "heatmap" and "z" in trace:
        rows, columns = np.shape(trace["z"])[:2]
        return f"Map of {rows:,} rows and {columns:,} columns"
    is_horizontal = kind in ("bar", "violin", "box") and trace.get("orientation") == "h"
    values = _numbers(trace.get("x" if is_horizontal else "y"))
    if name is None or not len(values):
        return ""
    if kind == "bar" or (kind == "scatter" and trace.get("mode") == "markers" and _has_groups(trace)):
        keys = [str(key) for key in trace["y" if is_horizontal else "x"]]
        shown = [f"{key} {value:.4g}" for key, value in zip(keys, values.tolist(), strict=False)]
        return f"{name}: {', '.join(shown[:MOST_NAMED])}"
    values = values[np.isfinite(values)]
    if kind in ("violin", "box"):
        low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
        return f"{name}: median {middle:.4g}, middle half from {low:.4g} to {high:.4g}"
    ends = f"from {values[0]:.4g} to {values[-1]:.4g}"
    return f"{name}: {ends}, lowest {values.min():.4g}, highest {values.max():.4g}"


def _has_groups(trace: Trace) -> bool:
    """Whether the horizontal axis has names of groups, not numbers."""
    return "x" in trace and all(isinstance(name, str) for name in trace["x"])


def _numbers(values: Sequence[Any] | None) -> Floats:
    """The values as numbers, NaN where one is missing; empty if none is finite, or if they are no numbers."""
    present = [] if values is None else [np.nan if value is None else value for value in values]
    try:
        numbers = np.array(present, dtype=np.float64)
    except (TypeError, ValueError):
        return np.array([])
    return numbers if np.isfinite(numbers).any() else np.array([])
