"""What was found in a folder of run directories, in at most three lines.

They are made of the cells of the page's tables, so that they have no figure that the page has not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from experiments.results.many_runs.folder_table import run_counts
from experiments.results.many_runs.runs_table import has_personal
from experiments.results.many_runs.sections import Row, Section
from experiments.results.pages.folder_page import columns_with_drift, names_alone
from experiments.results.pages.headline import OMITTING, as_percent
from experiments.results.statistics.scales import points_scale
from experiments.results.statistics.significance import Difference
from experiments.results.tables.cells import show_difference, with_interval
from experiments.results.tables.published_cells import mean_and_std

MOST_NAMED = 6
"""Most experiments with known concepts that a line names."""


def folder_findings(table: Mapping[str, Any], sections: Sequence[Section]) -> list[str]:
    """At most three sentences on what a folder of run directories shows.

    The first has the numbers of experiments and runs, the others the largest and the smallest gain over the
    reference arm: of the arms of the headline if there are any, else of all arms. Where no arm is compared,
    they have the highest and the lowest mean accuracy. Where the traces of a few experiments know their
    concepts, they have the best arm of each, and how the arms agree with published values.

    Args:
        table: The table of the folder (`build_table`).
        sections: Its sections.
    """
    columns = table["experiments"]
    counts = {name: sum(column[name] for column in columns) for name in ("finished", "failed", "planned")}
    until = sum((Counter(column.get("until", {})) for column in columns), Counter[str]())
    numbers = run_counts({**counts, "until": until}) or "none"
    experiments = f"{len(columns)} experiment{'s' if len(columns) != 1 else ''}"
    scored = columns_with_drift(table, names_alone(table, sections))
    is_of_drift = 1 < len(scored) <= MOST_NAMED
    lines = _of_drift(table, scored) if is_of_drift else _extremes(sections)
    return [f"{experiments}; runs: {numbers}.", *lines]


def _of_drift(table: Mapping[str, Any], scored: Sequence[str]) -> Iterator[str]:
    """The arm with the highest accuracy omitting drift in each experiment, and agreement with papers."""
    figures = table["figures"][OMITTING]
    best = []
    for name in scored:
        cells = {arm: by_experiment[name] for arm, by_experiment in figures.items() if name in by_experiment}
        if cells:
            most = max(cells.values(), key=lambda cell: float(cell["mean"]))
            arms = ", ".join(arm for arm, cell in cells.items() if cell["mean"] == most["mean"])
            best.append(f"{name} {mean_and_std(most)} % ({arms})")
    if best:
        yield f"Highest accuracy omitting drift: {', '.join(best)}."
    agreed = [
        f"{name} {agreement['inside']} of {judged} methods"
        for name, agreement in table["agreement"][OMITTING].items()
        if name in scored and (judged := agreement["inside"] + len(agreement["outside"]))
    ]
    if agreed:
        yield f"Within two published standard deviations of it: {', '.join(agreed)}."


Stated = tuple[float, str, str, str, bool]
"""A figure, what it is, its text, in which row it is, and whether that is of the arm of a headline."""


def _extremes(sections: Sequence[Section]) -> list[str]:
    """The largest and the smallest gain or, where no arm is compared, mean accuracy."""
    words, stated = ("Largest", "Smallest"), _gains(sections)
    if not stated:
        words, stated = ("Highest", "Lowest"), _means(sections)
    ranked = sorted(stated, key=itemgetter(0))
    ends = [ranked[-1], ranked[0]] if ranked else []
    if ends and ends[0][1:3] == ends[1][1:3]:
        _, what, text, where, _ = ends[0]
        of_all = where if len(ranked) == 1 else f"in all {len(ranked)} rows"
        return [f"{what[0].upper()}{what[1:]}: {text}, {of_all}."]
    return [
        f"{word} {what}: {text}, {where}."
        for word, (_, what, text, where, _) in zip(words, ends, strict=False)
    ]


def _gains(sections: Sequence[Section]) -> list[Stated]:
    """The gains that are known: of the arms of the headlines if there are any, else of all arms."""
    is_served = has_personal([row for section in sections for row in section.rows])
    what = f"gain{' in served accuracy' if is_served else ''} over"
    stated = [
        (
            gain.mean,
            f"{what} {row.directory.arms[0]}",
            _gain_text(gain),
            _where(row),
            row.arm in section.headlines,
        )
        for section in sections
        for row in section.rows
        if (gain := row.gain_pp) is not None and gain.mean is not None
    ]
    return [one for one in stated if one[-1]] or stated


def _means(sections: Sequence[Section]) -> list[Stated]:
    return [
        (row.mean_accuracy.mean, "mean accuracy", as_percent(row.mean_accuracy), _where(row), False)
        for section in sections
        for row in section.rows
        if row.mean_accuracy.mean is not None
    ]


def _gain_text(gain: Difference) -> str:
    """A gain with its interval and its corrected p-value, as its table has them."""
    cell = show_difference(gain, points_scale(0.0))
    return ", ".join([with_interval(cell), *cell.note.splitlines()])


def _where(row: Row) -> str:
    return f"{row.arm} in {row.directories[0]}{' and others' if len(row.directories) > 1 else ''}"
