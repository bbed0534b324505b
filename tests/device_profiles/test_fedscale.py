from __future__ import annotations

import contextlib
import os
import pickle
import random
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from device_profiles import fedscale
from device_profiles.fedscale import import_fedscale
from device_profiles.table import read_device_table
from emulator.errors import DataFileError, EmulatorError

Refused = Callable[[bytes], str]

CAPACITY = {
    9: {"computation": np.float64(41), "communication": np.float64(1000)},
    2: {"computation": np.float64(100), "communication": np.float64(0.5)},
}
BEHAVIOUR = OrderedDict(
    {
        5: {
            "duration": 30,
            "inactive": [20, 50, 60],
            "finish_time": 86400,
            "active": [10, 30, 60],
            "model": "SM-A207F",
        },
        3: {"duration": 7, "inactive": [7], "finish_time": 172800, "active": [0], "model": "moto g(6)"},
    }
)


def published(content: object) -> bytes:
    """A pickle like the published files: protocol 3, and NumPy's module under its old name."""
    return pickle.dumps(content, protocol=3).replace(
        b"cnumpy._core.multiarray\n", b"cnumpy.core.multiarray\n"
    )


def write(folder: Path, data: bytes) -> Path:
    path = folder / "client_device_capacity"
    path.write_bytes(data)
    return path


@pytest.fixture
def refused(tmp_path: Path) -> Refused:
    """A function that imports bytes, which must be refused, and returns the error message."""

    def attempt(data: bytes) -> str:
        path = write(tmp_path, data)
        with pytest.raises(DataFileError) as error:
            import_fedscale(path, tmp_path / "out.parquet")
        message = str(error.value)
        assert message.startswith(f"{path}: ")
        assert "\n" not in message
        assert len(message) < 500
        assert not (tmp_path / "out.parquet").exists()
        return message

    return attempt


# -- import of the two files ------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", [3, 4, 5])
def test_capacity_becomes_a_device_table_in_training_seconds_and_bytes(tmp_path: Path, protocol: int) -> None:
    data = published(CAPACITY) if protocol == 3 else pickle.dumps(CAPACITY, protocol=protocol)
    done = import_fedscale(write(tmp_path, data), tmp_path / "phones.parquet")
    assert (done.kind, done.num_devices, done.num_rows, done.num_empty_intervals) == ("devices", 2, 2, 0)
    assert pq.read_table(done.path).to_pydict() == {
        "device_id": [2, 9],
        "seconds_per_sample": [pytest.approx(0.3), pytest.approx(0.123)],
        "download_bytes_per_s": [64, 128_000],
        "upload_bytes_per_s": [64, 128_000],
    }


def test_an_imported_capacity_is_a_profile_that_names_mobilenet(tmp_path: Path) -> None:
    done = import_fedscale(write(tmp_path, published(CAPACITY)), tmp_path / "phones.parquet")
    profile = read_device_table(done.path)
    assert profile.reference_model == "MobileNet v2 at 224x224"
    assert profile.reference_flops == 0.6e9
    assert "FedScale" in profile.source
    assert len(profile.draw(10, np.random.default_rng(0))) == 10


def test_behaviour_becomes_intervals_in_the_published_order_without_the_empty_ones(tmp_path: Path) -> None:
    done = import_fedscale(write(tmp_path, published(BEHAVIOUR)), tmp_path / "online.parquet")
    assert (done.kind, done.num_devices, done.num_rows, done.num_empty_intervals) == ("intervals", 2, 3, 1)
    assert pq.read_table(done.path).to_pydict() == {
        "device_id": [5, 5, 3],
        "start_s": [10, 30, 0],
        "end_s": [20, 50, 7],
        "period_s": [86400, 86400, 172800],
    }


def test_a_device_without_hours_keeps_its_row(tmp_path: Path) -> None:
    empty = {3: {**BEHAVIOUR[3], "active": [], "inactive": []}, 8: {**BEHAVIOUR[3], "active": [4, 5]}}
    empty[8] = {**empty[8], "inactive": [4, 5]}
    done = import_fedscale(write(tmp_path, published({**empty, 5: BEHAVIOUR[5]})), tmp_path / "o.parquet")
    rows = pq.read_table(done.path).to_pydict()
    assert rows["device_id"] == [3, 8, 5, 5]
    assert rows["start_s"][:2] == rows["end_s"][:2] == [0, 4]


def test_the_real_rows_of_capacity_are_read(tmp_path: Path, devices_data: Path) -> None:
    done = import_fedscale(
        devices_data / "fixture_client_device_capacity_13rows.pickle", tmp_path / "phones.parquet"
    )
    real = pq.read_table(devices_data / "fedscale_device_capacity_real_samples.parquet")
    ours = pq.read_table(done.path)
    assert done.num_devices == 13
    assert ours["device_id"].to_pylist() == sorted(real["device_id"].to_pylist())
    by_id = np.argsort(real["device_id"].to_numpy())
    ms, kibit = (real[name].to_numpy()[by_id] for name in ("compute_ms_per_sample", "bandwidth_kbps"))
    assert ours["seconds_per_sample"].to_numpy() == pytest.approx(3 * ms / 1000)
    assert ours["download_bytes_per_s"].to_numpy() == pytest.approx(128 * kibit)


def test_the_real_rows_of_behaviour_are_read(tmp_path: Path, devices_data: Path) -> None:
    done = import_fedscale(
        devices_data / "fixture_client_behave_trace_first10.pickle", tmp_path / "online.parquet"
    )
    real = pq.read_table(devices_data / "fedscale_availability_real_first10_intervals.parquet").to_pydict()
    expected = [
        row for row in zip(real["device_id"], real["start_s"], real["end_s"], strict=True) if row[2] > row[1]
    ]
    ours = pq.read_table(done.path).to_pydict()
    assert list(zip(ours["device_id"], ours["start_s"], ours["end_s"], strict=True)) == sorted(expected)
    assert done.num_empty_intervals == len(real["device_id"]) - len(expected)
    assert set(ours["period_s"]) <= {86400 * days for days in range(1, 16)}


def test_an_output_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    path = write(tmp_path, published(CAPACITY))
    with pytest.raises(DataFileError, match="cannot be written"):
        import_fedscale(path, tmp_path / "no_such_folder" / "out.parquet")
    with pytest.raises(DataFileError, match=r"the output must be a \.parquet file"):
        import_fedscale(path, tmp_path / "out.csv")
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


# -- content that breaks a rule ---------------------------------------------------------------------------


def changed(base: dict[int, Any], device: int, **values: object) -> dict[int, Any]:
    return {**base, device: {**base[device], **values}}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([1, 2], "must hold a dictionary of devices, and holds a list"),
        ({}, "must hold a dictionary of devices, and holds nothing"),
        ({"a": CAPACITY[9]}, "its keys must be integers, and one is a str"),
        ({1: 2}, "is neither client_device_capacity"),
        ({1: {"speed": 2}}, "is neither client_device_capacity"),
        (CAPACITY | {3: {"computation": 1.0}}, "device 3: must hold computation and communication"),
        (changed(CAPACITY, 2, computation="x"), "device 2: computation and communication must be numbers"),
        (changed(CAPACITY, 2, computation=True), "device 2: computation and communication must be numbers"),
        (changed(CAPACITY, 2, communication=np.float64(-1)), "device 2: communication = -1 must be finite"),
        (changed(CAPACITY, 2, computation=np.float64(0)), "device 2: computation = 0 must be finite and"),
        (changed(CAPACITY, 2, computation=np.float64("nan")), "device 2: computation = nan must be finite"),
        (changed(CAPACITY, 2, computation=10**400), "holds an integer of more than 64 bits"),
        (CAPACITY | {2**70: CAPACITY[2]}, "holds an integer of more than 64 bits"),
        (BEHAVIOUR | {4: {"active": []}}, "device 4: must hold active, inactive and finish_time"),
        (changed(BEHAVIOUR, 3, active=[0, 1]), "device 3: active and inactive must be lists of one length"),
        (changed(BEHAVIOUR, 3, active=None), "device 3: active and inactive must be lists of one length"),
        (changed(BEHAVIOUR, 3, active=[0.5]), "device 3: active, inactive and finish_time must be integers"),
        (changed(BEHAVIOUR, 3, active=[8]), "device 3: interval [8, 7) with period 172800 must start at 0"),
        (changed(BEHAVIOUR, 3, active=[-1]), "device 3: interval [-1, 7) with period 172800 must start at 0"),
        (changed(BEHAVIOUR, 3, finish_time=0), "device 3: interval [0, 7) with period 0 must start at 0"),
    ],
)
def test_content_that_breaks_a_rule_is_refused_by_device_and_rule(
    refused: Refused, content: object, message: str
) -> None:
    assert message in refused(published(content))


def test_a_file_of_no_pickle_is_refused(refused: Refused) -> None:
    assert "cannot be read as a pickle" in refused(b"")
    assert "cannot be read as a pickle" in refused(b"device_id,seconds_per_sample\n1,2\n")
    assert "cannot be read as a pickle" in refused(bytes(range(256)))


def test_a_missing_or_enormous_file_is_refused_unread(
    tmp_path: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DataFileError, match="no such file"):
        import_fedscale(tmp_path / "none", tmp_path / "out.parquet")
    monkeypatch.setattr(fedscale, "MAX_BYTES", 100)
    assert "bytes; FedScale's files have at most 100" in refused(published(CAPACITY))


@pytest.mark.slow
@pytest.mark.parametrize("content", [CAPACITY, BEHAVIOUR], ids=["capacity", "behaviour"])
def test_every_truncation_is_refused(refused: Refused, content: object) -> None:
    data = published(content)
    for length in range(len(data)):
        refused(data[:length])


@pytest.mark.slow
@pytest.mark.parametrize("content", [CAPACITY, BEHAVIOUR], ids=["capacity", "behaviour"])
def test_a_damaged_file_is_read_or_refused_and_never_crashes(tmp_path: Path, content: object) -> None:
    data, chance = published(content), random.Random(3)
    for _ in range(300):
        damaged = bytearray(data)
        for _ in range(chance.randint(1, 4)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        with contextlib.suppress(EmulatorError):
            import_fedscale(write(tmp_path, bytes(damaged)), tmp_path / "out.parquet")


# -- hostile pickles --------------------------------------------------------------------------------------


class Hostile:
    """A payload that runs a command if a trusting reader loads it."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, (self.command,)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("nested", [False, True])
def test_a_command_in_a_pickle_is_named_and_not_run(
    tmp_path: Path, refused: Refused, protocol: int, nested: bool
) -> None:
    ran = tmp_path / "ran"
    hostile = Hostile(f"touch {ran}")
    content = {1: {"computation": hostile, "communication": 1.0}} if nested else hostile
    message = refused(pickle.dumps(content, protocol=protocol))
    assert not ran.exists()
    if protocol >= 2 or not nested:
        assert f"refused: this pickle asks for the global '{os.system.__module__}.system'" in message
    pickle.loads(pickle.dumps(hostile, protocol=protocol))
    assert ran.exists()  # a trusting reader would have run it


@pytest.mark.parametrize(
    ("data", "asked_for"),
    [
        (b"cos\nsystem\n(S'true'\ntR.", "the global 'os.system'"),
        (b"(S'true'\nios\nsystem\n.", "the instruction STRING"),
        (b"\x80\x03(ios\nsystem\n.", "the global 'os.system'"),
        (b"\x80\x03cbuiltins\neval\nX\x01\x00\x00\x001\x85R.", "the global 'builtins.eval'"),
        (
            b"\x80\x03cnumpy.core.multiarray\n_reconstruct\n.",
            "the global 'numpy.core.multiarray._reconstruct'",
        ),
        (b"\x80\x04\x8c\x05numpy\x8c\x0cdtype.__call\x93.", "the global 'numpy.dtype.__call'"),
        (
            b"\x80\x04\x8c\x0bcollections\x8c\x13OrderedDict.fromkey\x93.",
            "the global 'collections.OrderedDict.",
        ),
        (b"\x80\x04\x8c\x03a\nb\x8c\x01c\x93.", "the global 'a\\nb.c'"),
        (b"\x80\x03\x82\x01.", "the instruction EXT1"),
        (b"\x80\x03U\x01aQ.", "the instruction SHORT_BINSTRING"),
        (b"\x80\x05\x96\x00\x00\x00\x00\x00\x01\x00\x00.", "cannot be read as a pickle"),
        (b"\x80\x03}r\xff\xff\xff\x7f.", "memo entry 2147483647 in a file of"),
        (b"\x80\x03}(" + b"N" + b"N\x86" * 1_000_000 + b"Nu.", "a tuple that is not the argument of a call"),
    ],
)
def test_what_fedscale_has_no_need_of_is_refused_by_name(
    refused: Refused, data: bytes, asked_for: str
) -> None:
    assert asked_for in refused(data)


def numpy_scalar(dtype: bytes, state: bytes, data: bytes) -> bytes:
    """A protocol-3 pickle of numpy's scalar(dtype, data), as NumPy writes it."""
    made = b"cnumpy\ndtype\nX" + len(dtype).to_bytes(4, "little") + dtype + b"\x89\x88\x87R" + state
    return b"\x80\x03cnumpy.core.multiarray\nscalar\n" + made + b"C" + bytes([len(data)]) + data + b"\x86R."


LITTLE = b"(K\x03X\x01\x00\x00\x00<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
BIG = LITTLE.replace(b"<", b">")


def test_a_numpy_scalar_of_objects_is_refused_unopened(tmp_path: Path, refused: Refused) -> None:
    ran = tmp_path / "ran"
    inner = pickle.dumps(Hostile(f"touch {ran}"), protocol=3)
    for code in (b"O8", b"O", b"|O"):
        message = refused(numpy_scalar(code, LITTLE, inner))
        assert f"a NumPy dtype of '{code.decode()}'; only 'f8' is read" in message
    assert not ran.exists()


def test_a_numpy_scalar_of_anything_but_eight_little_endian_bytes_is_refused(refused: Refused) -> None:
    eight = np.float64(41).tobytes()
    assert "holds a float" in refused(numpy_scalar(b"f8", LITTLE, eight))  # read, and no dictionary
    assert "not plain little-endian float64" in refused(numpy_scalar(b"f8", BIG, eight))
    assert "a NumPy scalar that is not a float64" in refused(numpy_scalar(b"f8", LITTLE, eight[:7]))
    assert "a NumPy dtype of 'i8'" in refused(numpy_scalar(b"i8", LITTLE, eight))


def test_a_pickle_cannot_change_the_stand_ins(tmp_path: Path, refused: Refused) -> None:
    attribute = b"X\x08\x00\x00\x00__call__"
    for name in (b"numpy.core.multiarray\nscalar", b"numpy\ndtype", b"collections\nOrderedDict"):
        for state in (b"}" + attribute + b"Ks", b"N}" + attribute + b"K\x01s\x86"):
            refused(b"\x80\x03c" + name + b"\n" + state + b"b.")
    assert import_fedscale(write(tmp_path, published(CAPACITY)), tmp_path / "out.parquet").num_rows == 2
