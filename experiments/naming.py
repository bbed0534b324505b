"""Adds the place, such as a file or an arm, to the message of an error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from emulator.errors import ConfigurationError, InputError


@contextmanager
def naming(where: str) -> Iterator[None]:
    """In the block, an InputError gets the prefix "`where`: ", unless it has it or `where` is empty.

    A ConfigurationError stays one; any other InputError becomes a plain InputError.
    """
    try:
        yield
    except InputError as error:
        if not where or str(error).startswith(f"{where}: "):
            raise
        kind = ConfigurationError if isinstance(error, ConfigurationError) else InputError
        raise kind(f"{where}: {error}") from error
