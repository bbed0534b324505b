"""Compares nested results to the bit, checks that arguments were not written to, and that state is stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from coordinator.federation.stored_parts import StoredParts
from emulator.storage.state_tree import from_bytes, to_bytes
from emulator.storage.stateful import Stateful


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


Part = TypeVar("Part", bound=Stateful)


def resumed(make: Callable[[], Part]) -> Part:
    """A stand-in for a part of `make`: every call goes to a fresh part, restored from the last state.

    A part that stores all of its state returns the same as if it had never been stored. A call raises
    RunError if the state cannot be stored, or an attribute that is not declared as state has changed.
    """
    return cast(Part, _Resumed(make))


class _Resumed:
    def __init__(self, make: Callable[[], Stateful]) -> None:
        self._make = make
        self._stored = to_bytes(make().state())
        self._restored: tuple[Stateful, StoredParts] | None = None  # one that has not been called yet

    def __getattr__(self, name: str) -> Any:
        if self._restored is None:
            part = self._make()
            self._restored = part, StoredParts({"part": part})
            part.restore(from_bytes(self._stored))
        attribute = getattr(self._restored[0], name)
        if not callable(attribute):
            return attribute
        _, stored = self._restored

        def call(*args: Any, **kwargs: Any) -> Any:
            result = attribute(*args, **kwargs)
            self._stored, self._restored = to_bytes(stored.state()["part"]), None
            return result

        return call
