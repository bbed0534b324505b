"""The gallery: each shipped configuration, with what it shows, its data, its runs and its minutes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from docs.writing.families import FAMILIES, Family
from docs.writing.markdown import code, heading, page, prose, table
from experiments.shipped_facts import ShippedConfiguration, shipped_configurations

INTRODUCTION = """\
driftscale ships these configurations. `driftscale run NAME` plays one, `driftscale check NAME` builds what
it needs and trains nothing, and `driftscale new FILE --like NAME` writes a copy to change. The name of a
folder, such as `fielding`, plays all that are in it. The comment at the head of each file, which `driftscale
configs NAME` prints, has its details and where it differs from a paper.

*Data* are files and folders that you bring, looked for in the present folder and under `--data`; where
there is none, the configuration needs nothing. *Runs* are arms x seeds, and cells of its sweep. *Minutes*
are about the wall time of all runs on two cores, with `--jobs auto`; a dash: they were not measured."""


def gallery_page() -> str:
    """The gallery."""
    folders = groupby(shipped_configurations(), key=lambda item: item.name.rpartition("/")[0])
    return page(
        "Gallery", INTRODUCTION, *(block for name, items in folders for block in _folder(name, list(items)))
    )


def _folder(name: str, items: Sequence[ShippedConfiguration]) -> Iterator[str]:
    yield heading(2, FAMILIES[name].heading)
    yield _picture(FAMILIES[name])
    rows = [
        (
            f"[{code(item.name)}](../experiments/configs/{item.name}.toml)",
            prose(item.summary),
            ", ".join(map(code, item.data)),
            f"{item.runs:,}",
            "-" if item.minutes is None else f"{item.minutes:g}",
        )
        for item in items
    ]
    yield table(("name", "what it shows", "data", "runs", "minutes"), rows)


def _picture(family: Family) -> str:
    """The picture of a family, and how what it shows was played."""
    played = code(" ".join(["driftscale run", family.configuration, *family.options]))
    return (
        "<picture>\n"
        f'  <source media="(prefers-color-scheme: dark)" srcset="pictures/{family.name}-dark.svg">\n'
        f'  <img src="pictures/{family.name}-light.svg" alt="{family.alt}">\n</picture>\n\n'
        f"Accuracy over virtual time, {family.of_what}: {played}."
    )
