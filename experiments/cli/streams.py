"""Standard output and standard error when one of them is closed, full, or no longer read.

Standard output carries a command's result: if it cannot be written, the command ends with an error that
states it. Standard error carries notes: if they cannot be written, they are dropped.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any, TextIO, cast

STANDARD = (0, 1, 2)


class Output:
    """A stream whose text must arrive; raises LostOutputError if it cannot be written.

    That is not an OSError, because libraries handle the OSError of a closed pipe themselves, and end the
    process without a message.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError as error:
            raise self._lost(error) from error

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            raise self._lost(error) from error

    def _lost(self, error: OSError) -> Exception:
        from emulator.errors import LostOutputError

        _discard(self._stream)
        return LostOutputError(error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Notes:
    """A stream that may be gone, such as a closed terminal; text that cannot be written is dropped."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def standard_streams() -> Iterator[None]:
    """Context in which `sys.stdout` is an `Output` and `sys.stderr` is a `Notes`.

    At its end both are restored and flushed; text that cannot be written then is dropped.
    """
    _occupy_closed_descriptors()
    before = sys.stdout, sys.stderr
    out = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115  (never closed)
    notes = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout, sys.stderr = cast(TextIO, Output(out)), cast(TextIO, Notes(notes))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        for stream in (out, notes):
            try:
                stream.flush()
            except OSError:
                _discard(stream)


def _occupy_closed_descriptors() -> None:
    """Open /dev/null for every standard stream that was closed when the process started.

    Otherwise a log or a checkpoint would get the descriptor of that stream, and with it the text that others
    write to the stream. Writing to standard output stays an error: its descriptor is opened for reading only.
    """
    for number in STANDARD:
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_WRONLY if number == 2 else os.O_RDONLY)  # takes the lowest free number


def _discard(stream: IO[str]) -> None:
    """Redirect `stream` to /dev/null, so that its buffered text is dropped.

    Otherwise the interpreter would flush it again at exit, fail, and change the exit code.
    """
    with suppress(OSError, ValueError):  # the stream has no descriptor, as in a test
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
