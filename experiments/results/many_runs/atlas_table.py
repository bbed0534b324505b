"""The tables of an atlas as text, with their notes, and `atlas.json`.

    version, name
    columns      what was read of each run directory (`Column`); all else is computed from it
    cells.<method>.<column>
                 {arm, mean, seeds, regret_pp, word, paired}; no entry where a cell is missing. `paired` is
                 the difference from the rival: {centre_pp, interval, level, by_ranks}, null for the rival
                 itself, oracles, and where the rival has no figures
    standings.<method>
                 {words, cells, mean_regret_pp, worst_regret_pp, worst_in, near_best, sent_bytes, samples,
                 worst_tenth}, but for oracles

Numbers are in the units of their names; accuracies and the level of an interval have none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from emulator.errors import abbreviated
from experiments.results.statistics import scales
from experiments.results.statistics.atlas.verdicts import (
    WORDS,
    Column,
    Paired,
    Verdict,
    methods,
    standing,
    verdict,
)
from experiments.results.statistics.medians import levels_as_text, rank_and_level
from experiments.results.tables.cells import NOTHING, Cell
from experiments.results.tables.table import NotedTable, TextTable

WORDS_NOTE = """\
Each method is compared with the rival of the column, paired by seed. Ahead: the 95 % interval of the \
difference is above 0, and the mean a point or more. Level: the interval is within a point of 0. Behind: it \
is below 0, and the mean a point or more below. Open: all else."""
RANKS_NOTE = """\
Median: with a trigger that may fire in some seeds only, no t interval holds. The interval is from the k-th \
lowest to the k-th highest difference (k = {ranks}), which holds their median at {levels} whatever the law, \
and the median stands for the mean; what happens in a minority of the seeds is not in it."""
FEW_NOTE = """\
Median: with a trigger that may fire in some seeds only, no t interval holds, and under six seeds have none \
by ranks: their cells are open."""
REGRET_NOTE = """\
Regret is points below the best cell of the column, oracles apart, over the drifts in which a method has a \
cell. The worst tenth of clients is at the horizon; bytes are those sent in a run, and samples those trained \
per client: means over these drifts. A new method changes no word of another one, unless its runs are first \
evaluated later, or end earlier, than all others; and its regret only where it is the new best."""
LIST_NOTE = """\
The drifts are a list, not a sample of drifts, so nothing is tested over them; with 20 methods and 12 \
drifts, mean ranks would have to be 8.6 of at most 19 apart (Nemenyi's critical difference)."""

UNFINISHED, FAILED = "is not finished in every seed", "has failed in a seed"


def atlas_tables(columns: Sequence[Column]) -> dict[str, NotedTable]:
    """By name the table of `words`, that of `standings` and, if there are any, that of `oracles`."""
    words = _by_column(columns, methods(columns))
    tables = {
        "words": NotedTable("mean accuracy of the best use (%), beside the rival", words, _notes(columns)),
        "standings": NotedTable("over all drifts", _standings(columns), [REGRET_NOTE, LIST_NOTE]),
    }
    if oracles := methods(columns, oracles=True):
        tables["oracles"] = NotedTable("told the concepts", _by_column(columns, oracles))
    return tables


def atlas_json(name: str, columns: Sequence[Column]) -> dict[str, Any]:
    """The content of `atlas.json`."""
    rows, oracles = methods(columns), methods(columns, oracles=True)
    cells = {row: [(of.name, verdict(of, row)) for of in columns] for row in (*rows, *oracles)}
    return {
        "version": 1,
        "name": name,
        "columns": [asdict(column) for column in columns],
        "cells": {row: {of: asdict(one) for of, one in found if one} for row, found in cells.items()},
        "standings": {row: asdict(standing(columns, row)) for row in rows},
    }


def in_lines(table: TextTable) -> tuple[list[str], list[list[str]]]:
    """The headings and the rows of a table whose cells are one line each, as Markdown has them."""
    rows = [[arm, *(", ".join(cell.lines) for cell in cells)] for arm, cells in table.rows]
    return ["method", *table.headings], rows


def shown(found: Verdict | None, row: str = "") -> Cell:
    """A cell: the accuracy and the use, the word with how it was found, the difference with its interval."""
    if found is None:
        return Cell(NOTHING)
    use = found.arm.removeprefix(row)
    accuracy = " ".join(filter(None, [scales.percent_scale(found.mean).bare(found.mean), use]))
    beside = found.paired
    if beside is None:
        return Cell(accuracy, found.word)
    points = scales.points_scale(beside.centre_pp).bare
    ends = "" if beside.interval is None else f" [{', '.join(map(points, beside.interval))}]"
    return Cell(accuracy, found.word + beside.by_ranks * ", median", points(beside.centre_pp) + ends)


def counted(words: Mapping[str, int], columns: int) -> str:
    """How often each word is said: "ahead in 5, level in 3, behind in 2, open in 2", and further cells.

    >>> counted({"ahead": 2, "level": 0, "behind": 0, "open": 1, "rival": 1}, 5)
    'ahead in 2, level in 0, behind in 0, open in 1, rival in 1, no word in 1'
    """
    told = {**words, "no word": columns - sum(words.values())}
    return ", ".join(f"{word} in {count}" for word, count in told.items() if count or word in WORDS)


def _by_column(columns: Sequence[Column], rows: Sequence[str]) -> TextTable:
    cells = [(row, [shown(verdict(column, row), row) for column in columns]) for row in rows]
    return TextTable([column.name for column in columns], cells)


def _standings(columns: Sequence[Column]) -> TextTable:
    texts = {row: _texts(columns, row) for row in methods(columns)}
    every = dict.fromkeys(key for of in texts.values() for key in of)
    headings = [key for key in every if any(of[key] != NOTHING for of in texts.values())]
    return TextTable(headings, [(row, [Cell(of[key]) for key in headings]) for row, of in texts.items()])


def _texts(columns: Sequence[Column], row: str) -> dict[str, str]:
    """The cells of a method over all drifts, by heading."""
    found, points = standing(columns, row), scales.distance_scale(0.0).bare
    regret, worst, tenth = found.mean_regret_pp, found.worst_regret_pp, found.worst_tenth
    sent, samples = found.sent_bytes, found.samples
    return {
        "beside the rival": counted(found.words, len(columns)),
        "mean regret": NOTHING if regret is None else points(regret),
        "worst": NOTHING if worst is None else f"{points(worst)} ({found.worst_in})",
        "within a point of the best": f"{found.near_best} of {found.cells}",
        "worst tenth of clients": NOTHING if tenth is None else scales.percent_scale(tenth)(tenth),
        "bytes": NOTHING if sent is None else scales.bytes_scale(sent)(sent),
        "samples per client": NOTHING if samples is None else scales.count_scale(samples)(samples),
    }


def _notes(columns: Sequence[Column]) -> list[str]:
    """The notes below the words: how they are found, on which seeds, beside whom, and what is missing."""
    ranked = [one.level for of in columns for one in _beside(of, columns) if one.by_ranks]
    levels = levels_as_text(ranked)
    counts = sorted({len(column.seeds) for column in columns})
    of_ranks = sorted({len(of.seeds) for of in columns if any(one.by_ranks for one in _beside(of, columns))})
    ranks = " or ".join(f"{rank_and_level(count)[0]} of {count}" for count in of_ranks if count > 5)
    named = {of.rival: ", ".join(one.name for one in columns if one.rival == of.rival) for of in columns}
    rivals = "; ".join(f"{rival} in {names}" for rival, names in named.items())
    chosen = ", ".join(map(str, sorted({seed for column in columns for seed in column.chosen_on})))
    return [
        WORDS_NOTE,
        *([RANKS_NOTE.format(levels=levels, ranks=ranks)] if levels else []),
        *([FEW_NOTE] if None in ranked else []),
        f"Rivals: {rivals}. Seeds: {' or '.join(map(str, counts))} in each column; best uses and rivals were "
        f"chosen on others ({chosen}).",
        *(note for column in columns for note in _missing(column, columns)),
    ]


def _beside(column: Column, columns: Sequence[Column]) -> list[Paired]:
    """The differences from the rival in a column."""
    found = [verdict(column, row) for row in methods(columns)]
    return [one.paired for one in found if one is not None and one.paired is not None]


def _why(column: Column, arm: str | None) -> str:
    """Why an arm has no figures."""
    if arm is None:
        return "is no arm of the file"
    return FAILED if arm in column.failed else UNFINISHED


def _missing(column: Column, columns: Sequence[Column]) -> Iterator[str]:
    """Notes on the words and the cells that a column lacks, and on what was not tuned."""
    if column.untuned:
        yield f"Not tuned in {column.name}: {abbreviated(column.untuned)}."
    if column.rival not in column.figures:
        yield f"No words in {column.name}: its rival {column.rival} {_why(column, column.rival)}."
    every = [*methods(columns), *methods(columns, oracles=True)]
    gone = [row for row in every if verdict(column, row) is None]
    if gone:
        why = [f"{row} {_why(column, column.rows.get(row))}" for row in gone]
        yield f"Missing in {column.name}: {abbreviated(why)}."
