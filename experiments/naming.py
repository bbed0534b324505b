"""Parts of messages: the place of an InputError as its beginning, the first of many items or letters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from emulator.errors import ConfigurationError, InputError

MOST_NAMED = 3
"""Items that `abbreviated` names."""


def abbreviated(items: Sequence[str], separator: str = "; ") -> str:
    """The first `MOST_NAMED` of `items`, and how many more there are, as one line.

    >>> abbreviated(["a", "b"]), abbreviated(["a", "b", "c", "d"], ", ")
    ('a; b', 'a, b, c and 1 more')
    """
    named = separator.join(items[:MOST_NAMED])
    return named if len(items) <= MOST_NAMED else f"{named} and {len(items) - MOST_NAMED} more"


def shorten(text: str, most: int) -> str:
    """The text, of which at most `most` letters are shown: the first ones, then an ellipsis.

    >>> shorten("smartphones", 11), shorten("smartphones", 6)
    ('smartphones', 'smart…')
    """
    return text if len(text) <= most else f"{text[: most - 1]}…"


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
