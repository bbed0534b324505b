"""Standard output and standard error where one of them is closed, full or read by nobody any more.

What a command prints is its result: where it cannot be written, the command ends with an error that says so.
What it tells on standard error helps while somebody looks, and is lost otherwise.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any, TextIO, cast

STANDARD = (0, 1, 2)


class Output:
    """A stream whose text must arrive: LostOutputError where it cannot be written.

    Libraries take an OSError here (a closed pipe) for their own to deal with, and end the process silently.
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
    """A stream that may be gone, as a closed terminal is; what cannot be written to it is lost."""

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
    """Within it `sys.stdout` is an `Output` and `sys.stderr` are `Notes`; at the end nothing is left
    unwritten."""
    _occupy_closed_descriptors()
    before = sys.stdout, sys.stderr
    out = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115  (it is never closed)
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
    """Where a standard stream was closed from the start, its number must not become that of a log or a
    checkpoint, which would then hold what others write to it. Writing to standard output stays an error."""
    for number in STANDARD:
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_WRONLY if number == 2 else os.O_RDONLY)  # takes the lowest free number


def _discard(stream: IO[str]) -> None:
    """Let what is left in the buffers of `stream` go nowhere: the interpreter would try again when it ends,
    fail, and change the exit code."""
    with suppress(OSError, ValueError):  # no file, as in a test
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
