"""What a protocol declares of the values that its methods return, and how an error shows another one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from emulator.errors import shorten

ACCEPTED: Mapping[Any, Any] = {
    bool: (bool, np.bool_),
    int: (int, np.integer),
    float: (float, int, np.floating, np.integer),
    Iterator: (Iterator, list, tuple, np.ndarray),
}
"""What is as good as an annotated type; besides, any array of floats is one of float64."""

NUMBERS = (ACCEPTED[int], ACCEPTED[float])  # which True is not

MOST_SHOWN = 100
"""Letters of a value that an error shows."""


class WrongAnswerError(AssertionError):
    """What a method has returned is not what its protocol declares; the message says what it must be."""


def expect(holds: Any, must: str) -> None:
    """Raise WrongAnswerError with `must` unless `holds`; for rules of `returns`."""
    if not holds:
        raise WrongAnswerError(must)


def expect_array(
    value: Any, shape: tuple[int, ...], kinds: str, least: float | None = None, most: float | None = None
) -> None:
    """Raise WrongAnswerError unless `value` is an array of this shape, of finite numbers within bounds.

    `kinds` are the letters of its dtype's kind, as numpy has them: "i", "b", "f"; integers are int64.
    """
    is_right = isinstance(value, np.ndarray) and value.shape == shape and value.dtype.kind in kinds
    is_right = is_right and (value.dtype.kind != "i" or value.dtype == np.int64)
    if is_right and value.size > 0 and value.dtype.kind != "b":
        low, high = value.min(), value.max()  # NaN if any number is
        is_right = low > -np.inf and high < np.inf
        is_right = is_right and (least is None or low >= least) and (most is None or high <= most)
    if not is_right:
        names = {"i": "int64", "f": "finite floats", "b": "bools"}
        bounds = "" if least is None else f" from {least} on" if most is None else f" from {least} to {most}"
        wanted = " or ".join(names[kind] for kind in kinds)
        raise WrongAnswerError(f"must be an array of shape {shape} of {wanted}{bounds}")


@cache
def annotated(function: Any) -> Any:
    """The type that a method of a protocol returns; Any if its annotation does not say, or is None."""
    try:
        found = get_type_hints(function).get("return", Any)
    except (NameError, TypeError):  # of a name that is imported for type checkers only
        return Any
    return Any if found is type(None) else found


def is_of(value: Any, kind: Any) -> bool:
    """Whether a value is of an annotated type, as far as that is seen at once: containers are not read."""
    origin, parts = get_origin(kind), get_args(kind)
    named = ACCEPTED.get(origin or kind, origin or kind)
    if origin in (Union, UnionType):
        return any(is_of(value, part) for part in parts)
    if getattr(named, "_is_protocol", False):
        return all(hasattr(value, name) for name in vars(named) if not name.startswith("_"))
    if kind is Any or not isinstance(named, type | tuple):
        return origin is not Literal or value in parts
    is_of_kind = isinstance(value, named) and not (isinstance(value, bool) and named in NUMBERS)
    if is_of_kind and origin is np.ndarray:
        wanted = np.dtype(get_args(parts[1])[0])
        return value.dtype.kind == "f" if wanted == np.float64 else bool(value.dtype == wanted)
    if is_of_kind and origin is tuple and Ellipsis not in parts:
        return len(value) == len(parts) and all(map(is_of, value, parts))
    return is_of_kind


def in_words(kind: Any) -> str:
    """An annotated type in an error."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return " or ".join(map(in_words, parts))
    if origin is np.ndarray:
        return f"an array of {np.dtype(get_args(parts[1])[0])}"
    if origin is tuple:
        return f"a tuple of {', '.join(map(in_words, parts))}"
    return "None" if kind is type(None) else getattr(origin or kind, "__name__", str(kind))


def shown(value: Any) -> str:
    """A value in an error: an array by its type, shape and bounds, anything else by its text."""
    if isinstance(value, np.ndarray):
        text = f"{value.dtype} of shape {value.shape}"
        if value.size > 0 and value.dtype.kind in "if":
            text += f", from {value.min()} to {value.max()}"
        return text
    text = " ".join(repr(value).split())
    if len(text) <= MOST_SHOWN:
        return text
    is_text = isinstance(value, str | list | tuple | dict)
    return shorten(text, MOST_SHOWN) if is_text else type(value).__name__
