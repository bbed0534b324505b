"""Errors that say which file, or which arm of it, they are about."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from emulator.errors import ConfigurationError, InputError


@contextmanager
def naming(place: str) -> Iterator[None]:
    """Within it, an error about what was handed in starts with `place`, once; without a place, as it is."""
    try:
        yield
    except InputError as error:
        if not place or str(error).startswith(f"{place}: "):
            raise
        kind = ConfigurationError if isinstance(error, ConfigurationError) else InputError
        raise kind(f"{place}: {error}") from error
