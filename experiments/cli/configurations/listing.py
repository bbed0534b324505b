"""`driftscale configs`: lists the shipped configurations, or prints one of them."""

from __future__ import annotations

from pathlib import PurePosixPath

from experiments.cli.output import OutputFormat, print_json, print_table, say
from experiments.shipped_facts import ShippedConfiguration, find_shipped, shipped_configurations


def print_configurations(name: str | None, output: OutputFormat) -> None:
    """Print a row for each shipped configuration; the text of the one called `name`, or the rows of a folder.

    Raises InputError if no shipped configuration and no folder of them has that name.
    """
    listed = shipped_configurations() if name is None else find_shipped(name)
    is_one = name is not None and len(listed) == 1
    if output is OutputFormat.JSON:
        facts = [_as_json(item) for item in listed]
        print_json({**facts[0], "text": text_of(listed[0])} if is_one else facts)
    elif is_one:
        say(text_of(listed[0]).rstrip("\n"))
    else:
        print_table([_row(item) for item in listed])
        say(
            "needs: in the present folder, or in that of --data. runs: arms x seeds, in a sweep x cells. "
            "minutes: of all runs, on two cores."
        )
        say("driftscale run NAME plays one; driftscale new FILE --like NAME writes a file like it.")


def text_of(configuration: ShippedConfiguration) -> str:
    """The text of the configuration's file."""
    return configuration.path.read_text(encoding="utf-8")


def _row(item: ShippedConfiguration) -> dict[str, object]:
    return {
        "name": item.name,
        "what it shows": item.summary,
        "needs": ", ".join(dict.fromkeys(map(_folder, item.data))) or "nothing",
        "runs": item.runs,
        "minutes": None if item.minutes is None else f"{item.minutes:g}",
    }


def _folder(path: str) -> str:
    """The folder that is or holds what a configuration needs."""
    return f"{path.rpartition('/')[0] if PurePosixPath(path).suffix else path}/"


def _as_json(item: ShippedConfiguration) -> dict[str, object]:
    return {
        "name": item.name,
        "path": str(item.path),
        "about": item.about,
        "summary": item.summary,
        "data": list(item.data),
        "arms": item.arms,
        "seeds": item.seeds,
        "cells": item.cells,
        "runs": item.runs,
        "minutes": item.minutes,
    }
