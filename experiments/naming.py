"""The place of an InputError, such as a file or an arm, as the beginning of its message."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from emulator.errors import ConfigurationError, InputError


@contextmanager
def naming(where: str) -> Iterator[None]:
    """Context that begins the message of an InputError with "`where`: ".

    An error that already begins so, or an empty `where`, changes nothing. Otherwise a ConfigurationError
    stays one, and any other InputError becomes a plain InputError.
    """
    try:
        yield
    except InputError as error:
        if not where or str(error).startswith(f"{where}: "):
            raise
        kind = ConfigurationError if isinstance(error, ConfigurationError) else InputError
        raise kind(f"{where}: {error}") from error
