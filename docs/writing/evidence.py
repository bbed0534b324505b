"""`make evidence`: writes the tables of measured figures into the pages, from the files of `docs/evidence/`.

A comment on the line above a table, `<!-- evidence: FILE/TABLE -->`, says which one it is. The tables of a
file are typed in, with the cells of the page, or played: then `figures` has those of `summary.json` by run,
arm and name, and a row and a column of a table say together what stands in their cell (`Cells`).
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, product
from pathlib import Path
from typing import Any

from docs.writing.markdown import table
from docs.writing.pages import DOCS
from emulator.errors import InputError
from emulator.storage.checkpoints import write_durably
from experiments.results.statistics import scales
from experiments.results.statistics.intervals import Estimate, ShareOfSeeds, mean_estimate
from experiments.results.statistics.medians import Bounds, MedianEstimate
from experiments.results.tables import cells as shown
from experiments.running.command_facts import git_commit

MARKED = re.compile(r"^<!-- evidence: (\S+?)/(\S+) -->\n((?:\|.*\n)*)", re.MULTILINE)
KEPT = ("mean", "ci95", "median", "interval", "level", "per_seed")
"""What is stored of a figure of `summary.json`, with six significant digits."""
SHARE = "seeds"
"""The unit of shares of seeds; the others are the report's `scales`, such as "percent"."""

Evidence = Mapping[str, Any]
"""The content of a file, or an object in it."""


@dataclass(frozen=True)
class Cells:
    """What stands in a cell: a figure of an arm, once for each of `runs`, by default for all of the file.

    The figure of a target is called `time_below_s@0.65`; `itself` stands for an arm beside itself. With
    `minus` it is 100 times the difference from that arm, by seed. Where it is `bare` its unit is left out.
    """

    arm: str
    figure: str
    unit: str
    runs: Sequence[str] = ()
    has_interval: bool = True
    bare: bool = False
    minus: str = ""
    itself: str = shown.NOTHING


def stored() -> dict[str, Evidence]:
    """The content of each file by its name without the suffix."""
    return {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(DOCS.glob("evidence/*.json"))}


def written(page: str, text: str, evidence: Mapping[str, Evidence]) -> str:
    """The text of a page with its marked tables as the files have them. InputError if one has none."""

    def marked(match: re.Match[str]) -> str:
        file = evidence.get(match[1], {})
        found = file.get("tables", {}).get(match[2], {})
        if found.get("page") != page:
            raise InputError(f"{page}: docs/evidence/{match[1]}.json has no table {match[2]!r} of this page")
        return f"<!-- evidence: {match[1]}/{match[2]} -->\n{rendered(found, file)}\n"

    return MARKED.sub(marked, text)


def rendered(found: Evidence, file: Evidence) -> str:
    """A table of that file as Markdown.

    All numbers of one figure are in the scale that suits the largest of them, as in a column of the report.
    """
    if file.get("typed_in"):
        return table(found["header"], found["rows"])
    grid = [[_cells(row, column) for column in found["columns"]] for row in found["rows"]]
    largest = dict.fromkeys((cells.figure for cells in chain.from_iterable(grid)), 0.0)
    for cells in chain.from_iterable(grid):
        numbers = [shown.largest(figure) for figure in _figures(cells, file) if figure is not None]
        largest[cells.figure] = max(largest[cells.figure], *numbers, 0.0)
    rows = [
        [row.get("heading") or row["arm"], *(_text(cells, file, largest[cells.figure]) for cells in of_row)]
        for row, of_row in zip(found["rows"], grid, strict=True)
    ]
    return table([found["first"], *(column["heading"] for column in found["columns"])], rows)


def taken(file: Evidence, folder: Path) -> Evidence:
    """The content with the figures of the run directories below `folder`, and the commit checked out."""
    texts = {run: (folder / path / "summary.json").read_text("utf-8") for run, path in file["runs"].items()}
    rounded = partial(json.loads, parse_float=lambda number: float(f"{float(number):.6g}"))
    summaries = {run: rounded(text) for run, text in texts.items()}
    figures: dict[str, dict[str, dict[str, Any]]] = {run: {} for run in texts}
    for found in file["tables"].values():
        for row, column in product(found["rows"], found["columns"]):
            cells = _cells(row, column)
            key, _, target = cells.figure.partition("@")
            for run, arm in product(cells.runs or summaries, filter(None, (cells.arm, cells.minus))):
                tables = [summaries[run], *summaries[run]["targets"]]
                (of_arms,) = (one["arms"] for one in tables if str(one.get("target", "")) == target)
                figure = of_arms[arm][key]
                kept = figure and {name: figure[name] for name in KEPT if name in figure}
                figures[run].setdefault(arm, {})[cells.figure] = kept
    return {**file, "commit": git_commit(DOCS), "figures": figures}


def as_text(value: Any, levels: int = 4, indent: str = "\n") -> str:
    """JSON with an item per line, down to that many levels."""
    if not (levels and value and isinstance(value, dict | list)):
        return json.dumps(value, ensure_ascii=False)
    inside = partial(as_text, levels=levels - 1, indent=f"{indent}  ")
    if isinstance(value, list):
        return f"[{indent}  {f',{indent}  '.join(map(inside, value))}{indent}]"
    items = (f"{json.dumps(key)}: {inside(item)}" for key, item in value.items())
    return f"{{{indent}  {f',{indent}  '.join(items)}{indent}}}"


def marked_pages() -> dict[str, str]:
    """The text that each page with tables should have, by its path."""
    files = stored()
    pages = {found["page"] for file in files.values() for found in file["tables"].values()}
    return {page: written(page, (DOCS.parent / page).read_text("utf-8"), files) for page in sorted(pages)}


def _cells(row: Evidence, column: Evidence) -> Cells:
    """What a row and a column say together; where both say something, the row counts."""
    return Cells(**{key: value for key, value in {**column, **row}.items() if key != "heading"})


def _text(cells: Cells, file: Evidence, largest: float) -> str:
    scale = getattr(scales, "index_scale" if cells.unit == SHARE else f"{cells.unit}_scale")(largest)
    scale = replace(scale, unit="") if cells.bare else scale
    texts = []
    for figure in _figures(cells, file):
        if isinstance(figure, ShareOfSeeds):
            cell = shown.show_share_of_seeds(figure)
        elif isinstance(figure, MedianEstimate):
            cell = shown.show_median(figure, scale)
        else:
            cell = shown.Cell(cells.itself) if figure is None else shown.show_estimate(figure, scale)
        estimate = figure if isinstance(figure, Estimate) else None
        short = shown.in_short(cell, estimate, scale) if cells.has_interval else shown.Cell(cell.figure)
        texts.append(" ".join(short.lines).strip())
    return ", ".join(texts)


def _figures(cells: Cells, file: Evidence) -> list[Estimate | MedianEstimate | None]:
    """The figures of a cell, one per run."""
    of_runs = [file["figures"][run] for run in cells.runs or file["runs"]]
    found = [arms[cells.arm][cells.figure] for arms in of_runs]
    if cells.minus:
        pairs = zip(found, (arms[cells.minus][cells.figure] for arms in of_runs), strict=True)
        by_seed = [zip(one["per_seed"], other["per_seed"], strict=True) for one, other in pairs]
        return [mean_estimate([100 * (one - other) for one, other in seeds]) for seeds in by_seed]
    kind = ShareOfSeeds if cells.unit == SHARE else Estimate
    return [figure and (_median(**figure) if "median" in figure else kind(**figure)) for figure in found]


def _median(median: Any, interval: Any, level: float | None, per_seed: Any) -> MedianEstimate:
    seeds = [_bounds(**seed) for seed in per_seed]
    return MedianEstimate(_bounds(**median), interval and _bounds(*interval), level, seeds)


def _bounds(low: float | None, high: float | None, status: str = "") -> Bounds:
    """An infinite end is null in `summary.json`."""
    return Bounds(-math.inf if low is None else low, math.inf if high is None else high)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        path = DOCS / "evidence" / f"{name}.json"
        if name not in stored():
            sys.exit(f"PLAYED = {name}: no file of docs/evidence; choices: {', '.join(stored())}")
        try:
            played = taken(stored()[name], Path.cwd())
        except FileNotFoundError as error:
            sys.exit(f"{error.filename}: not there; run the commands of the tables of {name} first")
        write_durably(path, as_text(played) + "\n")
    for page, text in marked_pages().items():
        if (path := DOCS.parent / page).read_text("utf-8") != text:
            write_durably(path, text)
            sys.stdout.write(f"{page}\n")
