"""Compares nested results to the bit, and checks that arguments were not written to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt


@contextmanager
def left_alone(*arguments: Any) -> Iterator[None]:
    """Within it, `arguments` must not change; AssertionError if an array or plain value in them did."""
    before = [leaf.copy() if isinstance(leaf, np.ndarray) else leaf for leaf in _leaves(arguments)]
    yield
    assert _same_leaves(before, _leaves(arguments)), "it writes to its arguments"


def same(left: Any, right: Any) -> bool:
    """Whether two results hold the same arrays and plain values, to the bit.

    The keys of mappings are not compared, nor values of other types.
    """
    return _same_leaves(_leaves(left), _leaves(right))


PLAIN = {type(None), bool, int, float, str}

Leaf = npt.NDArray[Any] | str
"""An array, or the repr of a plain value."""


def _same_leaves(left: Sequence[Leaf], right: Sequence[Leaf]) -> bool:
    return len(left) == len(right) and all(map(_same_leaf, left, right))


def _same_leaf(left: Leaf, right: Leaf) -> bool:
    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
        return left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()
    return isinstance(left, str) and isinstance(right, str) and left == right


def _leaves(value: Any) -> list[Leaf]:
    """Every array and plain value in `value`, through dataclasses, mappings and sequences."""
    leaves: list[Leaf] = []
    _collect(value, leaves)
    return leaves


def _collect(value: Any, leaves: list[Leaf]) -> None:
    # NOTE: compares the exact type first: views are collected before and after every call of a part, which
    # takes a quarter of a check.
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
    else:
        _collect_derived(value, leaves)


def _collect_derived(value: Any, leaves: list[Leaf]) -> None:
    """Do as `_collect`, for instances of subclasses of arrays, plain values and containers."""
    if isinstance(value, np.ndarray):
        leaves.append(value)
    elif isinstance(value, tuple(PLAIN)):
        leaves.append(repr(value))
    elif isinstance(value, list | tuple):
        _collect(list(value), leaves)
    elif isinstance(value, Mapping):
        _collect(dict(value), leaves)
