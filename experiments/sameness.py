"""Compares nested results to the bit, checks that arguments were not written to, and that state is stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import cache
from operator import is_
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from coordinator.federation.stored_parts import StoredParts
from emulator.storage.state_tree import from_bytes, to_bytes
from emulator.storage.stateful import Stateful


class WritesError(AssertionError):
    """A call has written to its arguments."""


@contextmanager
def left_alone(*arguments: Any) -> Iterator[None]:
    """Within it, `arguments` must not change; WritesError if an array or plain value in them did.

    Arrays are compared, and not made read-only meanwhile: torch warns of a read-only array that it would only
    read, and what is written through another view of the same memory is noticed too.
    """
    leaves, containers = _walked(arguments)
    arrays = [leaf for leaf in leaves if isinstance(leaf, np.ndarray)]
    before = [_bits(array) for array in arrays]
    yield
    # NOTE: containers that hold the objects that they held are not walked again, for performance reasons:
    # every call of a part is checked.
    now = [read(container) for container, read, _ in containers]
    is_as_before = before == [_bits(array) for array in arrays] and all(
        (len(items) == len(held) and all(map(is_, items, held))) or same(items, held)
        for items, (_, _, held) in zip(now, containers, strict=True)
    )
    if not is_as_before:
        raise WritesError("it writes to its arguments")


def same(left: Any, right: Any) -> bool:
    """Whether two results hold the same arrays and plain values, to the bit.

    The keys of mappings are not compared, nor values of other types.
    """
    ours, theirs = _walked(left)[0], _walked(right)[0]
    return len(ours) == len(theirs) and all(map(_same_leaf, ours, theirs))


PLAIN = (type(None), bool, int, float, str)

Read = Callable[[Any], Sequence[Any]]
"""Lists what an instance of some type holds."""

Container = tuple[Any, Read, Sequence[Any]]
"""A dataclass, mapping or sequence, with what reads it, and what it held when it was walked."""


def _bits(array: npt.NDArray[Any]) -> tuple[Any, ...]:
    return array.dtype, array.shape, array.tobytes()


def _same_leaf(left: Any, right: Any) -> bool:
    are_arrays = isinstance(left, np.ndarray), isinstance(right, np.ndarray)
    if all(are_arrays):
        return _bits(left) == _bits(right)
    return not any(are_arrays) and repr(left) == repr(right)


def _walked(value: Any) -> tuple[list[Any], list[Container]]:
    """Every array and plain value in `value`, and the dataclasses, mappings and sequences that hold them."""
    leaves: list[Any] = []
    containers: list[Container] = [(value, _only, (value,))]
    for _, _, items in containers:  # to which the loop appends
        for item in items:
            read = _reader(type(item))
            if read is _only:
                leaves.append(item)
            elif read is not None:
                containers.append((item, read, read(item)))
    return leaves, containers


def _only(value: Any) -> Sequence[Any]:
    return (value,)


def _reader_of(kind: type) -> Read | None:
    """What lists the content of an instance of `kind`: `_only` for a leaf, None if it is of another type."""
    if issubclass(kind, (np.ndarray, *PLAIN)):
        return _only
    if issubclass(kind, list | tuple):
        return tuple
    if issubclass(kind, Mapping):
        return lambda mapping: [mapping[key] for key in sorted(mapping)]
    if is_dataclass(kind):
        names = [field.name for field in fields(kind)]
        return lambda value: [getattr(value, name) for name in names]
    return None


_reader: Callable[[type], Read | None] = cache(_reader_of)


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
