"""Paths and files below a folder that may come from somebody else, such as a run directory.

Anything may stand there in the place of a file: a link out of the folder, a pipe that never ends, a folder.
Every path below the folder is made by `path_below`, which refuses all of these by name. Files are opened
without following a link, so that one that replaces a file in the meantime is not followed either.
"""

from __future__ import annotations

import errno
import os
import stat
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
    """`root/names...`: a regular file (a folder if `is_folder`) or nothing yet, reached through folders
    alone.

    Args:
        root: Trusted; it may be a link itself.
        names: Of the folders on the way, and of the file.

    Raises:
        ForeignFileError: The first of them that is of another kind, such as a link.
    """
    path = os.fspath(root)
    for depth, name in enumerate(names, start=1):
        path = os.path.join(path, name)  # noqa: PTH118  (this is called for each file of each run)
        try:
            mode = os.lstat(path).st_mode
        except (FileNotFoundError, NotADirectoryError):
            break
        _refuse_other(Path(path), mode, is_folder or depth < len(names))
    return root.joinpath(*names)


def create_file(path: Path) -> BinaryIO:
    """A new file, open for writing; FileExistsError if there is anything of that name, be it a link."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o666), "wb")


def open_file(path: Path, *, in_place: bool = False) -> BinaryIO:
    """The regular file at `path`, open for reading, or to be changed `in_place`.

    ForeignFileError for anything else: a link, a pipe, which is not waited for, or a file that is to be
    changed and has a second name (a hard link), under which it may be somebody else's.
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
    """ForeignFileError unless `mode` is that of a folder, or else of a regular file."""
    kind = stat.S_IFMT(mode)
    wanted = stat.S_IFDIR if is_folder else stat.S_IFREG
    if kind == wanted:
        return
    if kind == stat.S_IFLNK:
        raise ForeignFileError(
            f"{path}: is a link to {path.readlink()}; nothing in a run directory, or in a folder of them, is "
            f"reached through a link; move it away"
        )
    raise ForeignFileError(
        f"{path}: is {KINDS.get(kind, 'a device')}, and {KINDS[wanted]} belongs there; move it away"
    )
