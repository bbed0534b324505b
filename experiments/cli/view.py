"""`driftscale view`: writes a report, or the table of a folder, and opens it in a browser."""

from __future__ import annotations

import os
import sys
import webbrowser
from contextlib import ExitStack
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

from experiments.cli.output import note, say
from experiments.cli.reports import write_page

SCREEN = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
"""Environment variables of which one is set on Linux where a browser has a way to show itself."""


def view(directory: Path) -> None:
    """Write the page of a directory anew, print its path, and open it.

    A page that was there may be anybody's, and is never opened. Where there is no browser, as on most
    machines without a screen, a line on standard error says so; that is no error, since the path has been
    printed.

    Raises:
        InputError: There is no page to make, as `write_page` says.
        OSError: Something cannot be read, or not even a temporary folder can be written in.
    """
    what, page = _written(directory)
    say(f"{what}: {page}")
    if not (_has_screen() and webbrowser.open(page.resolve().as_uri())):
        say("no browser could be started: open the page by hand", aside=True)


def _has_screen() -> bool:
    """Whether a browser may have a screen; Python would start one in the terminal, which draws no figure."""
    return not sys.platform.startswith("linux") or any(name in os.environ for name in SCREEN)


def _written(directory: Path) -> tuple[str, Path]:
    """What the page is called, and its path: in the directory, or in a temporary folder that a line names."""
    try:
        return write_page(directory)
    except OSError as error:  # a folder of somebody else, an archive, a full disk
        problem = str(error)
    elsewhere = Path(mkdtemp(prefix="driftscale-view-"))
    with ExitStack() as failed:
        failed.callback(rmtree, elsewhere)
        written = write_page(directory, elsewhere)
        failed.pop_all()
    note(f"{directory}: no page can be written in it ({problem}); it is in a temporary folder, {elsewhere}")
    return written
