"""`atlas.html`, `atlas.md` and `atlas.json`: the atlas of a folder of run directories."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from emulator.storage.checkpoints import write_durably
from emulator.storage.own_files import path_below
from experiments.results.many_runs.atlas_table import atlas_json, atlas_tables, in_lines, shown
from experiments.results.pages.scripted_page import page_with_nonce
from experiments.results.statistics.atlas.verdicts import REGION_PP, Column, methods, verdict
from experiments.results.tables.table import NotedTable

SHADES_PP = (REGION_PP, 3.0, 6.0, 10.0)
"""Points of regret up to which a cell has each shade, from white on; the darkest is beyond the last."""


def write_atlas(folder: Path, name: str, columns: Sequence[Column]) -> dict[str, NotedTable]:
    """Write the three files into `folder`, headed by `name`; returns the tables.

    Raises ForeignFileError, before anything is written, if one of them is a link or of another kind.
    """
    tables = atlas_tables(columns)
    content = json.dumps(atlas_json(name, columns), allow_nan=False, indent=2) + "\n"
    texts = {"json": content, "md": as_markdown(name, tables), "html": render_atlas(name, columns)}
    paths = {suffix: path_below(folder, f"atlas.{suffix}") for suffix in texts}
    for suffix, path in paths.items():
        write_durably(path, texts[suffix])
    return tables


def render_atlas(name: str, columns: Sequence[Column]) -> str:
    """The HTML page of an atlas; the same columns give the same bytes."""
    return page_with_nonce(
        "atlas_page.html",
        name=name,
        columns=columns,
        groups=[
            [
                (row, [(found := verdict(column, row), shown(found, row)) for column in columns])
                for row in rows
            ]
            for rows in (methods(columns), methods(columns, oracles=True))
        ],
        tables=atlas_tables(columns),
        shades=SHADES_PP,
    )


def as_markdown(name: str, tables: dict[str, NotedTable]) -> str:
    """The tables with their notes as Markdown, below a heading."""
    blocks, bar = [f"# {name}"], r"\|"
    for found in tables.values():
        headings, rows = in_lines(found.table)
        lines = [headings, ["---"] * len(headings), *rows]
        table = "\n".join(f"| {' | '.join(text.replace('|', bar) for text in line)} |" for line in lines)
        blocks += [f"## {found.title[:1].upper()}{found.title[1:]}", table, *found.notes]
    return "\n\n".join(blocks) + "\n"
