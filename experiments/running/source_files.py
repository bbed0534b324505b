"""The files behind runs: their identities (size, sha256), and the check that they have not changed.

They are the data files of worlds, and the modules of parts that are named by "my_module:MyPart".
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from emulator.errors import DataFileError
from emulator.own_parts import module_file
from experiments.locating import Locate, entries_below
from experiments.results.reading.json_files import Identity
from traces.files import ARRIVALS, FACTS, FEATURES, data_facts, file_facts, read_facts
from traces.idx import idx_files

TRACE_FILES = (FACTS, ARRIVALS, FEATURES)

MODULE = "module:"
"""Begins the name under which a module is recorded, as in "module:my_parts"."""

WITHOUT_FILE = Identity(size=0, sha256="without a file")
"""The identity of a module without a file, such as that of a notebook's cells: nothing to compare."""


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
        self._known = dict(known)  # and each file as it was when this object first located it
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
        """Record the data file or the module that is recorded as `name`; the errors are those of a call."""
        if name.startswith(MODULE):
            self.module(name.removeprefix(MODULE))
        else:
            self(name)

    def module(self, module: str) -> None:
        """Record the module of a part, which has been loaded, as it was when it was imported.

        Only this one file is recorded, not those that it imports. DataFileError if it has changed.
        """
        file = module_file(module)
        if file is None:
            self._record(f"{MODULE}{module}", module, WITHOUT_FILE)
        else:
            self._record(f"{MODULE}{module}", file.path, Identity(size=file.num_bytes, sha256=file.sha256))

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
        return [folder / name for name in TRACE_FILES]
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
