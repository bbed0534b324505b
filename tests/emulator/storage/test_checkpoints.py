import io
import os
from pathlib import Path

import numpy as np
import pytest

from emulator.errors import DataFileError, ForeignFileError
from emulator.storage.checkpoints import (
    ASIDE,
    CheckpointFolder,
    copy_durably,
    make_folder,
    naming_file,
    read_checkpoint,
    sync_folder,
    write_durably,
)
from emulator.storage.own_files import create_file


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
    monkeypatch.setattr("emulator.storage.checkpoints.open_file", failing(OSError(5, "Input/output error")))
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


def test_bytes_with_the_right_checksum_must_still_be_a_state(tmp_path):
    import hashlib

    content = b"anything"
    file = tmp_path / f"round-000001-{hashlib.sha256(content).hexdigest()}.safetensors"
    file.write_bytes(content)
    with pytest.raises(DataFileError, match="not a checkpoint"):
        read_checkpoint(file)


@pytest.mark.parametrize("name", ["round-1.safetensors", "round-000001-beef.safetensors"])
def test_files_with_other_names_are_not_checkpoints(tmp_path, name):
    (tmp_path / name).touch()
    assert CheckpointFolder(tmp_path).files() == []
    with pytest.raises(DataFileError, match="not named like a checkpoint"):
        read_checkpoint(tmp_path / name)


def test_arrays_come_back(tmp_path):
    folder = CheckpointFolder(Path(tmp_path))
    folder.write(0, {"models": np.eye(3, dtype=np.float32)})
    assert read_checkpoint(folder.files()[0])["models"].tolist() == np.eye(3).tolist()


def test_the_names_of_new_folders_are_brought_to_the_disk(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr("emulator.storage.checkpoints.sync_folder", synced.append)
    make_folder(tmp_path / "run" / "arm" / "seed-0")
    assert set(synced) == {tmp_path, tmp_path / "run", tmp_path / "run" / "arm"}
    synced.clear()
    written(tmp_path / "run" / "arm" / "seed-0", 1)
    assert synced == [tmp_path / "run" / "arm" / "seed-0", tmp_path / "run" / "arm" / "seed-0" / "checkpoint"]


def test_an_error_of_a_full_disk_gets_the_name_of_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", failing(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space left") as raised:
        write_durably(tmp_path / "file", "content")
    assert raised.value.filename == str(tmp_path / "file")


@pytest.mark.parametrize("call", ["fsync", "close"])
def test_an_error_of_a_folder_that_is_synced_has_its_name(call, tmp_path, monkeypatch):
    monkeypatch.setattr(os, call, failing(OSError(5, "Input/output error")))
    with pytest.raises(OSError, match="Input/output") as raised:
        sync_folder(tmp_path)
    assert raised.value.filename == str(tmp_path)


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


def test_nobody_can_put_a_link_where_a_file_will_be_written(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / f".file.{os.getpid()}").symlink_to(victim)
    temporary_names = set()

    def recorded(path, _create=create_file):
        temporary_names.add(path.name)
        return _create(path)

    with pytest.MonkeyPatch.context() as watched:
        watched.setattr("emulator.storage.checkpoints.create_file", recorded)
        for content in ("one", "two"):
            write_durably(tmp_path / "file", content)
    assert victim.read_text() == "precious"
    assert len(temporary_names) == 2
    assert all(ASIDE.fullmatch(name)["name"] == "file" for name in temporary_names)
    assert all(int(ASIDE.fullmatch(name)["pid"]) == os.getpid() for name in temporary_names)


def test_a_name_that_is_taken_after_all_is_not_written_through(tmp_path, monkeypatch):
    monkeypatch.setattr("secrets.token_hex", lambda n: "0" * 2 * n)
    aside = tmp_path / f".file.{os.getpid()}-{'0' * 16}"
    (tmp_path / "victim").write_text("precious")
    aside.symlink_to("victim")
    with pytest.raises(FileExistsError):
        write_durably(tmp_path / "file", "new")
    assert (tmp_path / "victim").read_text() == "precious"
    assert aside.is_symlink()


def test_a_link_at_the_place_of_the_file_is_replaced_and_not_followed(tmp_path):
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "file").symlink_to("victim")
    write_durably(tmp_path / "file", "new")
    assert (tmp_path / "victim").read_text() == "precious"
    assert not (tmp_path / "file").is_symlink()


@pytest.mark.parametrize("foreign", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("elsewhere")])
@pytest.mark.parametrize("name", [f"round-000002-{'0' * 64}.safetensors", ".round-000002-torn"])
def test_an_entry_named_like_a_checkpoint_that_is_not_a_file_is_refused_by_name(name, foreign, tmp_path):
    folder = written(tmp_path, 1)
    foreign(folder.path / name)
    for act in (lambda: folder.write(3, {}), folder.delete):
        with pytest.raises(ForeignFileError, match=name):
            act()
    assert [file.name[:12] for file in folder.path.glob("round-000001*")] == ["round-000001"]


def test_a_checkpoint_behind_a_link_is_not_read(tmp_path):
    [file] = written(tmp_path, 1).files()
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ForeignFileError, match="is a link to"):
        read_checkpoint(file)


def test_an_error_without_a_number_keeps_its_text():
    with pytest.raises(OSError, match="not seekable") as raised, naming_file(Path("x")):
        raise io.UnsupportedOperation("File or stream is not seekable.")
    assert str(raised.value) == "File or stream is not seekable."


def test_a_copy_replaces_what_is_there_and_follows_no_link(tmp_path):
    (tmp_path / "a").write_bytes(bytes(range(256)) * 1000)
    (tmp_path / "b").write_text("before")
    copy_durably(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == (tmp_path / "a").read_bytes()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    with pytest.raises(ForeignFileError, match="link: is a link"):
        copy_durably(tmp_path / "link", tmp_path / "b")
    with pytest.raises(FileNotFoundError):
        copy_durably(tmp_path / "gone", tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == (tmp_path / "a").read_bytes()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a", "b", "link"]
