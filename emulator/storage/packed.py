"""Integers and floats as JSON in a run's log: mostly one value per client, compressed if they are many.

Up to `PLAIN` entries an array is a list, with null for NaN. A longer one is an object: `dtype`, and in `zlib`
the little-endian bytes, compressed with zlib and encoded in base64. An object with `"difference": true` is to
be added to the last array written under the same name, since of a million clients only a few move in each
round.
"""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np

from emulator.arrays import Floats32, Ints

PLAIN = 1000
COMPRESSION = 1  # compresses labels about as well as higher levels, a million in a hundredth of a second
MOST_ENTRIES = 2**26  # of an array that is read: one for each client of a run
DTYPES = ("|i1", "<i2", "<i4", "<i8", "<f4")  # of the arrays that are written

Array = Ints | Floats32


def packed(values: Array, last: Array | None = None) -> Any:
    """`values` (n,) as JSON.

    If `values` are integers, `last` may be the array (n,) written before: a long array is then written as its
    difference from `last`.
    """
    if len(values) <= PLAIN and values.dtype.kind == "i":
        return values.tolist()
    if len(values) <= PLAIN:
        return [None if value != value else value for value in values.tolist()]
    if last is not None:
        return {**packed(_wide(values) - _wide(last)), "difference": True}
    values = _narrow(values) if values.dtype.kind == "i" else values
    content = values.astype(values.dtype.newbyteorder("<")).tobytes()
    compressed = base64.b64encode(zlib.compress(content, COMPRESSION)).decode("ascii")
    return {"dtype": values.dtype.newbyteorder("<").str, "zlib": compressed}


def unpacked(
    value: Any,
    kind: type[np.int64] | type[np.float32],
    last: Array | None = None,
    most_entries: int = MOST_ENTRIES,
) -> Any:
    """Inverse of `packed`.

    Args:
        value: the JSON value.
        kind: the expected type of number; the array may have a narrower one of the same sort.
        last: the array read before, to which a difference is added.
        most_entries: the largest number of entries; not much more is ever decompressed.

    Raises:
        ValueError: `value` is not such an array, or has more than `most_entries` entries.
    """
    try:
        is_list = isinstance(value, list)
        array = _from_list(value, kind) if is_list else _from_bytes(value, kind, most_entries)
        if len(array) > most_entries:
            raise ValueError(f"it has more than {most_entries} entries")
        if is_list or not value.get("difference"):
            return array
        if last is None or len(last) != len(array):
            raise ValueError("a difference to an array of another length, or to none")
        return _narrow(_wide(last) + _wide(array))
    except (TypeError, KeyError, OverflowError, FloatingPointError, zlib.error) as error:
        raise ValueError(str(error)) from error


def _from_bytes(value: Any, kind: type[np.int64] | type[np.float32], most_entries: int) -> Any:
    if value["dtype"] not in DTYPES or np.dtype(value["dtype"]).kind != np.dtype(kind).kind:
        raise ValueError(f"an array of dtype {str(value['dtype'])[:20]}")
    dtype = np.dtype(value["dtype"])
    compressed = base64.b64decode(value["zlib"], validate=True)
    unpacker = zlib.decompressobj()
    content = unpacker.decompress(compressed, most_entries * dtype.itemsize + 1)
    if len(content) > most_entries * dtype.itemsize:
        raise ValueError(f"it has more than {most_entries} entries")
    if not unpacker.eof or unpacker.unused_data:
        raise ValueError("it ends too early or too late")
    return np.frombuffer(content, dtype)


def _from_list(entries: list[Any], kind: type[np.int64] | type[np.float32]) -> Any:
    number = int if kind is np.int64 else float | None
    if not all(isinstance(entry, number) for entry in entries):
        raise ValueError("not a list of numbers")
    with np.errstate(over="raise"):
        return np.array([np.nan if entry is None else entry for entry in entries], dtype=kind)


def _wide(values: Array) -> Ints:
    return values.astype(np.int64)


def _narrow(values: Array) -> Any:
    """The integers in the narrowest signed type that holds them all."""
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    for bits in (8, 16, 32):
        if -(2 ** (bits - 1)) <= low and high < 2 ** (bits - 1):
            return values.astype(f"i{bits // 8}")
    return values.astype(np.int64)
