"""Parsing of paths that are given on the command line, and the option --data."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from emulator.errors import InputError

ABSENT = (errno.ENOENT, errno.ENOTDIR)

DATA_VARIABLE = "DRIFTSCALE_DATA"
"""Environment variable with the folders of --data where the option is not given, separated as in PATH."""


def path_for(what: str) -> Callable[[str], Path]:
    """A parser for the path given to the argument or option `what`; the path need not exist.

    The parser raises InputError for an empty text, which Python takes for the current folder, and for a path
    that cannot be examined: one that is too long, or inside a folder without permission to enter.
    """

    def parse(text: str) -> Path:
        if not text:
            raise InputError(f"{what}: is empty; a path is needed (. is the current folder)")
        path = Path(text)
        try:
            path.stat()
        except OSError as error:
            if error.errno not in ABSENT:
                raise InputError(f"{what} {text}: {error.strerror}") from error
        return path

    return parse


def data_or_variable(given: Sequence[Path] | None) -> list[Path]:
    """The folders of --data: those `given`, or else those in the environment variable.

    A callback of the option. Typer would split the variable at spaces, which are common in paths.

    Raises:
        InputError: A path in the variable is empty or cannot be examined.
    """
    if given:
        return list(given)
    listed = os.environ.get(DATA_VARIABLE)
    return [path_for(DATA_VARIABLE)(text) for text in listed.split(os.pathsep)] if listed else []


Data = Annotated[
    list[Path] | None,
    typer.Option(
        "--data",
        callback=data_or_variable,
        help="Folder to look for the configuration's data files in (repeatable; default: the folders in "
        f"{DATA_VARIABLE}, separated by '{os.pathsep}').",
        metavar="PATH",
        parser=path_for("--data"),
    ),
]
