"""The data files of worlds: their identities (size, sha256), and the check that they have not changed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from emulator.errors import DataFileError
from experiments.locating import Locate
from experiments.results.json_files import Identity
from traces.idx import idx_files

BLOCK_BYTES = 2**20


class SourceFiles:
    """A `Locate` that records size and sha256 of each file it locates, before the file is read.

    `known` are the files of earlier worlds of the same runs. A call raises DataFileError if one of them has
    changed since or is missing, or if a file cannot be read. Files are named by their path in the
    configuration, in `known` and in `identities`.
    """

    def __init__(self, locate: Locate, known: Mapping[str, Identity]) -> None:
        self._locate = locate
        self._known = dict(known)  # and each file as it was when this object first located it
        self.identities: dict[str, Identity] = {}

    def __call__(self, path: str) -> Path:
        location = self._locate(path)
        if location.is_file():
            files = {path: location}
        else:
            files = {f"{path}/{file.name}": file for file in _source_files(location)}
        gone = sorted(name for name in self._known if name.startswith(f"{path}/") and name not in files)
        if gone:
            file = location / gone[0].removeprefix(f"{path}/")
            raise DataFileError(file, "is gone; the runs in this directory were begun with it")
        for name, file in files.items():
            identity = _identity(file)
            known = self._known.setdefault(name, identity)
            if identity != known:
                raise DataFileError(
                    file,
                    f"has changed since the runs in this directory were begun with it: {_in_words(known)} "
                    f"then, {_in_words(identity)} now; put it back, take another --out, or --fresh to begin "
                    f"them again",
                )
            self.identities[name] = identity
        return location


def _source_files(folder: Path) -> list[Path]:
    """The files of `folder` that are read: the four of an idx data set, else all files but hidden ones."""
    try:
        return idx_files(folder)
    except DataFileError:  # another format, of a plug-in's source
        return sorted(file for file in folder.iterdir() if file.is_file() and not file.name.startswith("."))


def _identity(file: Path) -> Identity:
    state, size = hashlib.sha256(), 0
    try:
        with file.open("rb") as content:
            while block := content.read(BLOCK_BYTES):
                state.update(block)
                size += len(block)
    except OSError as error:
        raise DataFileError(file, f"cannot be read ({error.strerror})") from error
    return Identity(size=size, sha256=state.hexdigest())


def _in_words(identity: Identity) -> str:
    return f"{identity.size} bytes of sha256 {identity.sha256[:12]}"
