"""Checkpoints of a run: files in one folder, of which the last two are kept.

A file is named after the round it was made in and the sha256 of its content,
`round-000120-<sha256>.safetensors`. It is written atomically (temporary file, fsync, rename), so that it is
either complete or absent; damage done later is detected by the sha256.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from emulator.errors import DataFileError
from emulator.storage.own_files import create_file, delete_if_empty, open_file, path_below
from emulator.storage.state_tree import Tree, from_bytes, to_bytes

KEPT = 2
NAME = re.compile(r"round-(\d{6,18})-([0-9a-f]{64})\.safetensors")
MOST_BYTES = 2**36
"""Largest checkpoint that is read; far larger than that of any run that fits into a machine."""

ASIDE = re.compile(r"\.(?P<name>.+)\.(?P<pid>\d{1,9})-[0-9a-f]{16}")
"""Names of the temporary files of `write_durably`: the file's name and the id of the writing process."""


@dataclass(frozen=True)
class CheckpointFolder:
    """The checkpoints in the folder `path`, which need not exist.

    Its methods raise ForeignFileError if an entry has the name of a checkpoint, or of a temporary file of
    one, and is not a regular file.
    """

    path: Path

    def files(self) -> list[Path]:
        """All checkpoints, intact or damaged, newest first; OSError if the folder cannot be read.

        Beside a run that is at work these are the ones of a moment: it deletes old ones.
        """
        found = []
        for file in (path_below(self.path, name) for name in self._names() if NAME.fullmatch(name)):
            with suppress(FileNotFoundError):  # deleted since the folder was listed
                # By time within a round: a stop can write a second one in the same round.
                found.append((round_of(file), file.stat().st_mtime_ns, file))
        return [file for *_, file in sorted(found, reverse=True)]

    def write(self, round_: int, tree: Tree) -> None:
        """Store `tree`, the state in round `round_`, then delete all checkpoints but the last two.

        Raises RunError if `tree` cannot be stored, and OSError, with the name of a file, if the disk fails.
        No earlier checkpoint is deleted before the new one is complete.
        """
        content = to_bytes(tree)
        file = self.path / f"round-{round_:06d}-{hashlib.sha256(content).hexdigest()}.safetensors"
        earlier = [stored for stored in self.files() if stored != file]
        if not self.path.is_dir():
            self.path.mkdir()  # without parents: a run whose folder has vanished must not go into a new one
            sync_folder(self.path.parent)
        for torn in self.torn():  # before writing: there may be little disk space
            torn.unlink(missing_ok=True)
        write_durably(file, content)
        for old in earlier[KEPT - 1 :]:
            old.unlink(missing_ok=True)

    def delete(self) -> None:
        """Delete all checkpoints, and the folder if nothing else is in it."""
        for file in [*self.files(), *self.torn()]:
            file.unlink(missing_ok=True)
        delete_if_empty(self.path)

    def torn(self) -> list[Path]:
        """Temporary files left by processes that were killed while writing."""
        return [path_below(self.path, name) for name in self._names() if name.startswith(".round-")]

    def _names(self) -> list[str]:
        # Not `glob`: it treats a folder without read permission as empty.
        try:
            return [file.name for file in self.path.iterdir()]
        except (FileNotFoundError, NotADirectoryError):
            return []


def read_checkpoint(file: Path) -> Tree:
    """The tree stored in `file`.

    DataFileError if its name is not that of a checkpoint or its content not what was written, OSError if it
    cannot be read, ForeignFileError if it is not a regular file.
    """
    match = NAME.fullmatch(file.name)
    if match is None:
        raise DataFileError(file, "not named like a checkpoint, round-NUMBER-SHA256.safetensors")
    with naming_file(file), open_file(file) as stored:
        if os.fstat(stored.fileno()).st_size > MOST_BYTES:
            raise DataFileError(file, f"more than {MOST_BYTES} bytes; a checkpoint has fewer")
        content = stored.read()
    if hashlib.sha256(content).hexdigest() != match[2]:
        raise DataFileError(file, f"damaged: its {len(content)} bytes are not those that were written")
    try:
        return from_bytes(content)
    except ValueError as error:
        raise DataFileError(file, f"not a checkpoint: {error}") from error


def write_durably(path: Path, content: bytes | str) -> None:
    """Write a file atomically (temporary file, fsync, rename).

    Even after a power failure `path` has either all of `content` or what it had before. A link at `path` is
    replaced, not followed. OSError names a file.
    """
    with replacing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def copy_durably(source: Path, path: Path) -> None:
    """Write a file as `write_durably` does, with the content of the file `source`, which must be no link."""
    with naming_file(source), open_file(source) as original, replacing(path) as file:
        shutil.copyfileobj(original, file)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Context with a temporary file that is renamed to `path` at its end; after an error, it is deleted."""
    # The name is unpredictable, so that nobody can put a link to another file there beforehand.
    aside = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(8)}")
    with naming_file(path):
        file = create_file(aside)
        try:
            with file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            aside.replace(path)
            sync_folder(path.parent)
        finally:
            aside.unlink(missing_ok=True)


def make_folder(folder: Path) -> None:
    """Create `folder` and its parents, if they are missing, so that they survive a power failure."""
    missing = [ancestor for ancestor in (folder, *folder.parents) if not ancestor.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for created in missing:
        sync_folder(created.parent)


def delete_folder(folder: Path) -> None:
    """Delete `folder` and all that is in it; an OSError has the path of `folder`, or one below it."""
    try:
        shutil.rmtree(folder)
    except OSError as error:
        # Python 3.11 has only the last name of an entry.
        if not str(error.filename).startswith(str(folder)):
            error.filename = str(folder)
        raise


def sync_folder(folder: Path) -> None:
    """Fsync `folder`, so that files renamed or created in it survive a power failure."""
    descriptor = os.open(folder, os.O_RDONLY)
    with naming_file(folder):
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def naming_file(path: Path) -> Iterator[None]:
    """Context in which an OSError without a file name gets `path`, such as that of a full disk."""
    try:
        yield
    except OSError as error:
        # An error without a number has its own text, which a file name would hide.
        if error.filename is None and error.errno is not None:
            error.filename = str(path)
        raise


def round_of(file: Path) -> int:
    """The round a checkpoint was made in, according to its name."""
    match = NAME.fullmatch(file.name)
    assert match is not None
    return int(match[1])
