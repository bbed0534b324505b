"""State as a tree of plain values and arrays, and its serialisation, for checkpoints and messages.

A tree is None, a bool, an int, a float, a str, an array or a numpy scalar, or a list, a tuple or a dict (with
keys that are str or int) of trees. It is serialised as a safetensors file: the arrays by their path in the
tree, and under `tree` the JSON of everything else. The round trip is exact to the bit: it keeps types of
numbers, NaN and infinities, and the memory order of an array, which its sums may depend on.
"""

from __future__ import annotations

import json
import math
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

from emulator.errors import RunError

Tree = Any
"""A tree as described above; not written as a recursive type, which would help nobody."""

T = TypeVar("T")

ROOT = "tree"
"""The tensor that holds the JSON."""

MOST_ITEM_BYTES = 8

NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def to_bytes(tree: Tree) -> bytes:
    """`tree` as a safetensors file; RunError names the path of a value that cannot be part of a tree.

    >>> from_bytes(to_bytes({"round": 3, "clients": np.array([4, 2]), "moved": {7: (1.5, None)}}))
    {'round': 3, 'clients': array([4, 2]), 'moved': {7: (1.5, None)}}
    """
    from safetensors.numpy import save

    arrays: dict[str, npt.NDArray[Any]] = {}
    text = json.dumps(_written(tree, "", arrays), allow_nan=False, separators=(",", ":"))
    arrays[ROOT] = np.frombuffer(text.encode(), dtype=np.uint8)
    return save(arrays)


def from_bytes(content: bytes) -> Tree:
    """Inverse of `to_bytes`; ValueError if `content` is not a serialised tree.

    Memory is allocated in proportion to the length of `content`.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        arrays = load(content)
        rest = json.loads(arrays.pop(ROOT).tobytes())
        tree = _read(rest, arrays)
        if arrays:
            raise ValueError(f"arrays that are not in the tree: {', '.join(sorted(arrays))[:80]}")
        return tree
    except (SafetensorError, KeyError, TypeError, ValueError, RecursionError, OverflowError) as error:
        raise ValueError(f"not a serialised state: {type(error).__name__}: {error}") from error


def as_tree(value: Any) -> Tree:
    """`value` with dataclasses, at any level of fields and mappings, replaced by dicts of their fields.

    A frozenset becomes the tuple of its members in ascending order.
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: as_tree(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        return {key: as_tree(item) for key, item in value.items()}
    return tuple(sorted(value)) if isinstance(value, frozenset) else value


def from_tree(kind: type[T], tree: Tree) -> T:
    """Inverse of `as_tree` for the dataclass `kind`; ValueError if `tree` has other fields."""
    names = _field_names(kind)
    if not isinstance(tree, Mapping) or set(tree) != names:
        raise ValueError(f"not the fields of {kind.__name__}: must be {', '.join(sorted(names))}")
    hints: dict[str, Any] = _hints(kind)  # type: ignore[arg-type]  # classes are hashable
    return kind(**{name: _field(hints[name], item) for name, item in tree.items()})


def _field(hint: Any, tree: Tree) -> Any:
    """The value of a field of type `hint`: a frozenset or a dataclass from its tree; else `tree`.

    A dataclass may be optional. In a union of dataclasses, it is the one that has the fields of `tree`.
    """
    if get_origin(hint) is frozenset:
        return frozenset(tree)
    members = get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    kinds = [member for member in members if isinstance(member, type) and is_dataclass(member)]
    if tree is None or not kinds:
        return tree
    fitting = [kind for kind in kinds if isinstance(tree, Mapping) and set(tree) == _field_names(kind)]
    return from_tree((fitting or kinds)[0], tree)


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)  # a millisecond of evaluating strings


def _field_names(kind: type) -> set[str]:
    return {item.name for item in fields(kind)}


def _written(tree: Tree, path: str, arrays: dict[str, npt.NDArray[Any]]) -> Any:
    """`tree` as JSON, with its arrays moved to `arrays`; `path` is where it is in the whole tree.

    Every JSON object is a tagged value: its first key states what it represents.
    """
    if tree is None or isinstance(tree, bool | str) or type(tree) is int:
        return tree
    if type(tree) is float:
        return tree if math.isfinite(tree) else {"float": str(tree)}
    if isinstance(tree, np.ndarray | np.generic):
        return _put_away(np.asarray(tree), isinstance(tree, np.generic), path, arrays)
    if isinstance(tree, list | tuple):
        items = [_written(item, f"{path}/{number}", arrays) for number, item in enumerate(tree)]
        return items if isinstance(tree, list) else {"tuple": items}
    if isinstance(tree, Mapping) and all(isinstance(key, str) or type(key) is int for key in tree):
        pairs = [[key, _written(item, f"{path}/{key}", arrays)] for key, item in tree.items()]
        return {"dict": pairs}
    kinds = (
        "None, bool, int, float, str, arrays of numbers, lists, tuples, and dicts whose keys are str or int"
    )
    raise RunError(f"state{path}: a {type(tree).__name__} cannot be stored; a state is made of {kinds}")


def _put_away(
    array: npt.NDArray[Any], is_scalar: bool, path: str, arrays: dict[str, npt.NDArray[Any]]
) -> Any:
    """Put an array into `arrays` and return the JSON object that stands for it.

    RunError if it is of a type that cannot be stored.
    """
    # Safetensors would lose information of wider floats and of the other byte order.
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > MOST_ITEM_BYTES or not array.dtype.isnative:
        raise RunError(
            f"state{path}: an array of {array.dtype} cannot be stored, only of bools or of numbers of at "
            f"most 64 bits, in this machine's byte order"
        )
    # Axes from the largest stride to the smallest, so that the order in memory is kept.
    axes = list(range(array.ndim))
    if not array.flags.c_contiguous:
        axes.sort(key=lambda axis: -abs(array.strides[axis]))
    name = f"{path or '/'}"
    while name in arrays or name == ROOT:
        name += "'"
    stored = array.transpose(axes)
    arrays[name] = stored if stored.flags.c_contiguous else stored.copy(order="C")
    kind = "scalar" if is_scalar else "array"
    return {kind: name} if axes == sorted(axes) else {kind: name, "axes": axes}


def _read(value: Any, arrays: dict[str, npt.NDArray[Any]]) -> Tree:
    """Inverse of `_written`; takes out of `arrays` those it uses."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list):
        return [_read(item, arrays) for item in value]
    return _read_object(value, arrays)


def _read_object(value: Any, arrays: dict[str, npt.NDArray[Any]]) -> Tree:
    """The tree of a JSON object that `_written` has made; ValueError if `value` is anything else."""
    match value:
        case {"float": str(name)} if name in NOT_FINITE:
            return NOT_FINITE[name]
        case {"tuple": list(items)}:
            return tuple(_read(item, arrays) for item in items)
        case {"dict": list(pairs)}:
            return {_key(key): _read(item, arrays) for key, item in pairs}
        case {"array": str(name)}:
            return _read_array(arrays.pop(name), value.get("axes"))
        case {"scalar": str(name)}:
            return arrays.pop(name)[()]
    raise ValueError(f"{str(value)[:40]} is not part of a state")


def _read_array(stored: npt.NDArray[Any], axes: Any) -> npt.NDArray[Any]:
    """A writeable copy of `stored` with its original order of axes; `axes` is the order it was stored in."""
    array = stored.copy()
    if axes is None:
        return array
    if sorted(axes) != list(range(array.ndim)):
        raise ValueError(f"axes {axes} of an array of {array.ndim}")
    return array.transpose(np.argsort(axes))


def _key(key: Any) -> str | int:
    if isinstance(key, str) or type(key) is int:
        return key
    raise ValueError(f"{key!r} is not a key: must be a str or an int")
