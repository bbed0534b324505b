from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from emulator.errors import DataFileError
from experiments.locating import locator
from experiments.results.json_files import Identity
from experiments.running.source_files import SourceFiles
from tests.experiments.small import write_idx_folder


def test_located_files_are_recorded_with_size_and_hash(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_bytes(b"a,b\n" * 400_000)
    files = SourceFiles(locator(tmp_path, None), {})
    assert files("table.csv") == tmp_path / "table.csv"
    sha256 = hashlib.sha256(b"a,b\n" * 400_000).hexdigest()
    assert files.identities == {"table.csv": Identity(size=1_600_000, sha256=sha256)}
    again = SourceFiles(locator(tmp_path, None), files.identities)
    again("table.csv")
    assert again.identities == files.identities


def test_a_file_that_has_changed_is_named_before_anybody_reads_it(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("1")
    files = SourceFiles(locator(tmp_path, None), {})
    files("table.csv")
    (tmp_path / "table.csv").write_text("22")
    with pytest.raises(
        DataFileError, match=r"table\.csv: has changed .* 1 bytes of sha256 .* 2 bytes of sha256"
    ):
        SourceFiles(locator(tmp_path, None), files.identities)("table.csv")
    (tmp_path / "table.csv").unlink()
    with pytest.raises(DataFileError, match=r"table\.csv: not found"):
        SourceFiles(locator(tmp_path, None), files.identities)("table.csv")


def test_of_a_folder_of_images_the_four_that_are_read_count(tmp_path: Path) -> None:
    images = write_idx_folder(tmp_path / "images")
    files = SourceFiles(locator(tmp_path, None), {})
    files("images")
    assert len(files.identities) == 4
    (images / "readme.txt").touch()
    SourceFiles(locator(tmp_path, None), files.identities)("images")
    (images / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(DataFileError, match=r"images/t10k-labels-idx1-ubyte: is gone"):
        SourceFiles(locator(tmp_path, None), files.identities)("images")


def test_of_another_folder_all_files_count_but_hidden_ones(tmp_path: Path) -> None:
    folder = tmp_path / "clips"
    (folder / "inner").mkdir(parents=True)
    for name in ("a.wav", "b.wav", ".DS_Store"):
        (folder / name).write_text(name)
    files = SourceFiles(locator(tmp_path, None), {})
    files("clips")
    assert sorted(files.identities) == ["clips/a.wav", "clips/b.wav"]
