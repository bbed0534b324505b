"""Code of one's own: what is defined outside of our packages, by a user or a third party."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from emulator.errors import ConfigurationError, EmulatorError, RunError
from emulator.own_parts import OUR_PACKAGES, imported_modules, is_installed, top_of

packages: set[str] = set()
"""The packages of all parts of one's own that this process has built."""


class OwnCodeError(RunError):
    """Code of one's own has raised an error, or broken the protocol of its kind.

    Bad input, where no run has begun; a run ends in an ordinary RunError of it.
    """

    exit_code = ConfigurationError.exit_code


def name_of(code: Any) -> str:
    """The module and the name in it of a class or a function, or of an object's class: "my_parts:Steady"."""
    code = code if hasattr(code, "__qualname__") else type(code)
    return f"{code.__module__}:{code.__qualname__}"


@contextmanager
def before_any_run() -> Iterator[None]:
    """Context in which an error of own code is one of the configuration, since no run has begun."""
    try:
        with naming_own_code():
            yield
    except OwnCodeError as error:
        raise ConfigurationError(str(error)) from error


@contextmanager
def naming_own_code() -> Iterator[None]:
    """Context that turns an unexpected error which has come through own code into an OwnCodeError."""
    try:
        yield
    except (Exception, SystemExit) as error:
        of_own_code = error_of(error)
        if of_own_code is None:
            raise
        raise of_own_code from error


def error_of(error: BaseException) -> OwnCodeError | None:
    """The error for one that has come through own code; None for one that has not, or is expected."""
    if is_expected(error) or isinstance(error, OSError) or place_of(error) == "":
        return None
    return raised(error, "own code ")


def is_expected(error: BaseException) -> bool:
    """Whether an error is ours, or says that memory ran out, which torch says of a CPU by a text alone."""
    return isinstance(error, EmulatorError | MemoryError) or "can't allocate memory" in str(error)


def raised(error: BaseException, what: str) -> OwnCodeError:
    """The error of own code that has raised `error`, as `what` it did."""
    text = " ".join(str(error).split())
    return OwnCodeError(f"{what}raised {type(error).__name__}{f': {text}' if text else ''}{place_of(error)}")


def place_of(error: BaseException) -> str:
    """The last line of own code that an error has come through, as " (my_parts.py, line 12, in select)".

    Empty if it has come through none of the packages that parts of one's own are in.
    """
    steps = list(traceback.walk_tb(error.__traceback__))
    tops = [top_of(frame.f_globals.get("__name__")) for frame, _ in steps]
    if not {*packages, *map(top_of, imported_modules())} & set(tops):
        return ""
    frame, line = [step for step, top in zip(steps, tops, strict=True) if _is_own(step[0], top)][-1]
    return f" ({frame.f_code.co_filename}, line {line}, in {frame.f_code.co_name})"


def _is_own(frame: FrameType, top: str) -> bool:
    """Whether a frame is of own code, or of a file that is neither ours nor a library's, which it calls."""
    file = frame.f_code.co_filename
    if top in OUR_PACKAGES:
        return False
    return top in {*packages, *map(top_of, imported_modules())} or not (
        file.startswith("<") or is_installed(file)
    )
