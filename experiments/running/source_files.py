"""The files behind runs: their identities (size, sha256), and the check that they have not changed.

They are the data files of worlds, the code of parts of one's own, and the modules that this is in or uses.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from emulator.errors import DataFileError
from emulator.own_parts import files_of, is_ours
from experiments.locating import Locate, entries_below
from experiments.own.identity import code_of
from experiments.own.parts import OwnPart
from experiments.results.reading.json_files import Identity
from traces.files import ARRIVALS, FACTS, FEATURES, TARGETS, data_facts, file_facts, read_facts
from traces.idx import idx_files

TRACE_FILES = (FACTS, ARRIVALS, FEATURES)

MODULE = "module:"
"""Begins the name under which a module is recorded, as in "module:my_parts"."""

CODE = "code:"
"""Begins the name under which the code of a part is recorded, as in "code:my_parts:Steady"."""

WITHOUT_FILE = Identity(size=0, sha256="without a file")
"""In older manifests the identity of a notebook's cells: nothing to compare."""


class SourceFiles:
    """A `Locate` that records size and sha256 of each file it locates, before the file is read.

    Of a folder they are those of all files in it that a source reads. The data files of a trace folder are
    not hashed if its `trace.toml`, which is, has their digests: their sizes are compared, and
    `driftscale traces check` hashes them.

    `known` are the files of earlier worlds of the same runs. A call raises DataFileError if one of them has
    changed since or is missing, or if a file cannot be read. Files are named by their path in the
    configuration, in `known` and in `identities`.
    """

    def __init__(self, locate: Locate, known: Mapping[str, Identity]) -> None:
        self._locate = locate
        # And each file as it was when this object first located it.
        self._known = {name: identity for name, identity in known.items() if identity != WITHOUT_FILE}
        self.identities: dict[str, Identity] = {}

    def __call__(self, path: str) -> Path:
        location = self._locate(path)
        files = {
            f"{path}/{file.relative_to(location).as_posix()}" if file != location else path: file
            for file in ([location] if location.is_file() else _source_files(location))
        }
        of_trace = _trace_identities(location)
        gone = self._gone(path, location, files)
        if gone:
            file = location / gone[0].removeprefix(f"{path}/")
            raise DataFileError(file, "is gone; the runs in this directory were begun with it")
        for name, file in files.items():
            identity = of_trace.get(file) or _identity(file)
            self._record(name, file, identity)
        return location

    def look_at(self, name: str) -> None:
        """Record what is recorded as `name`, unless it is code; the errors are those of a call.

        Code may not be loaded yet: it is recorded and compared with the first world that is drawn.
        """
        if not name.startswith((MODULE, CODE)):
            self(name)

    def code(self, modules: Iterable[str], parts: Iterable[OwnPart]) -> None:
        """Record the code of parts, the modules that they are named by, and those of one's own that both use.

        Modules are recorded as they were when they were imported. DataFileError if anything has changed;
        OwnPartError if a file has changed since it was imported.
        """
        codes = {part.name: code_of(part.code) for part in parts if not is_ours(part.code)}
        used = {*modules, *(module for code in codes.values() for module in code.modules)}
        for module, file in files_of(used).items():  # first, since a source is read from its present file
            self._record(f"{MODULE}{module}", file.path, Identity(size=file.num_bytes, sha256=file.sha256))
        for name, code in codes.items():
            text = code.text.encode()
            identity = Identity(size=len(text), sha256=hashlib.sha256(text).hexdigest())
            self._record(f"{CODE}{name}", f"the code of {name}", identity)

    def _record(self, name: str, file: Path | str, identity: Identity) -> None:
        known = self._known.setdefault(name, identity)
        if identity != known:
            raise DataFileError(
                file,
                f"has changed since the runs in this directory were begun with it: {_in_words(known)} "
                f"then, {_in_words(identity)} now; put it back, take another --out, or --fresh to begin "
                f"them again",
            )
        self.identities[name] = identity

    def _gone(self, path: str, location: Path, files: Mapping[str, Path]) -> list[str]:
        """The known files of the folder `path` that are read no more, now that `files` of it are.

        Files that are still there may be read by a name of their own, such as a table beside the images. They
        are gone only if another file of the folder has taken their place.
        """
        is_same = all(name in self._known for name in files)
        return sorted(
            name
            for name in self._known
            if name.startswith(f"{path}/")
            and name not in files
            and name not in self.identities
            and not (is_same and (location / name.removeprefix(f"{path}/")).is_file())
        )


def _source_files(folder: Path) -> list[Path]:
    """The files of `folder` that are read: those of a trace or an idx data set, else all but hidden ones."""
    if _is_trace(folder):
        targets = folder / TARGETS
        return [*(folder / name for name in TRACE_FILES), *([targets] if targets.is_file() else [])]
    try:
        return idx_files(folder)
    except DataFileError:  # another format, of a plug-in's source
        return [file for file in entries_below(folder) if file.is_file() and not file.name.startswith(".")]


def _is_trace(location: Path) -> bool:
    """Whether `location` is a folder with the three files of a trace, of whatever content."""
    return all((location / name).is_file() for name in TRACE_FILES)


def _trace_identities(location: Path) -> dict[Path, Identity]:
    """The identities of the data files of a trace folder; empty for other files and folders.

    Raises DataFileError if it is one that `traces.files.open_folder` would refuse for its sizes or facts.
    """
    if not _is_trace(location):
        return {}
    return {
        location / name: Identity(size=facts.num_bytes, sha256=facts.sha256)
        for name, facts in data_facts(location, read_facts(location)).items()
    }


def _identity(file: Path) -> Identity:
    facts = file_facts(file)
    return Identity(size=facts.num_bytes, sha256=facts.sha256)


def _in_words(identity: Identity) -> str:
    return f"{identity.size} bytes of sha256 {identity.sha256[:12]}"
