"""Errors of a public call, of which a user sees one line and no traceback of ours."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from emulator.errors import EmulatorError, InterruptionError
from emulator.own.code import before_any_run

P = ParamSpec("P")
T = TypeVar("T")


class InterruptedRunError(KeyboardInterrupt):
    """Runs were interrupted, as by Ctrl-C, and are stored.

    A KeyboardInterrupt, so that a loop over several calls ends as well, also if it catches Exception.
    """

    def _render_traceback_(self) -> list[str]:
        """The lines that IPython shows instead of a traceback."""
        return [f"KeyboardInterrupt: {self}"]


def one_line(function: Callable[P, T]) -> Callable[P, T]:
    """`function`, whose expected errors have a traceback that ends here, and no cause.

    In a notebook they are shown as one line (`EmulatorError._render_traceback_`).
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            with before_any_run():
                return function(*args, **kwargs)
        except InterruptionError as error:
            raise InterruptedRunError(str(error)) from None
        except EmulatorError as error:
            raise error.with_traceback(None) from None

    return call
