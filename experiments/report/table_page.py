"""`table.html`: the table over the experiments of a folder, as a page that contacts no host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from experiments.report.cells import NOTHING, compared, models
from experiments.report.environment import template

TITLES = {
    "accuracy_omitting_drift": "Accuracy (%), omitting drift cells",
    "accuracy_including_drift": "Accuracy (%), including drift cells",
}


def render_table(table: Mapping[str, Any]) -> str:
    """The page of a table of `table.json`; the same table gives the same bytes."""
    columns = [
        {**column, "link": None if column["report"] is None else quote(column["report"])}
        for column in table["experiments"]
    ]
    return template("table.html").render(
        name=table["name"],
        columns=columns,
        unfinished=[column for column in columns if column["finished"] < column["planned"]],
        accuracies=[
            (
                title,
                [
                    (arm, [accuracy_cell(table, figure, arm, column["name"]) for column in columns])
                    for arm in table["arms"]
                ],
            )
            for figure, title in TITLES.items()
        ],
        models=[
            (arm, [models_cell(table, arm, column["name"]) for column in columns]) for arm in table["arms"]
        ],
    )


def accuracy_cell(table: Mapping[str, Any], figure: str, arm: str, column: str) -> tuple[str, str, str]:
    """(ours, published, difference) as they are written; a dash where the arm was not measured there."""
    cell = table["figures"][figure].get(arm, {}).get(column)
    return (NOTHING, "", "") if cell is None else compared(cell)


def models_cell(table: Mapping[str, Any], arm: str, column: str) -> str:
    sent, relative = (
        table["figures"][figure].get(arm, {}).get(column)
        for figure in ("models_sent", "relative_models_sent")
    )
    return NOTHING if sent is None else models(sent, relative)
