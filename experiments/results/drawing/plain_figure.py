"""Figures as plotly's JSON has them: traces and a layout, in plain dictionaries.

Pages are drawn from these, since plotly's own classes check every property as it is set, which took half the
time of a report. `validated` makes plotly's figure, with these checks; tests draw every figure by it.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from emulator.arrays import Floats, Floats32, Ints

if TYPE_CHECKING:
    import plotly.graph_objects as go

Trace = dict[str, Any]

TEMPLATE = {"data": {"scatter": [{"type": "scatter"}]}}
"""Plotly's template "none": no style but that of the figure itself."""

_NUMBERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "float32", "float64")
SHORT_TYPES = dict(zip(_NUMBERS, ("i1", "u1", "i2", "u2", "i4", "u4", "f4", "f8"), strict=True))
"""Plotly.js's names of the types of numbers that it reads from base64."""

SMALLER_TYPES = (np.int8, np.int16, np.int32)


class PlainFigure:
    """A plotly figure: `data` has its traces, `layout` the rest. Properties that are None are left out."""

    def __init__(self, **layout: Any) -> None:
        self.data: list[Trace] = []
        self.layout: dict[str, Any] = {"template": TEMPLATE, **layout}

    # -- traces --------------------------------------------------------------------------------------------

    def add_scatter(self, **properties: Any) -> None:
        self.add_traces([trace("scatter", **properties)])

    def add_bar(self, **properties: Any) -> None:
        self.add_traces([trace("bar", **properties)])

    def add_heatmap(self, **properties: Any) -> None:
        self.add_traces([trace("heatmap", **properties)])

    def add_violin(self, **properties: Any) -> None:
        self.add_traces([trace("violin", **properties)])

    def add_traces(self, traces: Sequence[Trace]) -> None:
        self.data.extend(traces)

    # -- the layout ----------------------------------------------------------------------------------------

    def update_layout(self, **properties: Any) -> None:
        """Set properties of the layout; those of a dictionary are merged with what it has."""
        _merge(self.layout, _without_none(properties))

    def relayout(self, properties: Mapping[str, Any]) -> None:
        """Set properties by their paths, as plotly.js's `relayout` does: `{"xaxis.range": [0, 1]}`."""
        for path, value in properties.items():
            *outer, last = path.split(".")
            target = self.layout
            for key in outer:
                target = target.setdefault(key, {})
            target[last] = value

    def update_xaxes(self, **properties: Any) -> None:
        self._update_axes("xaxis", properties)

    def update_yaxes(self, **properties: Any) -> None:
        self._update_axes("yaxis", properties)

    def _update_axes(self, letter: str, properties: dict[str, Any]) -> None:
        for key in [key for key in self.layout if key.startswith(letter)]:
            self.update_layout(**{key: properties})

    # -- marks ---------------------------------------------------------------------------------------------

    def add_hline(self, y: float, line: Mapping[str, Any]) -> None:
        """A horizontal line at `y`, across the whole plot."""
        self.add_shape(type="line", line=line, x0=0, x1=1, xref="x domain", y0=y, y1=y, yref="y")

    def add_vline(self, x: float, line: Mapping[str, Any], note: Mapping[str, Any] | None = None) -> None:
        """A vertical line at `x` over the whole height, with a note at its foot, on its right."""
        self.add_shape(type="line", line=line, x0=x, x1=x, xref="x", **_WHOLE_HEIGHT)
        if note is not None:
            self.add_annotation(**note, x=x, xanchor="left", **_AT_THE_FOOT)

    def add_vrect(
        self, x0: float, x1: float, note: Mapping[str, Any] | None = None, **properties: Any
    ) -> None:
        """A band from `x0` to `x1` over the whole height, with a note at its foot, inside on the right."""
        self.add_shape(type="rect", x0=x0, x1=x1, xref="x", **_WHOLE_HEIGHT, **properties)
        if note is not None:
            self.add_annotation(**note, x=x1, xanchor="right", **_AT_THE_FOOT)

    def add_shape(self, **properties: Any) -> None:
        self.layout.setdefault("shapes", []).append(properties)

    def add_annotation(self, **properties: Any) -> None:
        self.layout.setdefault("annotations", []).append(_without_none(properties))

    def with_texts(self, tell: Callable[[Any], Any]) -> PlainFigure:
        """The same figure with what `tell` makes of the texts of its traces and its layout."""
        figure = PlainFigure()
        figure.data, figure.layout = tell(self.data), tell(self.layout)
        return figure

    # -- results -------------------------------------------------------------------------------------------

    def validated(self) -> go.Figure:
        """Plotly's figure of the same content; ValueError if plotly has no such property or value."""
        import plotly.graph_objects as go

        return go.Figure(self.data, self.layout)

    def content(self) -> dict[str, Any]:
        """The traces and the layout with arrays as plotly.js reads them."""
        return {"data": _encoded(self.data), "layout": _encoded(self.layout)}

    def to_html(self, div_id: str, config: Mapping[str, Any]) -> str:
        """The HTML element with this id, and the script that draws the figure in it.

        As plotly's own `to_html`, without its white space and its checks, 300 bytes of each figure. Plotly's
        JSON has no `<`, `>` or `/`, so that no text ends the script.
        """
        from plotly.io.json import to_json_plotly

        content = self.content()
        arguments = ",".join(to_json_plotly(part) for part in (content["data"], content["layout"], config))
        height = f"{self.layout['height']}px" if "height" in self.layout else "100%"
        return (
            f'<div style="height:{height}; width:100%;">'
            f'<div id="{div_id}" class="plotly-graph-div" style="height:100%; width:100%;"></div>'
            f'<script>Plotly.newPlot("{div_id}",{arguments})</script></div>'
        )


_WHOLE_HEIGHT = {"y0": 0, "y1": 1, "yref": "y domain"}
_AT_THE_FOOT = {"xref": "x", "y": 0, "yref": "y domain", "yanchor": "bottom", "showarrow": False}


def trace(kind: str, /, **properties: Any) -> Trace:
    """A trace of that kind, such as "scatter"."""
    return {"type": kind, **_without_none(properties)}


def floats(values: Sequence[float | None]) -> Floats:
    """The values, NaN for None."""
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def single(values: Floats) -> Floats32:
    """The values in single precision, which halves the page; those beyond 3e38 are drawn there."""
    return np.clip(values, -3e38, 3e38).astype(np.float32)


def small(numbers: Sequence[int] | Ints) -> Ints:
    """The whole numbers in the smallest type that holds them, which makes the page smaller."""
    values = np.asarray(numbers, dtype=np.int64)
    most = int(values.max(initial=0))
    small: Ints = values.astype(np.uint8 if most < 2**8 else np.uint16 if most < 2**16 else np.int32)
    return small


def typed_array(values: np.ndarray[Any, Any]) -> Any:
    """An array as plotly.js reads it from JSON: its type and its bytes in base64, with the shape of a matrix.

    Integers of 64 bits are stored in the smallest type that holds them. Arrays that are empty, or not of
    numbers, are lists.

    >>> typed_array(np.array([1, 2, 300]))
    {'dtype': 'i2', 'bdata': 'AQACACwB'}
    """
    if values.dtype == np.int64 and values.size:
        smaller = (
            kind
            for kind in SMALLER_TYPES
            if np.iinfo(kind).min <= values.min() and values.max() <= np.iinfo(kind).max
        )
        values = values.astype(next(smaller, np.int64))
    if not values.size or str(values.dtype) not in SHORT_TYPES:
        return values.tolist()
    encoded = base64.b64encode(values.tobytes()).decode("ascii")
    shape = {"shape": str(values.shape)[1:-1]} if values.ndim > 1 else {}
    return {"dtype": SHORT_TYPES[str(values.dtype)], "bdata": encoded, **shape}


def _encoded(value: Any) -> Any:
    """The value with its arrays as `typed_array`."""
    if isinstance(value, Mapping):
        return {key: _encoded(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return typed_array(value)
    if isinstance(value, list | tuple) and any(isinstance(item, Mapping | list | tuple) for item in value):
        return [_encoded(item) for item in value]
    return value


def _without_none(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _without_none(value) if isinstance(value, Mapping) else value
        for key, value in properties.items()
        if value is not None
    }


def _merge(target: dict[str, Any], properties: Mapping[str, Any]) -> None:
    for key, value in properties.items():
        if isinstance(value, Mapping) and isinstance(target.get(key), dict):
            _merge(target[key], value)
        else:
            target[key] = value
