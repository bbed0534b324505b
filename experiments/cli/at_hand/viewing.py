"""`driftscale view`: opens a report, or the table of a folder of run directories, in a browser."""

from __future__ import annotations

import os
import sys
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from shlex import quote

from emulator.errors import InputError
from emulator.storage.own_files import path_below
from experiments.cli.output import say
from experiments.results.reading.recorded import EXPERIMENT_FILE

PAGES = {"report": "report.html", "table": "table.html"}
"""What a page is called, and its file in a run directory, or in a folder of them."""


SCREEN = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
"""Environment variables of which one is set on Linux where a browser has a way to show itself."""


def view(directory: Path) -> None:
    """Print the path of the page of a directory, and open it.

    Where there is no browser, as on most machines without a screen, a line on standard error says so; that is
    no error, since the path has been printed.

    Raises:
        InputError: There is no such folder, it has neither page, or it has nothing to do with runs.
    """
    what, page = _page_of(directory)
    say(f"{what}: {page}")
    if not (_has_screen() and webbrowser.open(page.resolve().as_uri())):
        say("no browser could be started: open the page by hand", aside=True)


def _has_screen() -> bool:
    """Whether a browser may have a screen; Python would start one in the terminal, which draws no figure."""
    return not sys.platform.startswith("linux") or any(name in os.environ for name in SCREEN)


def _page_of(directory: Path) -> tuple[str, Path]:
    if not directory.is_dir():
        raise InputError(f"{directory}: no such folder; must be a run directory, or a folder of them")
    for what, name in PAGES.items():
        page = path_below(directory, name)
        if page.is_file():
            return what, page
    if any((folder / EXPERIMENT_FILE).is_file() for folder in _folders(directory)):
        remedy = f"driftscale report {quote(str(directory))} makes it, once runs are finished"
        raise InputError(f"{directory}: has no report yet; {remedy}")
    raise InputError(f"{directory}: is neither a run directory nor a folder of them")


def _folders(directory: Path) -> Iterator[Path]:
    yield directory
    yield from directory.iterdir()
