"""Lists below a figure from which a reader chooses what is drawn; plotly draws them, without a script."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from emulator.storage.runlog import RoundRecord
from experiments.results.drawing.arms import Arm
from experiments.results.drawing.plain_figure import PlainFigure, Trace

ROW_PX = 46
"""Height of a row with a list or a slider."""


def add_below(figure: PlainFigure, px: int, **properties: Any) -> None:
    """Set properties of the layout that are drawn below the figure, which gets higher by `px`."""
    bottom = figure.layout["margin"]["b"] + px
    figure.update_layout(**properties, height=figure.layout["height"] + px, margin={"b": bottom})


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
    add_below(figure, ROW_PX, updatemenus=[menu])


def add_choices(
    figure: PlainFigure, choices: Sequence[tuple[str, Iterable[Trace]]], *, shown: int = 0
) -> None:
    """Add the traces of all choices, of which one is visible, and a list that chooses it, if there are two.

    Args:
        figure: The figure.
        choices: The label and the traces of each choice.
        shown: The index of the choice that is visible at first.
    """
    choice_of: list[int] = []
    for index, (_, traces) in enumerate(choices):
        for trace in traces:
            figure.add_traces([{**trace, "visible": index == shown}])
            choice_of.append(index)
    if len(choices) < 2:
        return
    buttons = [
        {
            "label": label,
            "method": "restyle",
            "args": [{"visible": [chosen == index for chosen in choice_of]}],
        }
        for index, (label, _) in enumerate(choices)
    ]
    add_list(figure, buttons, shown=shown)


def list_clause(arms: Sequence[Arm]) -> str:
    """A clause on the list of arms; empty for a single arm."""
    return "; the list below the plot chooses the arm" if len(arms) > 1 else ""


def shown_at_first(arms: Sequence[Arm], has: Callable[[RoundRecord], bool]) -> int:
    """The index of the last arm with a record of which `has` is true; 0 if there is none."""
    found = [
        index for index, arm in enumerate(arms) if any(has(item) for run in arm.runs for item in run.records)
    ]
    return found[-1] if found else 0
