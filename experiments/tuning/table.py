"""The table of a tune: the scores of all settings, and what was chosen; as JSON, as Markdown and as rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from experiments.tuning.command import Tuned
from experiments.tuning.halving import WORST, setting_score
from experiments.tuning.rows import RATE, Row, Setting

DIVERGED = "diverged"

Cells = dict[str, object]


def table_rows(tuned: Tuned, seeds: Sequence[int]) -> list[Cells]:
    """A row of text for each learning rate of each arm, the values of its named number side by side."""
    return [cells for row in tuned.column.rows for cells in _of_row(tuned, row, seeds)]


def notes(tuned: Tuned, seeds: Sequence[int]) -> list[str]:
    """Lines below the table: the ties, the rival, and the runs, as trainings."""
    played, of = num_runs(tuned, seeds)
    ties = [
        f"{row}: {_shown(choice.setting)} is as good as {', '.join(map(_shown, choice.ties))}, and smaller"
        for row, choice in tuned.chosen.items()
        if choice is not None and choice.ties
    ]
    return [
        *ties,
        f"rival: {tuned.rival or DIVERGED}",
        f"trainings: {played} of the {of} of the whole grid ({100 * played / of:.0f} %)",
        f"written: {tuned.file}" if tuned.file is not None else "nothing was written",
    ]


def num_runs(tuned: Tuned, seeds: Sequence[int]) -> tuple[int, int]:
    """The number of trainings, settings x seeds, that were played, and that of the whole grid."""
    settings = len(tuned.column.settings)
    finals = sum(map(len, tuned.finals.values()))
    return settings + finals * (len(seeds) - 1), settings * len(seeds)


def as_json(tuned: Tuned, seeds: Sequence[int]) -> dict[str, Any]:
    """All of it: scores are mean accuracies, by arm as its run directory names it; null if it diverged."""
    played, of = num_runs(tuned, seeds)
    return {
        "name": tuned.column.member.experiment.name,
        "file": str(tuned.column.member.path),
        "written": None if tuned.file is None else str(tuned.file),
        "seeds": [*seeds],
        "rival": tuned.rival,
        "trainings": played,
        "of": of,
        "first_seed": {arm: by_seed[seeds[0]] for arm, by_seed in tuned.first.items()},
        "all_seeds": {arm: [by_seed[seed] for seed in seeds] for arm, by_seed in tuned.scores.items()},
        "rows": {
            row: None
            if choice is None
            else {
                "values": dict(choice.setting.values),
                "best": choice.best.use,
                "mean": choice.mean,
                "uses": {tried.use: tried.adaptation for tried in choice.uses},
                "ties": [dict(setting.values) for setting in choice.ties],
            }
            for row, choice in tuned.chosen.items()
        },
    }


def as_markdown(rows: Sequence[Cells], title: str, below: Sequence[str]) -> str:
    """A table with the keys of its rows as headings, and the lines below it."""
    lines = [[*rows[0]], ["---"] * len(rows[0]), *([str(cell) for cell in row.values()] for row in rows)]
    table = [f"| {' | '.join(cells)} |" for cells in lines]
    return "\n".join([f"## {title}", "", *table, "", *(f"- {line}" for line in below), ""])


def _of_row(tuned: Tuned, row: Row, seeds: Sequence[int]) -> Iterator[Cells]:
    choice, finals = tuned.chosen[row.name], tuned.finals[row.name]
    _, number = row.grid
    for rate in row.grid[RATE]:
        settings = [setting for setting in row.settings if setting.values[RATE] == rate]
        is_chosen = choice is not None and choice.setting in settings
        yield {
            "arm": row.name,
            "rate": f"{rate:g}",
            "number": f"{number} = {', '.join(f'{value:g}' for value in row.grid[number])}",
            f"seed {seeds[0]} (%)": ", ".join(
                _percent(setting_score(tuned.first, setting, seeds[:1])) for setting in settings
            ),
            f"{len(seeds)} seeds (%)": ", ".join(
                _percent(setting_score(tuned.scores, setting, seeds)) if setting in finals else "-"
                for setting in settings
            ),
            "chosen": f"{_shown(choice.setting)}: {choice.best.use}" if choice and is_chosen else "",
        }


def _percent(score: float) -> str:
    return DIVERGED if score == WORST else f"{100 * score:.2f}"


def _shown(setting: Setting) -> str:
    return ", ".join(f"{value:g}" for value in setting.values.values())
