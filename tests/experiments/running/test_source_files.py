from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest

from emulator.errors import DataFileError
from experiments.locating import locator
from experiments.results.reading.json_files import Identity
from experiments.running.source_files import SourceFiles
from tests.experiments.small import write_idx_folder
from tests.traces.files.written import write_trace
from traces.files import FileFacts, facts, file_facts, open_folder


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


@pytest.mark.parametrize("order", [("data/table.csv", "data"), ("data", "data/table.csv")])
def test_a_table_may_lie_in_the_folder_of_the_images(tmp_path: Path, order: tuple[str, str]) -> None:
    images = write_idx_folder(tmp_path / "data")
    (images / "table.csv").write_text("a\n1\n")
    files = SourceFiles(locator(tmp_path, None), {})
    for path in order:
        files(path)
    assert len(files.identities) == 5
    again = SourceFiles(locator(tmp_path, None), files.identities)
    for path in order:
        again(path)
    assert again.identities == files.identities
    (images / "table.csv").unlink()
    with pytest.raises(DataFileError, match=r"table\.csv: (is gone|not found)"):
        SourceFiles(locator(tmp_path, None), files.identities)(order[0])


def test_of_another_folder_all_files_count_but_hidden_ones(tmp_path: Path) -> None:
    folder = tmp_path / "clips"
    (folder / "inner").mkdir(parents=True)
    for name in ("a.wav", "b.wav", ".DS_Store"):
        (folder / name).write_text(name)
    files = SourceFiles(locator(tmp_path, None), {})
    files("clips")
    assert sorted(files.identities) == ["clips/a.wav", "clips/b.wav"]


def test_of_another_folder_nested_files_count_but_those_in_hidden_folders(tmp_path: Path) -> None:
    folder = tmp_path / "clips"
    for name in ("b/x.wav", "b/deep/y.wav", "a.wav", ".git/config", "b/.DS_Store"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    files = SourceFiles(locator(tmp_path, None), {})
    files("clips")
    assert sorted(files.identities) == ["clips/a.wav", "clips/b/deep/y.wav", "clips/b/x.wav"]
    (folder / "b" / "deep" / "y.wav").write_text("another")
    with pytest.raises(DataFileError, match=r"clips/b/deep/y\.wav: has changed"):
        SourceFiles(locator(tmp_path, None), files.identities)("clips")
    (folder / "b" / "deep" / "y.wav").unlink()
    with pytest.raises(DataFileError, match=r"clips/b/deep/y\.wav: is gone"):
        SourceFiles(locator(tmp_path, None), files.identities)("clips")


def test_linked_folders_count_once_and_a_circle_of_links_ends(tmp_path: Path) -> None:
    for name in ("clips/one", "store"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "store" / "a.wav").write_text("a")
    (tmp_path / "clips" / "linked").symlink_to(tmp_path / "store")
    (tmp_path / "clips" / "one" / "back").symlink_to(tmp_path / "clips")
    (tmp_path / "clips" / "z").symlink_to(tmp_path / "store")
    files = SourceFiles(locator(tmp_path, None), {})
    files("clips")
    assert sorted(files.identities) == ["clips/linked/a.wav"]


def test_of_a_trace_folder_the_digests_of_trace_toml_are_taken(tmp_path: Path) -> None:
    folder = write_trace(tmp_path / "t")
    (folder / "notes.txt").write_text("which nobody reads")
    recorded = {
        name: {"bytes": (folder / name).stat().st_size, "sha256": letter * 64}
        for name, letter in (("arrivals.parquet", "a"), ("features.npy", "f"))
    }
    write_trace(folder, facts={"files": recorded})
    files = SourceFiles(locator(tmp_path, None), {})
    files("t")
    toml = (folder / "trace.toml").read_bytes()
    assert files.identities == {
        "t/trace.toml": Identity(size=len(toml), sha256=hashlib.sha256(toml).hexdigest()),
        "t/arrivals.parquet": Identity(size=recorded["arrivals.parquet"]["bytes"], sha256="a" * 64),
        "t/features.npy": Identity(size=recorded["features.npy"]["bytes"], sha256="f" * 64),
    }
    (folder / "features.npy").write_bytes(b"other")
    with pytest.raises(DataFileError, match=r"features\.npy: has 5 bytes, but trace\.toml records \d+"):
        SourceFiles(locator(tmp_path, None), files.identities)("t")
    (folder / "features.npy").unlink()
    with pytest.raises(DataFileError, match=r"t/features\.npy: is gone"):
        SourceFiles(locator(tmp_path, None), files.identities)("t")


def test_targets_of_a_trace_folder_are_one_of_its_files(tmp_path: Path) -> None:
    folder = write_trace(tmp_path / "t")
    np.save(folder / "targets.npy", np.zeros((6, 1), np.float32))
    files = SourceFiles(locator(tmp_path, None), {})
    files("t")
    assert "t/targets.npy" in files.identities
    np.save(folder / "targets.npy", np.ones((6, 1), np.float32))
    with pytest.raises(DataFileError, match=r"t/targets\.npy: has changed since the runs"):
        SourceFiles(locator(tmp_path, None), files.identities)("t")
    (folder / "targets.npy").unlink()
    with pytest.raises(DataFileError, match=r"t/targets\.npy: is gone"):
        SourceFiles(locator(tmp_path, None), files.identities)("t")


def test_a_trace_folder_without_digests_is_hashed_once_in_a_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_trace(tmp_path / "t")
    for name in ("arrivals.parquet", "features.npy"):
        os.utime(folder / name, (0, 0))
    read: list[str] = []

    def hashed(path: Path) -> FileFacts:
        read.append(path.name)
        return file_facts(path)

    monkeypatch.setattr(facts, "file_facts", hashed)
    monkeypatch.setattr(facts, "_SETTLED_NS", -1)  # these files were changed a moment ago
    files = SourceFiles(locator(tmp_path, None), {})
    opened = open_folder(files("t"))
    assert sorted(read) == ["arrivals.parquet", "features.npy"]
    assert {name: files.identities[f"t/{name}"].sha256 for name in read} == opened.digests
    (folder / "features.npy").write_bytes((folder / "features.npy").read_bytes())
    open_folder(folder)
    assert read[2:] == ["features.npy"]


def test_a_file_that_was_written_a_moment_ago_is_hashed_again(tmp_path: Path) -> None:
    path = tmp_path / "a"
    for content in (b"1", b"2"):
        path.write_bytes(content)
        os.utime(path, (0, 0))
        assert facts.remembered_facts(path).sha256 == hashlib.sha256(content).hexdigest()
