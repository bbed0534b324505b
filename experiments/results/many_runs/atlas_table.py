"""The tables of an atlas as text, with their notes, and `atlas.json`.

version, name
columns      what was read of each run directory (`Column`); all else is computed from it
cells.<method>.<column>
             {arm, mean, seeds, word, paired, regret_pp}; no entry where a cell is missing. `paired` is
             the difference from the rival: {centre_pp, interval, level, by_ranks}, null for the rival
             itself, oracles, and where the rival has no figures
standings.<method>
             {words, cells, mean_regret_pp, worst_regret_pp, worst_in, near_best, sent_bytes, samples,
             worst_tenth}, but for oracles
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from emulator.errors import abbreviated
from experiments.results.statistics.atlas import (
    RIVAL,
    WORDS,
    Column,
    Standing,
    Verdict,
    methods,
    standing,
    verdict,
)
from experiments.results.statistics.medians import levels_as_text, rank_and_level
from experiments.results.statistics.scales import Scale, bytes_scale, count_scale, percent_scale, points_scale
from experiments.results.tables.cells import NOTHING, Cell
from experiments.results.tables.table import NotedTable, TextTable

ATLAS_VERSION = 1

WORDS_NOTE = (
    "Each method is compared with the rival of the column, paired by seed. Ahead: the 95 % interval of the "
    "difference is above 0, and the mean a point or more. Level: the interval is within a point of 0. "
    "Behind: it is below 0, and the mean a point or more. Open: all else."
)
RANKS_NOTE = (
    "Median: with a trigger that may fire in some seeds only, no t interval holds. The interval is from the "
    "k-th lowest to the k-th highest difference (k = {ranks}), which holds their median at {levels} whatever "
    "the law, and the median stands for the mean; what happens in a minority of the seeds is not in it."
)
LIST_NOTE = (
    "The drifts are a list, not a sample of drifts, so nothing is tested over them; with 20 methods and 12 "
    "drifts, mean ranks would have to be 8.6 of at most 19 apart (Nemenyi's critical difference)."
)
REGRET_NOTE = (
    "Regret is points below the best cell of the column, oracles apart, over the drifts in which a method "
    "has a cell. The worst tenth of clients is at the horizon; bytes are those sent in a run, and samples "
    "those trained per client: means over these drifts. A new method changes no word of another one, unless "
    "its runs are first evaluated later, or end earlier, than all others; and its regret only where it is "
    "the new best."
)


def atlas_tables(columns: Sequence[Column]) -> dict[str, NotedTable]:
    """By name the table of `words`, that of `standings` and, if there are any, that of `oracles`."""
    oracles = methods(columns, oracles=True)
    tables = {
        "words": NotedTable(
            "mean accuracy of the best use (%), beside the rival",
            _by_column(columns, methods(columns)),
            _notes(columns),
        ),
        "standings": NotedTable("over all drifts", _standings(columns), [REGRET_NOTE, LIST_NOTE]),
        "oracles": NotedTable("oracles, which are told the concepts", _by_column(columns, oracles)),
    }
    return tables if oracles else {name: table for name, table in tables.items() if name != "oracles"}


def atlas_json(name: str, columns: Sequence[Column]) -> dict[str, Any]:
    """The content of `atlas.json`."""
    rows = methods(columns)
    return {
        "version": ATLAS_VERSION,
        "name": name,
        "columns": [column.as_json() for column in columns],
        "cells": {
            row: {
                column.name: asdict(found)
                for column in columns
                if (found := verdict(column, row)) is not None
            }
            for row in (*rows, *methods(columns, oracles=True))
        },
        "standings": {row: asdict(standing(columns, row)) for row in rows},
    }


def in_lines(table: TextTable) -> tuple[list[str], list[list[str]]]:
    """The headings and the rows of a table whose cells are one line each, as Markdown has them."""
    rows = [[arm, *(", ".join(cell.lines) for cell in cells)] for arm, cells in table.rows]
    return ["method", *table.headings], rows


def shown(found: Verdict | None) -> Cell:
    """A cell: the accuracy, the word with how it was found, and the difference with its interval."""
    if found is None:
        return Cell(NOTHING)
    accuracy, beside = percent_scale(found.mean).bare(found.mean), found.paired
    if beside is None:
        return Cell(accuracy, found.word)
    scale = points_scale(beside.centre_pp)
    ends = "" if beside.interval is None else f" [{', '.join(map(scale.bare, beside.interval))}]"
    how = ", median" if beside.by_ranks else ""
    return Cell(accuracy, f"{found.word}{how}", f"{scale.bare(beside.centre_pp)}{ends}")


def counted(found: Standing, columns: int) -> str:
    """How often each word is said of a method: "ahead in 5, level in 3, behind in 2, open in 2"."""
    told = {word: found.words[word] for word in WORDS}
    others = {RIVAL: found.words[RIVAL], "no word": columns - sum(found.words.values())}
    told |= {word: count for word, count in others.items() if count}
    return ", ".join(f"{word} in {count}" for word, count in told.items())


def _by_column(columns: Sequence[Column], rows: Sequence[str]) -> TextTable:
    cells = [(row, [shown(verdict(column, row)) for column in columns]) for row in rows]
    return TextTable([column.name for column in columns], cells)


def _standings(columns: Sequence[Column]) -> TextTable:
    of_rows = {row: standing(columns, row) for row in methods(columns)}
    points, share, counts = Scale(1, "", 1), percent_scale(0), count_scale(1000)

    def cell(value: float | None, scale: Scale | None, after: str = "") -> Cell:
        return Cell(NOTHING if value is None else (scale or bytes_scale(value))(value) + after)

    headings = ["beside the rival", "mean regret", "worst", "within a point of the best"]
    rows = [
        (
            row,
            [
                Cell(counted(found, len(columns))),
                cell(found.mean_regret_pp, points),
                cell(found.worst_regret_pp, points, f" ({found.worst_in})"),
                Cell(f"{found.near_best} of {found.cells}"),
                cell(found.worst_tenth, share),
                cell(found.sent_bytes, None),
                cell(found.samples, counts),
            ],
        )
        for row, found in of_rows.items()
    ]
    kept = [4] if any(found.worst_tenth is not None for found in of_rows.values()) else []
    places = [0, 1, 2, 3, *kept, 5, 6]
    every = [*headings, "worst tenth of clients", "bytes", "samples per client"]
    return TextTable(
        [every[place] for place in places],
        [(row, [cells[place] for place in places]) for row, cells in rows],
    )


def _notes(columns: Sequence[Column]) -> list[str]:
    """The notes below the words: how they are found, on which seeds, beside whom, and what is missing."""
    found = [verdict(column, row) for column in columns for row in methods(columns)]
    ranked = [cell.paired for cell in found if cell is not None and cell.paired is not None]
    levels = levels_as_text(beside.level for beside in ranked if beside.by_ranks)
    counts = sorted({len(column.seeds) for column in columns})
    ranks = " or ".join(f"{rank_and_level(count)[0]} of {count}" for count in counts)
    rivals, seeds, chosen = (
        _grouped([(column.name, text) for column, text in zip(columns, texts, strict=True)])
        for texts in (
            [column.rival for column in columns],
            [str(len(column.seeds)) for column in columns],
            [", ".join(map(str, column.chosen_on)) for column in columns],
        )
    )
    return [
        WORDS_NOTE,
        *([RANKS_NOTE.format(levels=levels, ranks=ranks)] if levels else []),
        f"Rival: {rivals}. Seeds: {seeds}. Best uses and rivals were chosen on other seeds: {chosen}.",
        *_missing(columns),
    ]


def _grouped(pairs: Sequence[tuple[str, str]]) -> str:
    """Each text, with the names that have it unless all have the same."""
    names: dict[str, list[str]] = {}
    for name, text in pairs:
        names.setdefault(text, []).append(name)
    if len(names) == 1:
        return next(iter(names))
    return "; ".join(f"{text} ({abbreviated(same, ', ')})" for text, same in names.items())


def _missing(columns: Sequence[Column]) -> Iterator[str]:
    """A note for each column without words, and for each with missing cells."""
    every = [*methods(columns), *methods(columns, oracles=True)]
    for column in columns:
        if why := column.missing.get(column.rival):
            yield f"No words in {column.name}: of its rival {column.rival}, {why}."
        gone = [
            f"{row} ({column.missing.get(column.rows.get(row, ''), 'the file has no such arm')})"
            for row in every
            if verdict(column, row) is None
        ]
        if gone:
            yield f"Missing in {column.name}: {abbreviated(gone, ', ')}."
