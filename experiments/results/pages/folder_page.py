"""`table.json` and `table.html`: the figures and tables over the experiments of a folder, and their page."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from emulator.errors import InputError, abbreviated
from emulator.storage.checkpoints import write_durably
from emulator.storage.own_files import path_below
from experiments.results.drawing.plotly_js import PLOTLY_FILE
from experiments.results.many_runs.directories import read_folder
from experiments.results.many_runs.folder_table import Table, build_table, run_counts, words_of
from experiments.results.many_runs.runs_table import runs_horizon, runs_notes, runs_table, runs_warnings
from experiments.results.many_runs.section_plots import section_plots
from experiments.results.many_runs.sections import Section, sections
from experiments.results.pages.scripted_page import page_with_nonce
from experiments.results.pages.sentences import notation, of_folder
from experiments.results.reading.run_directory import RunDirectory
from experiments.results.statistics.marked_seeds import marked_clause
from experiments.results.tables.cells import NOTHING, Cell
from experiments.results.tables.notes import as_warning
from experiments.results.tables.published_cells import (
    OUTSIDE,
    agreement_sentence,
    beside_paper,
    models,
    scored_steps,
)
from experiments.results.wording import told

TITLES = {
    "accuracy_omitting_drift": "Accuracy (%), omitting drift cells",
    "accuracy_including_drift": "Accuracy (%), including drift cells",
}

MOST_OPEN_ROWS = 40
"""Most rows of a table that is not folded up."""


def write_table(folder: Path, directories: Sequence[RunDirectory], name: str) -> tuple[Table, list[Section]]:
    """Write `table.json` and `table.html` into `folder`, the parent of the run directories.

    Args:
        folder: The folder.
        directories: The run directories.
        name: The heading of the table.

    Returns:
        The table, and its sections.

    Raises:
        InputError: There are no run directories, or a file of a finished run is damaged.
    """
    if not directories:
        raise InputError(f"{folder}: holds no run directory, so there is no table to make")
    json_path, page_path = path_below(folder, "table.json"), path_below(folder, "table.html")
    measured = read_folder(directories)
    shown = sections(measured)
    built = build_table(name, {item.directory: item.finished for item in measured})
    table = {**built, "sections": [section.as_json() for section in shown]}
    write_durably(json_path, json.dumps(table, allow_nan=False, indent=2) + "\n")
    write_durably(page_path, render_table(table, shown))
    return table, shown


def render_table(table: Mapping[str, Any], sections: Sequence[Section] = ()) -> str:
    """The HTML page of a table as in `table.json`, with its sections; the same table gives the same bytes."""
    columns = {column["name"]: column for column in table["experiments"]}
    alone = names_alone(table, sections)
    scored, arms = columns_with_drift(table, alone), arms_with_runs(table)
    found, words = folder_sentences(table, sections), words_of(table, scored)
    drawn = [section_plots(section, f"section-{number}") for number, section in enumerate(sections, 1)]
    return page_with_nonce(
        "folder_page.html",
        name=table["name"],
        sentences=found,
        most_stated=len(found),
        headline_notes=[notation(found)],
        headline_cautions=[],
        plotly_file=PLOTLY_FILE,
        num_plots=sum(len(item.plots) for item in drawn),
        unfinished=unfinished(table),
        has_published=has_published(table),
        outside=OUTSIDE,
        scored_steps=scored_steps,
        scored=[columns[name] for name in scored],
        accuracies=[
            (
                told(words, title),
                [
                    (arm, [accuracy_cell(table, figure, arm, column) for column in scored])
                    for arm in arms
                    if not table["figures"]["models_sent"][arm].keys().isdisjoint(scored)
                ],
                agreement_notes(table, figure, scored),
            )
            for figure, title in (TITLES.items() if scored else ())
        ],
        marked=marked_notes(table, scored),
        columns=[columns[name] for name in alone] if scored else [],
        models=[(arm, [models_cell(table, arm, column) for column in alone]) for arm in arms],
        sections=[
            {
                "name": section.name,
                "table": runs_table(section),
                "horizon": runs_horizon(section),
                "warnings": runs_warnings(section),
                "notes": runs_notes(section),
                "reports": [columns[name] for name in section.directories],
                "is_open": not is_in_matrices(section, scored) and len(section.rows) <= MOST_OPEN_ROWS,
                "commands": _commands(section),
                "drawn": item,
            }
            for section, item in zip(sections, drawn, strict=True)
        ],
        without_runs=[arm for arm in table["arms"] if arm not in arms],
    )


def folder_sentences(table: Mapping[str, Any], sections: Sequence[Section]) -> list[str]:
    """The sentences on the folder of a table, by their rank."""
    return of_folder(table, sections, columns_with_drift(table, names_alone(table, sections)))


def _commands(section: Section) -> str:
    """The commands that began the section's runs, without duplicates; empty if none was recorded."""
    commands = dict.fromkeys(member.command for member in section.members if member.command is not None)
    return abbreviated(list(commands))


def unfinished(table: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(names, counts of runs) of the experiments with unfinished runs; those with the same counts are one."""
    names: dict[str, list[str]] = {}
    for column in table["experiments"]:
        if column["finished"] < column["planned"]:
            names.setdefault(run_counts(column), []).append(column["name"])
    return [
        (f"{abbreviated(same, ', ')}{', each' if len(same) > 1 else ''}", counts)
        for counts, same in names.items()
    ]


def arms_with_runs(table: Mapping[str, Any]) -> Sequence[str]:
    """The arms that have a finished run in any experiment."""
    return [arm for arm in table["arms"] if arm in table["figures"]["models_sent"]]


def names_alone(table: Mapping[str, Any], sections: Sequence[Section]) -> list[str]:
    """The names of the experiments that share no section with another: they are columns of the matrices."""
    together = {name for section in sections if len(section.directories) > 1 for name in section.directories}
    return [column["name"] for column in table["experiments"] if column["name"] not in together]


def columns_with_drift(table: Mapping[str, Any], names: Collection[str]) -> Sequence[str]:
    """Those of the experiments `names` that are in the matrices of accuracy with and without drift cells.

    They are those with known concepts, and those without a finished run, of which it is unknown. Empty if no
    experiment has known concepts. One whose hits are called otherwise than those of the first has sections.
    """
    experiments = [column for column in table["experiments"] if column["name"] in names]
    known = [column for column in experiments if column["scored_steps"] is not None]
    scored = [column for column in known if column.get("word") == known[0].get("word")]
    return [
        column["name"]
        for column in experiments
        if column in scored or (known and column["scored_steps"] is None and column["finished"] == 0)
    ]


def has_published(table: Mapping[str, Any]) -> bool:
    """Whether a published value stands beside any figure."""
    return any(
        cell["published"]
        for figure in TITLES
        for by_experiment in table["figures"][figure].values()
        for cell in by_experiment.values()
    )


def is_in_matrices(section: Section, scored: Collection[str]) -> bool:
    """Whether the figures of a section are in the matrices of the experiments `scored` too."""
    return len(scored) > 1 and all(name in scored for name in section.directories)


def _figure(table: Mapping[str, Any], figure: str, arm: str, column: str) -> Mapping[str, Any] | None:
    """A figure of an arm in an experiment; None if it was not measured."""
    found: Mapping[str, Any] | None = table["figures"][figure].get(arm, {}).get(column)
    return found


def accuracy_cell(table: Mapping[str, Any], figure: str, arm: str, column: str) -> Cell:
    """An accuracy of an arm in an experiment, beside the published one (`beside_paper`)."""
    return beside_paper(_figure(table, figure, arm, column))


def models_cell(table: Mapping[str, Any], arm: str, column: str) -> str:
    """The models that an arm sent in an experiment; a dash if it has no finished run there."""
    sent, relative = (_figure(table, f"{of}models_sent", arm, column) for of in ("", "relative_"))
    return NOTHING if sent is None else models(sent, relative)


def agreement_notes(table: Mapping[str, Any], figure: str, columns: Sequence[str]) -> list[str]:
    """Notes below a matrix: how each column agrees with published values."""
    found = table["agreement"][figure]
    notes = [agreement_sentence(f"In {column}", found[column]) for column in columns if column in found]
    return [note for note in notes if note]


def marked_notes(table: Mapping[str, Any], columns: Collection[str]) -> list[str]:
    """Warnings about the marked seeds of these experiments."""
    return [
        as_warning(f"{column['name']}: {clause}")
        for column in table["experiments"]
        if column["name"] in columns and (clause := marked_clause(column["marked_seeds"]))
    ]
