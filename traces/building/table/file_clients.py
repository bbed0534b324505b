"""Tables of one file, or several, for each client, whose name is part of the path."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from emulator.errors import DataFileError
from emulator.storage.bounded import is_file
from emulator.storage.reading.shards import Shards, find_shards
from traces.building.path_patterns import match_files
from traces.building.table.settings import TableSettings


@dataclass(frozen=True)
class FileClients:
    """The client of each file; `note` says which files have none, and are left out."""

    of: Mapping[Path, str]
    note: str | None

    def digest(self) -> str:
        """A digest of the clients, in the order of the files."""
        names = "\0".join(self.of.values())
        return hashlib.sha256(names.encode("utf-8", "surrogateescape")).hexdigest()


def shards_of(root: Path, settings: TableSettings) -> tuple[Shards, FileClients | None]:
    """The files of the table at `root`, and whose they are, with `client_from`.

    Raises DataFileError for what `find_shards` and `match_files` refuse, and for a table of one file.
    """
    pattern = settings.client_from
    if pattern is not None and is_file(root):
        raise DataFileError(
            root, "is one file: --client-from is for a folder with files of several clients; give --client"
        )
    owners: FileClients | None = None

    def matching(files: Sequence[Path]) -> Sequence[Path]:
        nonlocal owners
        assert pattern is not None
        paths = [path.relative_to(root).as_posix() for path in files]
        matched = match_files(pattern, root, paths, "table")
        chosen = [files[number] for number in matched.numbers]
        owners = FileClients(dict(zip(chosen, matched.clients, strict=True)), matched.note)
        return chosen

    shards = find_shards(
        root,
        most_cells=settings.most_cells,
        skips_bad=settings.skip_bad > 0,
        given=settings,
        na=settings.na,
        chosen=None if pattern is None else matching,
    )
    return shards, owners
