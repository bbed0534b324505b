from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from emulator.errors import ForeignFileError
from emulator.storage.own_files import create_file, open_file, path_below


def a_link(path: Path) -> None:
    (path.parent / "elsewhere").write_text("precious")
    path.symlink_to("elsewhere")


def a_dangling_link(path: Path) -> None:
    path.symlink_to("nowhere")


def a_link_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        previous = Path.cwd()
        os.chdir(path.parent)  # its whole path may be too long for a socket
        try:
            listening.bind(path.name)
        finally:
            os.chdir(previous)


FOREIGN = {
    "link": (a_link, "is a link to elsewhere; nothing in a run directory"),
    "dangling link": (a_dangling_link, "is a link to nowhere"),
    "link to itself": (a_link_to_itself, "is a link to file"),
    "pipe": (os.mkfifo, "is a pipe, and a file belongs there; move it away"),
    "socket": (a_socket, "is a socket, and a file belongs there"),
    "folder": (Path.mkdir, "is a folder, and a file belongs there"),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_an_entry_that_is_not_a_regular_file_is_named_and_neither_opened_nor_waited_for(
    kind: str, tmp_path: Path
) -> None:
    make: Callable[[Path], object]
    make, problem = FOREIGN[kind]
    path = tmp_path / "file"
    make(path)
    for refuse in (
        lambda: path_below(tmp_path, "file"),
        lambda: open_file(path),
        lambda: open_file(path, in_place=True),
    ):
        with pytest.raises(ForeignFileError, match=re.escape(f"{path}: {problem}")):
            refuse()
    with pytest.raises(FileExistsError):
        create_file(path)
    assert not (tmp_path / "nowhere").exists()


def test_a_device_is_refused() -> None:
    with pytest.raises(ForeignFileError, match="/dev/null: is a device, and a file belongs there"):
        path_below(Path("/dev"), "null")
    with pytest.raises(ForeignFileError, match="/dev/null: is a device"):
        open_file(Path("/dev/null"))


def test_a_path_leads_through_folders_alone(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").touch()
    assert path_below(tmp_path, "real", "file") == tmp_path / "real" / "file"
    assert path_below(tmp_path, "real", is_folder=True) == tmp_path / "real"
    (tmp_path / "link").symlink_to("real")
    for names in (("link", "file"), ("link", "nothing"), ("link",)):
        with pytest.raises(ForeignFileError, match=f"{tmp_path}/link: is a link to real"):
            path_below(tmp_path, *names, is_folder=len(names) == 1)
    with pytest.raises(ForeignFileError, match="real/file: is a file, and a folder belongs there"):
        path_below(tmp_path, "real", "file", "more")


def test_there_need_be_nothing_yet(tmp_path: Path) -> None:
    assert path_below(tmp_path / "none", "arm", "seed-0", "log") == tmp_path / "none/arm/seed-0/log"
    (tmp_path / "file").touch()
    assert path_below(tmp_path / "file", "arm") == tmp_path / "file" / "arm"


def test_the_root_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk" / "file").touch()
    (tmp_path / "runs").symlink_to("disk")
    assert path_below(tmp_path / "runs", "file") == tmp_path / "runs" / "file"


def test_a_file_with_a_second_name_is_read_and_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("precious")
    (tmp_path / "other").hardlink_to(path)
    with open_file(path) as file:
        assert file.read() == b"precious"
    with pytest.raises(ForeignFileError, match="has another name elsewhere"):
        open_file(path, in_place=True)
    (tmp_path / "other").unlink()
    with open_file(path, in_place=True) as file:
        file.write(b"P")
    assert path.read_text() == "Precious"


def test_a_new_file_has_the_rights_that_a_new_file_has(tmp_path: Path) -> None:
    create_file(tmp_path / "ours").close()
    (tmp_path / "plain").touch()
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_nothing_is_left_open_where_a_file_is_refused(tmp_path: Path) -> None:
    descriptors = Path("/proc/self/fd")
    if not descriptors.is_dir():
        pytest.skip("open files cannot be counted here")
    before = len(list(descriptors.iterdir()))
    (tmp_path / "folder").mkdir()
    for _ in range(3):
        with pytest.raises(ForeignFileError):
            open_file(tmp_path / "folder")
    assert len(list(descriptors.iterdir())) == before
