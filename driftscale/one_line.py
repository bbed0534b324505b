"""Errors of a public call, of which a user sees one line, in words of Python, and no traceback of ours."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter, signature
from typing import ParamSpec, TypeVar

from emulator.errors import EmulatorError, InterruptionError, UnknownNameError
from emulator.own.code import before_any_run

P = ParamSpec("P")
T = TypeVar("T")

OPTION = re.compile(r"(?<![\w-])--([a-z]+(?:-[a-z]+)*)(:| ?)|driftscale [a-z]+ [^;]*")
"""An option of a command and what follows; or a whole command, whose options are left as they are."""

VALUE = re.compile(r"['\"\d/]|[b-z]\b")
"""What a value that follows an option in a sentence begins with: a quote, a digit, a slash; or one letter."""

SETTING = re.compile(r"--set '([\w.]+)=([^']*)'")


class InterruptedRunError(KeyboardInterrupt):
    """Runs were interrupted, as by Ctrl-C, and are stored.

    A KeyboardInterrupt, so that a loop over several calls ends as well, also if it catches Exception.
    """

    def _render_traceback_(self) -> list[str]:
        """The lines that IPython shows instead of a traceback."""
        return [f"KeyboardInterrupt: {self}"]


def one_line(function: Callable[P, T]) -> Callable[P, T]:
    """`function`, whose expected errors have a traceback that ends here, and no cause.

    They name its arguments, where the engine names options. In a notebook they are shown as one line
    (`EmulatorError._render_traceback_`).
    """
    parameters = signature(function).parameters
    takes_no_others = all(one.kind is not Parameter.VAR_KEYWORD for one in parameters.values())

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            if takes_no_others:
                _refuse_unknown(function.__name__, parameters, kwargs)
            with before_any_run():
                return function(*args, **kwargs)
        except InterruptionError as error:
            raise InterruptedRunError(in_python(str(error), parameters)) from None
        except EmulatorError as error:
            error.args = (in_python(str(error), parameters), *error.args[1:])
            raise error.with_traceback(None) from None

    return call


def _refuse_unknown(call: str, parameters: Mapping[str, Parameter], given: Mapping[str, object]) -> None:
    """UnknownNameError, with what was meant, for an argument that the call does not have."""
    for name in given:
        if name not in parameters:
            from experiments.remedies.misreadings import remedy

            known = remedy("key", name) if "set" in parameters else ""
            if known in parameters:
                known = f"did you mean {known}={given[name]!r}?"
            elif known and " " not in known:
                known = f"did you mean set={{{known!r}: {given[name]!r}}}?"
            raise UnknownNameError("argument", name, parameters, f"driftscale.{call}", known)


def in_python(message: str, parameters: Mapping[str, Parameter]) -> str:
    """The message with arguments of the call in the place of options of a command.

    >>> def call(out=None, fresh=False, arms=()): ...
    >>> known = signature(call).parameters
    >>> in_python("a holds runs; take another --out, or --fresh to delete them", known)
    'a holds runs; take another out=, or fresh=True to delete them'
    >>> in_python("--out /a: cannot be made a folder", known), in_python("--arms: unknown arm 'b'", known)
    ('out=/a: cannot be made a folder', "arms: unknown arm 'b'")
    """

    def argument(found: re.Match[str]) -> str:
        option, after = found.groups()
        name = "folder" if option == "out" and "folder" in parameters else (option or "").replace("-", "_")
        if name not in parameters:
            return found[0]
        if after == ":":
            return f"{name}:"
        if parameters[name].default is False:
            return f"{name}=True{after}"
        begins = f": {message}"[: found.start() + 2].endswith(": ")
        return f"{name}=" if begins or VALUE.match(message, found.end()) else f"{name}={after}"

    return OPTION.sub(argument, SETTING.sub(r"set={'\1': \2}", message))
