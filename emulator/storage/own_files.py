"""Paths and files below an untrusted folder, such as a run directory.

Any entry may be something else than the expected file: a link out of the folder, a pipe that never ends, a
folder. Every path below the folder is made by `path_below`, which refuses these and names them. Files are
opened without following links, so that a link that replaces a file in the meantime is not followed either.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from emulator.errors import ForeignFileError

KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFDIR: "a folder",
    stat.S_IFREG: "a file",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}


def path_below(root: Path, *names: str, is_folder: bool = False) -> Path:
    """The path `root/names...`, of which every existing entry below `root` is of the expected kind.

    Args:
        root: trusted; it may itself be a link.
        names: names of the folders on the way, then of the file.
        is_folder: whether the last entry must be a folder, instead of a regular file.

    Raises:
        ForeignFileError: names the first entry that is of another kind, such as a link.
    """
    path = os.fspath(root)
    for depth, name in enumerate(names, start=1):
        path = os.path.join(path, name)  # noqa: PTH118  (called for each file of each run)
        try:
            mode = os.lstat(path).st_mode
        except (FileNotFoundError, NotADirectoryError):
            break
        _refuse_other(Path(path), mode, is_folder or depth < len(names))
    return root.joinpath(*names)


def entries(folder: Path, pattern: str) -> list[Path]:
    """The paths that `folder.glob(pattern)` finds; a folder that is deleted meanwhile has none."""
    while True:
        with suppress(FileNotFoundError):  # Python 3.11 lists a folder that it has seen, and that may be gone
            return list(folder.glob(pattern))


def delete_if_empty(folder: Path) -> None:
    """Delete `folder` if it is empty and can be, unlike a link, a mount point or the present folder."""
    with suppress(OSError):
        folder.rmdir()


def create_file(path: Path) -> BinaryIO:
    """Create a file and open it for writing; FileExistsError if the name is taken, even by a link."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o666), "wb")


def open_file(path: Path, *, in_place: bool = False) -> BinaryIO:
    """Open a regular file for reading, or for changes if `in_place`.

    ForeignFileError for any other entry, such as a link or a pipe, which is not waited for; with `in_place`
    also for a file with a second name (a hard link), which may belong to somebody else.
    """
    flags = (os.O_RDWR if in_place else os.O_RDONLY) | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            _refuse_other(path, path.lstat().st_mode, is_folder=False)
        raise
    try:
        status = os.fstat(descriptor)
        _refuse_other(path, status.st_mode, is_folder=False)
        if in_place and status.st_nlink > 1:
            raise ForeignFileError(
                f"{path}: has another name elsewhere (a hard link), and would be changed there too; put a "
                f"copy in its place"
            )
        return os.fdopen(descriptor, "r+b" if in_place else "rb")
    except BaseException:
        os.close(descriptor)
        raise


def _refuse_other(path: Path, mode: int, is_folder: bool) -> None:
    """Raise ForeignFileError unless `mode` is that of a folder if `is_folder`, else of a regular file."""
    kind = stat.S_IFMT(mode)
    wanted = stat.S_IFDIR if is_folder else stat.S_IFREG
    if kind == wanted:
        return
    if kind == stat.S_IFLNK:
        raise ForeignFileError(
            f"{path}: is a link to {path.readlink()}; nothing in a run directory, in a folder of them or in "
            f"an unfinished build is reached through a link; move it away"
        )
    raise ForeignFileError(
        f"{path}: is {KINDS.get(kind, 'a device')}, and {KINDS[wanted]} belongs there; move it away"
    )
