"""Lists below a figure from which a reader chooses what is drawn; plotly draws them, without a script."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments.results.drawing.plain_figure import PlainFigure

ROW_PX = 46
"""Height of a row with a list or a slider."""


def add_list(
    figure: PlainFigure, buttons: Sequence[dict[str, Any]], *, rows_above: int = 0, shown: int = 0
) -> None:
    """Add a list with these plotly buttons below the figure, which gets higher by `ROW_PX`.

    Args:
        figure: The figure.
        buttons: What the list chooses from.
        rows_above: Pixels of rows that are already between the axis and the list.
        shown: The index of the button whose state is drawn at first.
    """
    bottom = figure.layout["margin"]["b"] + ROW_PX
    menu = {
        "buttons": list(buttons),
        "active": shown,
        "direction": "up",
        "showactive": True,
        "x": 0,
        "xanchor": "left",
        "y": 0,
        "yanchor": "top",
        "pad": {"t": 64 + rows_above},
        "font": {"size": 13},
    }
    figure.update_layout(updatemenus=[menu], height=figure.layout["height"] + ROW_PX, margin={"b": bottom})


def add_list_of_arms(
    figure: PlainFigure, labels: Sequence[str], drawn_for: Sequence[str], shown: int
) -> None:
    """Add a list of arms that shows the traces of one arm and hides the others; none for a single arm.

    Args:
        figure: The figure.
        labels: The arms to choose from.
        drawn_for: For each trace, the arm that it belongs to.
        shown: The index of the arm whose traces are visible.
    """
    if len(labels) < 2:
        return
    add_list(
        figure,
        [
            {
                "label": label,
                "method": "restyle",
                "args": [{"visible": [drawn == label for drawn in drawn_for]}],
            }
            for label in labels
        ],
        shown=shown,
    )
