"""Generated inputs (hypothesis): what a reader accepts satisfies the guarantees that its callers rely on."""

from __future__ import annotations

import copy
import json
import math
import struct
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from device_profiles import read_profile
from emulator.errors import DataFileError, InputError
from emulator.storage.bounded import json_document, toml_document
from emulator.storage.packed import unpacked
from emulator.storage.runlog import read_log
from emulator.storage.state_tree import from_bytes, to_bytes
from emulator.storage.tables import read_table
from experiments.config import parse_experiment
from tests.experiments.small import DRIFTING, SMALL
from tests.reliability.readers import READERS, TABLES
from traces.availability import IntervalAvailability
from traces.availability.intervals import read_intervals
from traces.idx import read_idx

WHOLE = st.integers(-(2**63), 2**63 - 1)
SCALARS = st.none() | st.booleans() | WHOLE | st.floats() | st.text(max_size=20)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
)
NUMBERS = st.floats() | st.integers(-(2**40), 2**40).map(float) | st.floats(0, 100)


def value_paths(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path (keys and indices) of every value in a document of dicts and lists."""
    items = document.items() if isinstance(document, dict) else enumerate(document)
    paths = []
    for key, value in items:
        paths.append((*path, key))
        if isinstance(value, dict | list):
            paths += value_paths(value, (*path, key))
    return paths


@st.composite
def configurations(draw: st.DrawFn) -> dict[str, Any]:
    """A valid configuration in which up to three values are replaced by arbitrary ones."""
    document = copy.deepcopy(draw(st.sampled_from([SMALL, DRIFTING, TABLES])))
    for _ in range(draw(st.integers(1, 3))):
        *path, last = draw(st.sampled_from(value_paths(document)))
        container = document
        for key in path:
            container = container[key]
        container[last] = draw(VALUES)
        document = copy.deepcopy(document)
    return document


@given(configurations())
def test_a_configuration_is_an_error_of_ours_or_written_out_reads_as_itself(document: dict[str, Any]) -> None:
    try:
        experiment = parse_experiment(document, "made up")
    except InputError as error:
        assert str(error).startswith("made up")  # noqa: PT017  (it may also be none)
        return
    assert (
        parse_experiment(tomllib.loads(experiment.to_toml()), "written").resolved() == experiment.resolved()
    )


@given(
    st.lists(st.tuples(st.text(max_size=3), *[NUMBERS] * 4), max_size=6),
    st.sampled_from([pa.float64(), pa.float32(), pa.string()]),
)
def test_a_fleet_that_is_read_is_finite_and_as_fast_as_a_fleet_must_be(
    rows: list[tuple[Any, ...]], kind: pa.DataType
) -> None:
    names = ("seconds_per_sample", "download_bytes_per_s", "upload_bytes_per_s", "latency_s")
    columns = {"device_id": pa.array([row[0] for row in rows], pa.string())}
    for column, name in enumerate(names, start=1):
        values = [row[column] for row in rows]
        columns[name] = pa.array(list(map(str, values)) if kind == pa.string() else values).cast(
            kind, safe=False
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "devices.parquet"
        pq.write_table(pa.table(columns), path)
        try:
            fleet = read_profile(path).draw(10, np.random.default_rng(0))
        except InputError:
            return
    for name, values in fleet.columns().items():
        assert np.isfinite(values).all()
        assert (values >= 0).all() if name == "latency_s" else (values > 0).all()


@given(st.lists(st.tuples(st.integers(0, 2), NUMBERS, NUMBERS), max_size=6), NUMBERS, st.booleans())
def test_availability_that_is_read_returns_later_instants(
    rows: list[tuple[int, float, float]], period_s: float, has_periods: bool
) -> None:
    columns: dict[str, list[Any]] = {
        name: [row[column] for row in rows] for column, name in enumerate(("device_id", "start_s", "end_s"))
    }
    if has_periods:
        columns["period_s"] = [period_s] * len(rows)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "windows.parquet"
        pq.write_table(pa.table(columns), path)
        try:
            intervals = read_intervals(read_table(path), align="origin")
        except DataFileError:
            return
    ids = np.arange(intervals.num_devices)
    availability = IntervalAvailability(intervals, ids)
    for time_s in (0.0, 1.5, 1e5):
        assert availability.online(ids, time_s).dtype == np.bool_
        assert (availability.next_online_s(ids, time_s) > time_s).all()
        assert (availability.next_offline_s(ids, time_s) > time_s).all()


@given(st.tuples(*[st.integers(0, 5) | st.integers(0, 2**32 - 1)] * 3), st.binary(max_size=130))
def test_an_idx_file_is_read_if_its_size_is_that_of_its_header(
    shape: tuple[int, ...], content: bytes
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x"
        path.write_bytes(struct.pack(">IIII", 0x803, *shape) + content)
        if math.prod(shape) == len(content) > 0:
            assert read_idx(path, 3).shape == shape
        else:
            with pytest.raises(DataFileError):
                read_idx(path, 3)


@given(VALUES | st.fixed_dictionaries({"dtype": VALUES, "zlib": VALUES, "difference": VALUES}))
def test_what_is_unpacked_is_an_array_of_few_entries_or_nothing(value: Any) -> None:
    for kind in (np.int64, np.float32):
        try:
            array = unpacked(value, kind, np.zeros(3, dtype=np.int64), 5)
        except ValueError:
            continue
        assert array.dtype.kind == np.dtype(kind).kind
        assert len(array) <= 5


@given(st.data())
def test_a_record_that_is_read_is_of_the_kinds_of_a_record(data: st.DataObject) -> None:
    lines = [json.loads(line) for line in READERS["log"].seeds[0].splitlines()]
    line = data.draw(st.sampled_from(lines))
    line[data.draw(st.sampled_from(sorted(line)))] = data.draw(VALUES)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        try:
            _, records = read_log(path)
        except DataFileError:
            return
    for record in records:
        assert type(record.round) is int
        assert math.isfinite(record.closed_s)
        assert record.accuracy is None or math.isfinite(record.accuracy)
        assert record.abandoned is not None


@given(st.text(max_size=200) | st.text("ab.=[]{}\"'#\n\\ 1", max_size=60))
def test_toml_is_read_as_its_own_parser_reads_it_or_refused(text: str) -> None:
    try:
        document = toml_document(text)
    except ValueError:
        return
    assert document == tomllib.loads(text)


@given(VALUES)
def test_json_without_nan_and_infinity_is_read_as_it_was_written(value: Any) -> None:
    text = json.dumps(value)
    if any(word in text for word in ("NaN", "Infinity")):
        return
    try:
        document = json_document(text)
    except ValueError:
        assert "\\ud" in text  # half a character
        return
    assert json.dumps(document) == text


@given(st.binary(max_size=200), st.integers(0, 400), st.integers(0, 255))
def test_bytes_that_are_no_state_are_refused(content: bytes, position: int, value: int) -> None:
    whole = bytearray(to_bytes({"a": np.arange(4), "b": [1.5, None]}))
    whole[position % len(whole)] = value
    for candidate in (content, bytes(whole)):
        try:
            from_bytes(candidate)
        except ValueError as error:
            assert "not a serialised state" in str(error)  # noqa: PT017  (it may also be one)
