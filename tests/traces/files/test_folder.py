"""Bad trace folders: one line each, with the file, and the row or the key."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from emulator.errors import DataFileError
from tests.traces.files.bad_folders import BAD_FACTS, BAD_FEATURES, BAD_ROWS
from tests.traces.files.written import ROWS, with_cell, without, write_trace
from traces.files import ARRIVALS, FACTS, FEATURES, FileFacts, open_folder
from traces.files.facts import file_facts


def refusal(folder: Path) -> str:
    """The message with which a folder is refused, below the folder's name; it is one line."""
    with pytest.raises(DataFileError) as refused:
        open_folder(folder)
    message = str(refused.value)
    assert "\n" not in message
    assert refused.value.exit_code == 2
    return message.removeprefix(f"{folder}/")


def test_a_good_folder_is_opened(tmp_path: Path) -> None:
    folder = open_folder(write_trace(tmp_path / "t"))
    rows = folder.rows
    assert rows.clients == ("ann", "bob")
    assert rows.client.tolist() == [0, 0, 0, 1, 1, 1]
    assert rows.label.tolist() == ROWS["label"]
    assert rows.classes == ("0", "1")
    assert rows.when == "step"
    assert rows.at.tolist() == ROWS["step"]
    assert rows.split is not None
    assert rows.split.tolist() == [0, 1, 0, 0, 0, 1]
    assert rows.count is None
    assert rows.concept is None
    assert folder.features.features(np.array([5, 1])).tolist() == [[5, 50], [1, 10]]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (FACTS, "not a trace folder: it has no trace.toml"),
        (
            ARRIVALS,
            "has no arrivals.parquet; a trace folder has trace.toml, arrivals.parquet and feat",
        ),
        (FEATURES, "has no features.npy; a trace folder has trace.toml, arrivals.parquet and features.npy"),
    ],
)
def test_a_missing_file_is_named(tmp_path: Path, name: str, message: str) -> None:
    folder = write_trace(tmp_path / "t")
    (folder / name).unlink()
    assert refusal(folder).startswith(f"{folder}: {message}")


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    assert refusal(tmp_path / "t") == f"{tmp_path / 't'}: no such folder"


@pytest.mark.parametrize(("rows", "message"), BAD_ROWS)
def test_a_bad_column_or_value_is_named_with_its_row(tmp_path: Path, rows: Any, message: str) -> None:
    said = refusal(write_trace(tmp_path / "t", rows))
    assert said.startswith(ARRIVALS)
    assert message in said


@pytest.mark.parametrize("blank", ["", " \t"])
def test_a_blank_label_is_missing(tmp_path: Path, blank: str) -> None:
    rows = without(label=["a", "b", "a", blank, "b", "a"])
    assert refusal(write_trace(tmp_path / "t", rows)) == f"{ARRIVALS}, row 4: label is missing"


def test_a_label_that_is_no_class_is_named_with_the_classes(tmp_path: Path) -> None:
    rows = without(label=["a", "b", "a", "c", "b", "c"])
    said = refusal(write_trace(tmp_path / "t", rows, facts={"classes": ["b", "a"]}))
    assert said == f"{ARRIVALS}, row 4: label 'c': no such class; trace.toml names 2: b, a"
    said = refusal(write_trace(tmp_path / "t", with_cell("label", 2, 2), facts={"classes": ["b", "a"]}))
    assert said == f"{ARRIVALS}, row 2: label = 2: must be from 0 to 1"


def test_the_order_of_named_classes_is_that_of_trace_toml(tmp_path: Path) -> None:
    rows = without(label=["a", "b", "a", "b", "b", "a"])
    named = open_folder(write_trace(tmp_path / "t", rows, facts={"classes": ["b", "x", "a"]})).rows
    assert named.label.tolist() == [2, 0, 2, 0, 0, 2]
    assert named.classes == ("b", "x", "a")
    assert open_folder(write_trace(tmp_path / "t", rows)).rows.classes == ("a", "b")


def test_a_category_of_pandas_is_read_as_its_texts(tmp_path: Path) -> None:
    label = pa.array(["b", "a", "b", "a", "a", "b"]).dictionary_encode()
    assert open_folder(write_trace(tmp_path / "t", without(label=label))).rows.label.tolist() == [
        1,
        0,
        1,
        0,
        0,
        1,
    ]


def test_a_category_of_whole_numbers_is_read_as_the_numbers(tmp_path: Path) -> None:
    client = pa.array([7, 7, 7, 3, 3, 3]).dictionary_encode()
    rows = open_folder(write_trace(tmp_path / "t", without(client=client))).rows
    assert np.asarray(rows.clients).tolist() == [3, 7]
    assert rows.client.tolist() == [1, 1, 1, 0, 0, 0]


def test_times_are_microseconds_in_utc(tmp_path: Path) -> None:
    noon = datetime(1970, 1, 2, 12)
    for kind, wanted in (
        (pa.timestamp("ns"), 129_600_000_000),
        (pa.timestamp("us", "+02:00"), 129_600_000_000),
        (pa.date32(), 86_400_000_000),
    ):
        rows = without("step", time=pa.array([noon] * 6, pa.timestamp("us")).cast(kind, safe=False))
        assert open_folder(write_trace(tmp_path / "t", rows)).rows.at.tolist() == [wanted] * 6


def test_a_time_beyond_the_calendar_is_named_with_its_row(tmp_path: Path) -> None:
    for kind, value in (
        (pa.timestamp("ms"), 2**60),
        (pa.timestamp("us"), -(2**62)),
        (pa.date32(), 2**31 - 1),
    ):
        integer = pa.int32() if kind == pa.date32() else pa.int64()
        times = pa.array([0, 0, value, 0, 0, 0], integer).cast(kind)
        said = refusal(write_trace(tmp_path / "t", without("step", time=times)))
        assert said.startswith(f"{ARRIVALS}, row 3: time is out of range: years 1 to 9999")


def test_a_category_of_times_is_read_as_the_times(tmp_path: Path) -> None:
    times = pa.array([datetime(1970, 1, 2)] * 6).dictionary_encode()
    at = open_folder(write_trace(tmp_path / "t", without("step", time=times))).rows.at
    assert at.tolist() == [86_400_000_000] * 6


def test_damaged_arrivals_are_one_line(tmp_path: Path) -> None:
    folder = write_trace(tmp_path / "t")
    whole = (folder / ARRIVALS).read_bytes()
    for damaged in (b"", b"PAR1", whole[: len(whole) // 2], whole[:-1], b"client,label\n1,2\n"):
        (folder / ARRIVALS).write_bytes(damaged)
        assert refusal(folder).startswith(f"{ARRIVALS}: cannot be read as parquet (")


@pytest.mark.slow
@pytest.mark.parametrize("name", [ARRIVALS, FEATURES, FACTS])
def test_a_flipped_byte_is_one_line_or_another_value(tmp_path: Path, name: str) -> None:
    folder = write_trace(tmp_path / "t")
    whole, messages = (folder / name).read_bytes(), []
    for place in {*range(0, len(whole), 11), min(594, len(whole) - 1)}:  # 594: a negative number of rows
        damaged = bytearray(whole)
        damaged[place] ^= 1
        (folder / name).write_bytes(damaged)
        try:
            open_folder(folder)
        except DataFileError as error:
            messages.append(str(error))
    assert len(messages) > 0
    assert not any("\n" in message for message in messages)


@pytest.mark.parametrize(("features", "message"), BAD_FEATURES)
def test_features_of_another_type_or_shape_are_refused(
    tmp_path: Path, features: np.ndarray, message: str
) -> None:
    said = refusal(write_trace(tmp_path / "t", features=features))
    assert said.startswith(f"{FEATURES}: {message}")


def npy(header: str, values: bytes = b"") -> bytes:
    """An .npy file of version 1.0 with this header."""
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + values


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x93NUMPY",
        b"PK\x03\x04 an archive",
        npy("{'descr': '|u1', 'fortran_order': False, 'shape': (600, 2)}", bytes(12)),
        npy("{'descr': '|u1', 'fortran_order': False, 'shape': (6, 2)}", bytes(11)),
        npy("{'descr': '|u1', 'fortran_order': False, 'shape': (6, 2)}", bytes(13)),
        npy("{'descr': '|u1', 'fortran_order': False, 'shape': (-6, -2)}", bytes(12)),
        npy("{'descr': '|u1', 'fortran_order': False, 'shape': (2**40, 2**40)}", bytes(12)),
        npy(f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({2**62}, {2**62})}}", bytes(12)),
        npy("{'descr': (), 'fortran_order': False, 'shape': (6, 2)}", bytes(12)),
        npy("{'descr': [()], 'fortran_order': False, 'shape': (6, 2)}", bytes(12)),
        npy("{'descr': '|u1', 'shape': (6, 2)}", bytes(12)),
        npy("(" * 20_000),
        npy("-" * 20_000 + "1"),
        npy("{" + "'a': 'b"),
    ],
)
def test_damaged_features_are_one_line(tmp_path: Path, content: bytes) -> None:
    folder = write_trace(tmp_path / "t")
    (folder / FEATURES).write_bytes(content)
    assert refusal(folder).startswith(f"{FEATURES}: ")


@pytest.mark.parametrize(("facts", "message"), BAD_FACTS)
def test_a_bad_key_of_trace_toml_is_named(tmp_path: Path, facts: dict[str, Any], message: str) -> None:
    said = refusal(write_trace(tmp_path / "t", facts=facts))
    assert said.startswith(f"{FACTS}: {message}")


def test_a_trace_toml_without_version_or_that_is_not_toml_is_refused(tmp_path: Path) -> None:
    folder = write_trace(tmp_path / "t")
    (folder / FACTS).write_text("")
    assert refusal(folder) == f"{FACTS}: version: Field required"
    for text in ("version = ", "version = 1\nversion = 1", "\x00"):
        (folder / FACTS).write_text(text)
        assert refusal(folder).startswith(f"{FACTS}: cannot be read as TOML (")


def test_another_size_than_the_recorded_one_is_refused(tmp_path: Path) -> None:
    folder = write_trace(tmp_path / "t")
    for name in (ARRIVALS, FEATURES):
        size = (folder / name).stat().st_size
        facts = {"files": {name: {"bytes": size + 1, "sha256": "0" * 64}}}
        said = refusal(write_trace(folder, facts=facts))
        assert (
            said == f"{name}: has {size} bytes, but trace.toml records {size + 1}: changed since it was built"
        )


def test_recorded_digests_are_taken_and_others_computed(tmp_path: Path) -> None:
    folder = write_trace(tmp_path / "t")
    size = (folder / FEATURES).stat().st_size
    recorded = FileFacts(bytes=size, sha256="0" * 64).model_dump(by_alias=True)
    opened = open_folder(write_trace(folder, facts={"files": {FEATURES: recorded}}))
    assert opened.digests == {ARRIVALS: file_facts(folder / ARRIVALS).sha256, FEATURES: "0" * 64}
