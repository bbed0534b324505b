"""Tables of one file, or several, for each client, whose name is part of the path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from emulator.errors import DataFileError
from emulator.storage.bounded import is_file
from emulator.storage.reading.shards import Shards, find_shards
from traces.building.path_patterns import match_files
from traces.building.table.settings import TableSettings


def shards_of(root: Path, settings: TableSettings) -> tuple[Shards, Mapping[Path, str] | None, list[str]]:
    """The files of the table at `root`; with `client_from` the client of each; and what is to be told.

    Raises DataFileError for what `find_shards` and `match_files` refuse, and for a table of one file.
    """
    pattern, clients, notes = settings.client_from, dict[Path, str](), list[str]()
    if pattern is not None and is_file(root):
        problem = "is one file: --client-from is for a folder with files of several clients; give --client"
        raise DataFileError(root, problem)

    def with_client(files: Sequence[Path]) -> Sequence[Path]:
        paths = [path.relative_to(root).as_posix() for path in files]
        matched = match_files(pattern or "", root, paths, "table")
        clients.update((files[at], name) for at, name in zip(matched.numbers, matched.clients, strict=True))
        notes.extend(filter(None, [matched.note]))
        return tuple(clients)

    shards = find_shards(
        root,
        most_cells=settings.most_cells,
        skips_bad=settings.skip_bad > 0,
        given=settings,
        na=settings.na,
        chosen=None if pattern is None else with_client,
    )
    return shards, None if pattern is None else clients, [*shards.notes, *notes]
