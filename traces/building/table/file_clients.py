"""Tables of one file, or several, for each client, whose name is part of the path."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from emulator.errors import DataFileError
from emulator.storage.bounded import is_file
from emulator.storage.reading.shards import Shards, find_shards
from traces.building.path_patterns import match_files
from traces.building.table.settings import TableSettings


@dataclass
class FileClients:
    """The client of each file below `root`, as a pattern finds it in its path.

    `note` says which files have none, and are left out.
    """

    root: Path
    pattern: str
    of: Mapping[Path, str] = field(default_factory=dict)
    note: str | None = None

    def choose(self, files: Sequence[Path]) -> Sequence[Path]:
        """The files that have a client, which is known from then on; DataFileError if there are none."""
        paths = [path.relative_to(self.root).as_posix() for path in files]
        matched = match_files(self.pattern, self.root, paths, "table")
        self.of = {files[at]: client for at, client in zip(matched.numbers, matched.clients, strict=True)}
        self.note = matched.note
        return tuple(self.of)

    def digest(self) -> str:
        """A digest of the clients, in the order of the files."""
        names = "\0".join(self.of.values())
        return hashlib.sha256(names.encode("utf-8", "surrogateescape")).hexdigest()


def shards_of(root: Path, settings: TableSettings) -> tuple[Shards, FileClients | None]:
    """The files of the table at `root`, and whose they are, with `client_from`.

    Raises DataFileError for what `find_shards` and `match_files` refuse, and for a table of one file.
    """
    clients = None if settings.client_from is None else FileClients(root, settings.client_from)
    if clients is not None and is_file(root):
        raise DataFileError(
            root, "is one file: --client-from is for a folder with files of several clients; give --client"
        )
    shards = find_shards(
        root,
        most_cells=settings.most_cells,
        skips_bad=settings.skip_bad > 0,
        given=settings,
        na=settings.na,
        chosen=None if clients is None else clients.choose,
    )
    return shards, clients
