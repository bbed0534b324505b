"""Whether two answers are the same to the bit, and whether what a part was shown is still what it was."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt


@contextmanager
def left_alone(*seen: Any) -> Iterator[None]:
    """AssertionError when an array that is `seen` was written to meanwhile."""
    kept = [array.copy() for array in _arrays(seen)]
    yield
    assert same(kept, _arrays(seen)), "it writes to what it is shown"


def same(one: Any, other: Any) -> bool:
    """Whether two answers hold the same arrays and plain values, to the bit."""
    left, right = _arrays(one), _arrays(other)
    return len(left) == len(right) and all(
        a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
        for a, b in zip(left, right, strict=True)
    )


def _arrays(value: Any) -> list[npt.NDArray[Any]]:
    """Every array in `value`, through dataclasses, mappings and sequences; plain values are arrays too."""
    if isinstance(value, np.ndarray):
        return [value]
    if value is None or isinstance(value, bool | int | float | str):
        return [np.array(repr(value))]
    if isinstance(value, Mapping):
        return _arrays([value[key] for key in sorted(value)])
    if isinstance(value, list | tuple):
        return [array for item in value for array in _arrays(item)]
    if hasattr(value, "__dataclass_fields__"):
        return _arrays([getattr(value, item.name) for item in fields(value)])
    return []
