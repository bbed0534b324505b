"""Paths that are typed on the command line."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

from emulator.errors import InputError

ABSENT = (errno.ENOENT, errno.ENOTDIR)


def path_for(what: str) -> Callable[[str], Path]:
    """A parser of the argument or option `what`.

    It raises InputError for an empty text, which Python takes for the present folder, and for a path that
    cannot be looked at: too long, or behind a folder that may not be entered. There need be nothing at the
    path.
    """

    def parse(text: str) -> Path:
        if not text:
            raise InputError(f"{what}: is empty; a path is needed (. is the present folder)")
        path = Path(text)
        try:
            path.stat()
        except OSError as error:
            if error.errno not in ABSENT:
                raise InputError(f"{what} {text}: {error.strerror}") from error
        return path

    return parse
