from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from emulator.errors import RunError
from traces.tables.columns import MAPPED_FROM_BYTES, Columns

LAYOUT = {
    "narrow": (np.dtype(np.uint8), 65536),
    "wide": (np.dtype(np.int64), 8192),
    "none": (np.dtype(np.int32), 0),
}


@pytest.fixture
def mapped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Map all columns, however small."""
    monkeypatch.setattr("traces.tables.columns.MAPPED_FROM_BYTES", 1)


@contextmanager
def largest_file(num_bytes: int) -> Iterator[None]:
    """Limit the size of files, which to a writer looks like a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def maps() -> str:
    return Path("/proc/self/maps").read_text()


def test_what_was_written_is_read_back_whether_mapped_or_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for threshold in (MAPPED_FROM_BYTES, 1):
        monkeypatch.setattr("traces.tables.columns.MAPPED_FROM_BYTES", threshold)
        columns = Columns(LAYOUT, tmp_path)
        for name, (dtype, length) in LAYOUT.items():
            columns[name][:] = np.arange(length).astype(dtype)
            columns.drop_pages()
        for name, (dtype, length) in LAYOUT.items():
            assert columns[name].dtype == dtype
            assert np.array_equal(columns[name], np.arange(length).astype(dtype))


def test_small_columns_need_no_folder() -> None:
    assert Columns(LAYOUT, Path("nowhere"))["wide"].shape == (8192,)


@pytest.mark.usefixtures("mapped")
def test_the_file_has_no_name_and_is_gone_with_its_columns(tmp_path: Path) -> None:
    columns = Columns(LAYOUT, tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert str(tmp_path) in maps()
    del columns
    assert str(tmp_path) not in maps()


@pytest.mark.usefixtures("mapped")
def test_without_a_folder_it_lies_in_the_systems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    columns = Columns(LAYOUT, None)
    assert str(tmp_path) in maps()
    assert len(columns["wide"]) == 8192


@pytest.mark.parametrize("threshold", [1, MAPPED_FROM_BYTES])
def test_sealed_columns_are_only_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threshold: int
) -> None:
    monkeypatch.setattr("traces.tables.columns.MAPPED_FROM_BYTES", threshold)
    columns = Columns(LAYOUT, tmp_path)
    columns.seal()
    with pytest.raises(ValueError, match="read-only"):
        columns["wide"][0] = 1


@pytest.mark.usefixtures("mapped")
def test_a_disk_without_room_is_refused_with_bytes_place_and_ways_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=131071))
    with pytest.raises(RunError) as refused:
        Columns(LAYOUT, tmp_path)
    assert str(refused.value) == (
        f"trace: its samples take 131072 bytes (0.00 GiB), for which there is no room in {tmp_path} "
        f"(No space left on device); make some, take a folder on a larger disk, or lower "
        f"trace.samples_per_step, the number of clients or round.rounds"
    )
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=131072))
    Columns(LAYOUT, tmp_path)


@pytest.mark.usefixtures("mapped")
@pytest.mark.parametrize("has_call", [True, False])
def test_a_disk_that_fills_up_all_the_same_is_refused_before_anything_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_call: bool
) -> None:
    if not has_call:
        monkeypatch.delattr(os, "posix_fallocate")
    with largest_file(100_000), pytest.raises(RunError, match=r"131072 bytes .* \(File too large\)"):
        Columns(LAYOUT, tmp_path)
    assert np.array_equal(Columns(LAYOUT, tmp_path)["wide"], np.zeros(8192))


@pytest.mark.usefixtures("mapped")
def test_a_folder_that_is_not_there_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"cannot be laid out in .*gone \(No such file or directory\)"):
        Columns(LAYOUT, tmp_path / "gone")
