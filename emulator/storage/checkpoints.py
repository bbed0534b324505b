"""Checkpoints of a run: files in one folder, the last two of which are kept.

A file is named after the round it was made in and the sha256 of its content,
`round-000120-<sha256>.safetensors`. It is written under another name, brought to the disk and renamed, so
that a checkpoint is there as a whole or not at all; one that was damaged later is found out.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from emulator.errors import DataFileError
from emulator.storage.own_files import create_file, open_file, path_below
from emulator.storage.state_tree import Tree, from_bytes, to_bytes

KEPT = 2
NAME = re.compile(r"round-(\d{6,18})-([0-9a-f]{64})\.safetensors")
MOST_BYTES = 2**36
"""Of one checkpoint that is read: no run that fits into a machine comes near."""

ASIDE = re.compile(r"\.(?P<name>.+)\.(?P<pid>\d{1,9})-[0-9a-f]{16}")
"""The names under which `write_durably` writes a file until it is whole, in the process of that number."""


@dataclass(frozen=True)
class CheckpointFolder:
    """The checkpoints in the folder `path`, which need not exist.

    ForeignFileError for what is named as one and is no regular file.
    """

    path: Path

    def files(self) -> list[Path]:
        """All there are, damaged or not, the newest first; OSError where that cannot be seen."""
        files = [path_below(self.path, name) for name in self._names() if NAME.fullmatch(name)]
        # Of one round the one that was written last: a stop follows an interval.
        return sorted(files, key=lambda file: (round_of(file), file.stat().st_mtime_ns), reverse=True)

    def write(self, round_: int, tree: Tree) -> None:
        """Store `tree`, then delete all but the last two. OSError, which names a file, leaves those that were
        there."""
        content = to_bytes(tree)
        file = self.path / f"round-{round_:06d}-{hashlib.sha256(content).hexdigest()}.safetensors"
        earlier = [stored for stored in self.files() if stored != file]
        if not self.path.is_dir():
            self.path.mkdir()  # alone: a run whose folder has vanished must not go on into a new one
            sync_folder(self.path.parent)
        for torn in self.torn():  # before there is another: the disk may be small
            torn.unlink(missing_ok=True)
        write_durably(file, content)
        for old in earlier[KEPT - 1 :]:
            old.unlink(missing_ok=True)

    def delete(self) -> None:
        """Delete them all, and the folder if nothing else is in it."""
        for file in [*self.files(), *self.torn()]:
            file.unlink(missing_ok=True)
        if self.path.is_dir() and not any(self.path.iterdir()):
            self.path.rmdir()

    def torn(self) -> list[Path]:
        """What processes that were killed while they wrote have left."""
        return [path_below(self.path, name) for name in self._names() if name.startswith(".round-")]

    def _names(self) -> list[str]:
        # Not `glob`: it takes a folder that may not be read for an empty one.
        try:
            return [file.name for file in self.path.iterdir()]
        except (FileNotFoundError, NotADirectoryError):
            return []


def read_checkpoint(file: Path) -> Tree:
    """What is stored in `file`; DataFileError if that is not what was written. OSError: it is unreadable.
    ForeignFileError: it is no regular file."""
    match = NAME.fullmatch(file.name)
    if match is None:
        raise DataFileError(file, "not named as a checkpoint is, round-NUMBER-SHA256.safetensors")
    with naming_file(file), open_file(file) as stored:
        if os.fstat(stored.fileno()).st_size > MOST_BYTES:
            raise DataFileError(file, f"more than {MOST_BYTES} bytes, which no checkpoint has")
        content = stored.read()
    if hashlib.sha256(content).hexdigest() != match[2]:
        raise DataFileError(file, f"damaged: its {len(content)} bytes are not those that were written")
    try:
        return from_bytes(content)
    except ValueError as error:
        raise DataFileError(file, f"not a checkpoint: {error}") from error


def write_durably(path: Path, content: bytes | str) -> None:
    """The whole of `content` stands at `path`, also after a power failure, or what was there before.

    A link at `path` is replaced, not followed. OSError names a file.
    """
    # Nobody can know the name beforehand, and put a link there that leads elsewhere.
    aside = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(8)}")
    with naming_file(path):
        file = create_file(aside)
        try:
            with file:
                file.write(content.encode() if isinstance(content, str) else content)
                file.flush()
                os.fsync(file.fileno())
            aside.replace(path)
            sync_folder(path.parent)
        finally:
            aside.unlink(missing_ok=True)


def make_folder(folder: Path) -> None:
    """`folder` is there, and those above it, also after a power failure."""
    missing = [ancestor for ancestor in (folder, *folder.parents) if not ancestor.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for created in missing:
        sync_folder(created.parent)


def sync_folder(folder: Path) -> None:
    """Bring the names in `folder` to the disk: a file that was renamed is found after a power failure."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with naming_file(folder):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def naming_file(path: Path) -> Iterator[None]:
    """Within it, an OSError that names no file names `path`: a full disk does not say which."""
    try:
        yield
    except OSError as error:
        # One without a number has a text of its own, which a file's name would hide.
        if error.filename is None and error.errno is not None:
            error.filename = str(path)
        raise


def round_of(file: Path) -> int:
    """The round that a checkpoint was made in, as its name says."""
    match = NAME.fullmatch(file.name)
    assert match is not None
    return int(match[1])
