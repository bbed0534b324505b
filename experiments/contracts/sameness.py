"""Compares nested results to the bit, and checks that arguments were not written to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt


@contextmanager
def left_alone(*seen: Any) -> Iterator[None]:
    """Within it, `arguments` must not change; AssertionError if an array or plain value in them did."""
    kept = [leaf.copy() if isinstance(leaf, np.ndarray) else leaf for leaf in _leaves(seen)]
    yield
    assert _same_leaves(kept, _leaves(seen)), "it writes to what it is shown"


def same(one: Any, other: Any) -> bool:
    """Whether two results hold the same arrays and plain values, to the bit."""
    return _same_leaves(_leaves(one), _leaves(other))


PLAIN = {type(None), bool, int, float, str}

Leaf = npt.NDArray[Any] | str
"""An array, or a plain value as Python writes it."""


def _same_leaves(left: Sequence[Leaf], right: Sequence[Leaf]) -> bool:
    return len(left) == len(right) and all(map(_same_leaf, left, right))


def _same_leaf(one: Leaf, other: Leaf) -> bool:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    return isinstance(one, str) and isinstance(other, str) and one == other


def _leaves(value: Any) -> list[Leaf]:
    """Every array and plain value in `value`, through dataclasses, mappings and sequences."""
    leaves: list[Leaf] = []
    _collect(value, leaves)
    return leaves


def _collect(value: Any, leaves: list[Leaf]) -> None:
    # NOTE: by type where that will do. Views are looked through before and after every moment, which takes a
    # quarter of a check.
    kind = type(value)
    if kind is np.ndarray:
        leaves.append(value)
    elif kind in PLAIN:
        leaves.append(repr(value))
    elif kind in (list, tuple):
        for item in value:
            _collect(item, leaves)
    elif kind is dict:
        for key in sorted(value):
            _collect(value[key], leaves)
    elif fields := getattr(kind, "__dataclass_fields__", None):
        for name in fields:
            _collect(getattr(value, name), leaves)
    elif isinstance(value, np.ndarray):
        leaves.append(value)
    elif isinstance(value, tuple(PLAIN)):
        leaves.append(repr(value))
    elif isinstance(value, list | tuple):
        _collect(list(value), leaves)
    elif isinstance(value, Mapping):
        _collect(dict(value), leaves)
