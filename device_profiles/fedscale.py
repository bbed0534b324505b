"""Importer of FedScale's pickles `client_device_capacity` and `client_behave_trace` into Parquet.

It is the only reader of pickles. A pickle is a program, so two things are done. Before it runs, its
instructions are scanned: only those found in the published files may occur, memo indices are bounded by the
file's size, and tuples may only be arguments (a million of them nested in a dictionary's key overflow the C
stack). When it runs, only four names resolve, and to stand-ins of our own that make a float or a dictionary;
NumPy's own `scalar` would unpickle its bytes once more, unguarded.
"""

from __future__ import annotations

import io
import pickle
import pickletools
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from device_profiles.fleet import ALIASES
from emulator.errors import DataFileError
from emulator.storage.bounded import is_file, read_bytes
from emulator.storage.checkpoints import write_durably

MAX_BYTES = 64 * 2**20
"""Most bytes of a file; the published files have 39 and 26 million bytes."""

LICENCE = "Apache-2.0 (SymbioticLab/FedScale); the authors ask for research use"
CAPACITY_KEYS = frozenset({"computation", "communication"})
BEHAVIOUR_KEYS = frozenset({"active", "inactive", "finish_time"})

FRAMING = ("PROTO", "FRAME", "STOP", "MARK", "BINGET", "LONG_BINGET")
MEMO_WRITES = ("BINPUT", "LONG_BINPUT", "MEMOIZE")
NUMBERS = ("NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT")
TEXTS = ("SHORT_BINBYTES", "BINUNICODE", "SHORT_BINUNICODE")
CONTAINERS = ("EMPTY_LIST", "APPEND", "APPENDS", "EMPTY_DICT", "SETITEM", "SETITEMS")
TUPLES = ("EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3")
CALLS = ("GLOBAL", "STACK_GLOBAL", "REDUCE", "BUILD")
OPCODES = frozenset((*FRAMING, *MEMO_WRITES, *NUMBERS, *TEXTS, *CONTAINERS, *TUPLES, *CALLS))


@dataclass(frozen=True)
class Imported:
    """The result of an import: a device table, or availability intervals."""

    kind: Literal["devices", "intervals"]
    path: Path
    num_devices: int
    num_rows: int
    num_empty_intervals: int  # dropped: they end where they start


def import_fedscale(path: Path, out: Path) -> Imported:
    """Convert one of the two published files, recognised by its content, to the Parquet table `out`.

    `client_device_capacity` becomes a device table that `device_profiles.table` reads; `client_behave_trace`
    becomes intervals: device_id, start_s, end_s, period_s (one row each, half-open). Devices are in the
    published order there, by which FedScale gives them to clients, and each has a row, if only an empty
    interval; speeds are in the order of device_id. DataFileError if the file is neither of
    the two, is damaged or too large, or has content that is not allowed, and if `out` is not a `.parquet`
    file or cannot be written.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     source, out = Path(folder, "client_device_capacity"), Path(folder, "devices.parquet")
    ...     _ = source.write_bytes(pickle.dumps({1: {"computation": 41.0, "communication": 8.0}}))
    ...     imported = import_fedscale(source, out)
    ...     columns = pq.read_table(out).to_pydict()
    >>> imported.kind, columns["seconds_per_sample"], columns["upload_bytes_per_s"]
    ('devices', [0.123], [1024.0])
    """
    if out.suffix != ".parquet":
        raise DataFileError(out, "the output must be a .parquet file")
    entries = _load(path)
    first = next(iter(entries.values()), None)
    keys = set(first) if type(first) is dict else set()
    if keys == CAPACITY_KEYS:
        table = _capacity(path, entries)
        _write(table, out)
        return Imported("devices", out, len(entries), table.num_rows, 0)
    if keys >= BEHAVIOUR_KEYS:
        table, num_empty = _behaviour(path, entries)
        _write(table, out)
        return Imported("intervals", out, len(entries), table.num_rows, num_empty)
    raise DataFileError(
        path,
        "is neither client_device_capacity (device -> computation, communication) "
        "nor client_behave_trace (device -> active, inactive, finish_time)",
    )


def _capacity(path: Path, entries: Mapping[int, Any]) -> pa.Table:
    """The device table; DataFileError for an entry that breaks a rule."""
    ids, rows = [], []
    for device, entry in entries.items():
        if type(entry) is not dict or entry.keys() != CAPACITY_KEYS:
            raise DataFileError(path, f"device {device}: must hold computation and communication")
        row = (entry["computation"], entry["communication"])
        if not all(type(value) in (int, float) for value in row):
            raise DataFileError(path, f"device {device}: computation and communication must be numbers")
        ids.append(device)
        rows.append(row)
    order = np.argsort(_array(path, ids, np.int64))
    values = _array(path, rows, np.float64)
    bad = ~(np.isfinite(values) & (values > 0))
    if bad.any():
        row_, column = np.argwhere(bad)[0]
        name = ("computation", "communication")[column]
        raise DataFileError(
            path, f"device {ids[row_]}: {name} = {values[row_, column]:g} must be finite and greater than 0"
        )
    seconds = values[order, 0] * ALIASES["compute_ms_per_sample"].factor
    bandwidth = values[order, 1] * ALIASES["bandwidth_kibit_per_s"].factor
    columns = {
        "device_id": np.array(ids, dtype=np.int64)[order],
        "seconds_per_sample": seconds,
        "download_bytes_per_s": bandwidth,
        "upload_bytes_per_s": bandwidth,
    }
    about = {
        "reference_model": "MobileNet v2 at 224x224",
        "reference_flops": "0.6e9",
        "source": "FedScale client_device_capacity (AI Benchmark inference times, tripled; MobiPerf Wi-Fi "
        "bandwidths of 1024 bits, both ways)",
        "licence": LICENCE,
    }
    return pa.table(columns).replace_schema_metadata(about)


def _behaviour(path: Path, entries: Mapping[int, Any]) -> tuple[pa.Table, int]:
    """The table of intervals, and the number of empty ones left out; DataFileError for a faulty entry."""
    ids, periods, counts = [], [], []
    starts: list[int] = []
    ends: list[int] = []
    for device, entry in entries.items():
        if type(entry) is not dict or not entry.keys() >= BEHAVIOUR_KEYS:
            raise DataFileError(path, f"device {device}: must hold active, inactive and finish_time")
        active, inactive, period = entry["active"], entry["inactive"], entry["finish_time"]
        if type(active) is not list or type(inactive) is not list or len(active) != len(inactive):
            raise DataFileError(path, f"device {device}: active and inactive must be lists of one length")
        if not all(type(value) is int for value in (period, *active, *inactive)):
            raise DataFileError(path, f"device {device}: active, inactive and finish_time must be integers")
        ids.append(device)
        periods.append(period)
        counts.append(max(len(active), 1))
        starts += active or [0]
        ends += inactive or [0]
    table = np.stack(
        [
            np.repeat(_array(path, ids, np.int64), counts),
            _array(path, starts, np.int64),
            _array(path, ends, np.int64),
            np.repeat(_array(path, periods, np.int64), counts),
        ]
    )
    start_s, end_s, period_s = table[1:]
    bad = (start_s < 0) | (end_s < start_s) | (period_s <= 0)
    if bad.any():
        device, start, end, period = table[:, np.flatnonzero(bad)[0]].tolist()
        raise DataFileError(
            path,
            f"device {device}: interval [{start}, {end}) with period {period} must start at 0 or later, "
            "not end before it starts, and have a period above 0",
        )
    place = np.repeat(np.arange(len(ids)), counts)
    order = np.lexsort((end_s, start_s, place))
    online_s = np.bincount(place, weights=end_s - start_s)
    is_first = np.append(True, np.diff(place) > 0)
    order = order[((end_s > start_s) | (is_first & (online_s[place] == 0)))[order]]
    kept = table[:, order]
    columns = dict(zip(("device_id", "start_s", "end_s", "period_s"), kept, strict=True))
    about = {"source": "FedScale client_behave_trace (FLASH, charging devices)", "licence": LICENCE}
    return pa.table(columns).replace_schema_metadata(about), table.shape[1] - kept.shape[1]


def _array(path: Path, values: list[Any], dtype: Any) -> np.ndarray[Any, Any]:
    try:
        return np.array(values, dtype=dtype)
    except OverflowError as error:
        raise DataFileError(path, "holds an integer of more than 64 bits") from error


def _write(table: pa.Table, out: Path) -> None:
    """Write `out` atomically."""
    buffer = pa.BufferOutputStream()
    pq.write_table(table, buffer)
    try:
        write_durably(out, buffer.getvalue().to_pybytes())
    except OSError as error:
        raise DataFileError(out, f"cannot be written ({error})") from error


# -- reading a pickle that may call nothing but our stand-ins ---------------------------------------------


class _Float64:
    """Stand-in for numpy.dtype: accepts little-endian float64 only."""

    __slots__ = ()

    def __init__(self, code: object, align: object = False, copy: object = True) -> None:
        if type(code) is not str or code != "f8":
            shown = repr(code[:20]) if type(code) is str else f"a {type(code).__name__}"
            raise _RefusedError(f"a NumPy dtype of {shown}; only 'f8' is read")

    def __setstate__(self, state: object) -> None:
        if type(state) is not tuple or state[1:5] != ("<", None, None, None):
            raise _RefusedError("a NumPy dtype that is not plain little-endian float64")


class _Scalar:
    """Stand-in for NumPy's scalar(): converts eight bytes to a float.

    It has no __dict__ that BUILD could change.
    """

    __slots__ = ()

    def __call__(self, dtype: object, data: object) -> float:
        if type(dtype) is not _Float64 or type(data) is not bytes or len(data) != 8:
            raise _RefusedError("a NumPy scalar that is not a float64")
        value: float = struct.unpack("<d", data)[0]
        return value


class _RefusedError(Exception):
    """A pickle asks for something that is not allowed; the message names it."""


ALLOWED: Mapping[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "scalar"): _Scalar(),
    ("numpy._core.multiarray", "scalar"): _Scalar(),
    ("numpy", "dtype"): _Float64,
    ("collections", "OrderedDict"): dict,
}


class _AllowListUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ALLOWED:
            allowed = ", ".join(".".join(key) for key in ALLOWED)
            raise _RefusedError(f"the global {f'{module}.{name}'[:80]!r}; only {allowed} are allowed")
        return ALLOWED[module, name]


def _load(path: Path) -> dict[int, Any]:
    """The dictionary in the pickle `path`, with integer keys; nothing that the file names is imported.

    DataFileError if there is no such dictionary, or if the pickle asks for anything that is not allowed.
    """
    if not is_file(path):
        raise DataFileError(path, "no such file")
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise DataFileError(path, f"has {size:,} bytes; FedScale's files have at most {MAX_BYTES:,}")
    try:
        data = read_bytes(path, MAX_BYTES)
    except (OSError, ValueError) as error:
        raise DataFileError(path, f"cannot be read ({error})") from error
    try:
        unpickler = _AllowListUnpickler(io.BytesIO(data))
        _scan(data, unpickler)
        content = unpickler.load()
    except _RefusedError as error:
        raise DataFileError(path, f"refused: this pickle asks for {error}") from error
    except Exception as error:  # a damaged pickle can raise anything at all
        reason = " ".join(str(error).split())[:120]
        raise DataFileError(path, f"cannot be read as a pickle ({type(error).__name__}: {reason})") from error
    if type(content) is not dict or not content:
        raise DataFileError(path, f"must hold a dictionary of devices, and holds {_name(content)}")
    for key in content:
        if type(key) is not int:
            raise DataFileError(path, f"its keys must be integers, and one is {_name(key)}")
    return content


def _name(value: object) -> str:
    # never its repr: that of a few hostile bytes can be gigabytes long
    return "nothing" if value == {} else f"a {type(value).__name__}"


def _scan(data: bytes, unpickler: _AllowListUnpickler) -> None:
    """Raise _RefusedError unless the pickle has only instructions that FedScale's files have.

    ValueError if `data` does not begin like a pickle.
    """
    argument = False  # whether the last value is a tuple
    for opcode, value, position in pickletools.genops(data):
        if opcode.name in ("GLOBAL", "INST") and isinstance(value, str):
            unpickler.find_class(*value.split(" ", 1))  # first, so that the error names the global
        if opcode.name not in OPCODES:
            if position == 0:
                raise ValueError("it does not begin like one")
            raise _RefusedError(f"the instruction {opcode.name}, which FedScale's files do not use")
        if opcode.name in MEMO_WRITES:
            if value is not None and value > len(data):
                raise _RefusedError(f"memo entry {value} in a file of {len(data)} bytes")
            continue
        if argument and opcode.name not in CALLS:
            raise _RefusedError("a tuple that is not the argument of a call")
        argument = opcode.name in TUPLES
