"""Parsing of paths that are given on the command line."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

from emulator.errors import InputError

ABSENT = (errno.ENOENT, errno.ENOTDIR)


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
