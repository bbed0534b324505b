import os
from pathlib import Path

import numpy as np
import pytest

from emulator.checkpoints import CheckpointFolder, make_folder, read_checkpoint, write_durably
from emulator.errors import DataFileError


def written(path, *rounds):
    folder = CheckpointFolder(path / "checkpoint")
    for number in rounds:
        folder.write(number, {"round": number})
    return folder


def test_the_last_two_are_kept(tmp_path):
    folder = written(tmp_path, 1, 2, 10)
    assert [file.name[:12] for file in folder.files()] == ["round-000010", "round-000002"]
    assert [read_checkpoint(file)["round"] for file in folder.files()] == [10, 2]
    assert list(folder.path.glob(".*")) == []


def test_of_one_round_the_last_written_is_the_newest(tmp_path):
    folder = CheckpointFolder(tmp_path)
    for number in range(3):
        folder.write(7, {"step": number})
        os.utime(folder.files()[0], ns=(number, number))
    assert read_checkpoint(folder.files()[0]) == {"step": 2}
    assert len(folder.files()) == 2


def test_writing_the_same_again_keeps_the_other(tmp_path):
    folder = written(tmp_path, 1, 2)
    folder.write(2, {"round": 2})
    assert len(folder.files()) == 2


@pytest.mark.parametrize("damage", [lambda c: b"", lambda c: c[:-3], lambda c: bytes([c[0] ^ 1]) + c[1:]])
def test_a_damaged_one_is_known_and_named(tmp_path, damage):
    file, older = written(tmp_path, 1, 2).files()
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(DataFileError, match="damaged") as raised:
        read_checkpoint(file)
    assert str(file) in str(raised.value)
    assert read_checkpoint(older) == {"round": 1}


def test_one_that_cannot_be_read_is_not_called_damaged(tmp_path, monkeypatch):
    file, older = written(tmp_path, 1, 2).files()
    monkeypatch.setattr("emulator.checkpoints.open_file", failing(OSError(5, "Input/output error")))
    with pytest.raises(OSError, match="Input/output error") as raised:
        read_checkpoint(file)
    assert raised.value.filename == str(file)
    monkeypatch.undo()
    older.unlink()
    with pytest.raises(FileNotFoundError):
        read_checkpoint(older)


def test_a_folder_that_cannot_be_read_is_not_called_empty(tmp_path, monkeypatch):
    folder = written(tmp_path, 1)
    monkeypatch.setattr(Path, "iterdir", failing(OSError(24, "Too many open files")))
    with pytest.raises(OSError, match="Too many open files"):
        folder.files()


def failing(error):
    def fail(*_, **__):
        raise error

    return fail


def test_what_a_killed_process_left_is_deleted_before_the_next_is_written(tmp_path):
    folder = written(tmp_path, 1)
    torn = [folder.path / f".round-00000{number}-x.{number}" for number in range(3)]
    for file in torn:
        file.touch()
    folder.write(2, {"round": 2})
    assert [file.name for file in folder.path.iterdir() if file.name.startswith(".")] == []
    assert len(folder.files()) == 2


def test_a_folder_that_is_not_there_has_none(tmp_path):
    folder = CheckpointFolder(tmp_path / "none")
    assert folder.files() == []
    folder.delete()


def test_delete_leaves_what_is_not_its_own(tmp_path):
    folder = written(tmp_path, 1)
    folder.delete()
    assert not folder.path.exists()
    folder = written(tmp_path, 1)
    (folder.path / "notes.txt").touch()
    (folder.path / ".round-000002-aside").touch()
    folder.delete()
    assert [file.name for file in folder.path.iterdir()] == ["notes.txt"]


def test_a_disk_without_room_leaves_the_earlier_ones(tmp_path, monkeypatch):
    folder = written(tmp_path, 1, 2)

    def no_room(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_room)
    with pytest.raises(OSError, match="No space left"):
        folder.write(3, {"round": 3})
    assert [file.name[:12] for file in folder.files()] == ["round-000002", "round-000001"]
    assert list(folder.path.glob(".*")) == []


def test_a_good_checksum_makes_no_state_of_other_bytes(tmp_path):
    import hashlib

    content = b"anything"
    file = tmp_path / f"round-000001-{hashlib.sha256(content).hexdigest()}.safetensors"
    file.write_bytes(content)
    with pytest.raises(DataFileError, match="not a checkpoint"):
        read_checkpoint(file)


@pytest.mark.parametrize("name", ["round-1.safetensors", "round-000001-beef.safetensors"])
def test_other_names_are_no_checkpoints(tmp_path, name):
    (tmp_path / name).touch()
    assert CheckpointFolder(tmp_path).files() == []
    with pytest.raises(DataFileError, match="not named as a checkpoint"):
        read_checkpoint(tmp_path / name)


def test_arrays_come_back(tmp_path):
    folder = CheckpointFolder(Path(tmp_path))
    folder.write(0, {"models": np.eye(3, dtype=np.float32)})
    assert read_checkpoint(folder.files()[0])["models"].tolist() == np.eye(3).tolist()


def test_the_names_of_new_folders_are_brought_to_the_disk(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr("emulator.checkpoints.sync_folder", synced.append)
    make_folder(tmp_path / "run" / "arm" / "seed-0")
    assert set(synced) == {tmp_path, tmp_path / "run", tmp_path / "run" / "arm"}
    synced.clear()
    written(tmp_path / "run" / "arm" / "seed-0", 1)
    assert synced == [tmp_path / "run" / "arm" / "seed-0", tmp_path / "run" / "arm" / "seed-0" / "checkpoint"]


def test_a_full_disk_does_not_say_which_file_and_we_do(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", failing(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space left") as raised:
        write_durably(tmp_path / "file", "content")
    assert raised.value.filename == str(tmp_path / "file")


def test_a_write_replaces_the_file_and_leaves_nothing_beside_it(tmp_path):
    path = tmp_path / "file"
    write_durably(path, "old")
    write_durably(path, b"new")
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_that_fails_keeps_what_was_there(tmp_path):
    path = tmp_path / "file"
    path.mkdir()  # a folder cannot be replaced by a file
    with pytest.raises(OSError, match="directory"):
        write_durably(path, "new")
    assert list(tmp_path.iterdir()) == [path]
