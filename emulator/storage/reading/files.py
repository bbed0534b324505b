"""Which files a table is read from, and what format they have."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from emulator.errors import DataFileError, abbreviated
from emulator.storage.bounded import is_file
from emulator.storage.table_paths import TABLE_SUFFIXES, Format, format_of

MOST_SHARDS = 100_000

OR_A_FOLDER = ", or a folder of them"

SUFFIXES = (".csv", ".csv.gz", ".parquet")
"""Files of a folder of which no others are read beside them: those may be what they were made of."""

LOOSE = (".txt", ".data", ".dat")
"""Files of a folder that are read if there are no others: beside them they tell about the tables."""


@dataclass(frozen=True)
class Files:
    """The files of a table, in order and of one format; `others` are tables that are not read."""

    paths: tuple[Path, ...]
    format: Format
    others: tuple[Path, ...] = ()


def find_files(root: Path, chosen: Callable[[Sequence[Path]], Sequence[Path]] | None = None) -> Files:
    """The table at `root`: a file, or all tables in a folder.

    In a folder with files that end with one of `SUFFIXES`, only these are read: others may be what they were
    made of. If `chosen` is given, it says which of all tables are read instead.

    Raises DataFileError if there are none, too many, or if they are of several formats.
    """
    if not root.is_dir():
        if not is_file(root):
            raise DataFileError(root, "no such file")
        return Files((root,), format_of(root, OR_A_FOLDER))
    tables = [
        path
        for path in files_below(root)
        if path.name.endswith(TABLE_SUFFIXES) and not path.name.startswith((".", "_")) and is_file(path)
    ]
    if not tables:
        raise DataFileError(root, f"has no table, no file that ends with {', '.join(TABLE_SUFFIXES)}")
    tables = [path for path in tables if not path.name.endswith(LOOSE)] or tables
    if chosen is not None:
        tables = list(chosen(tables))
    paths = [path for path in tables if chosen is None and path.name.endswith(SUFFIXES)] or tables
    if len(paths) > MOST_SHARDS:
        raise DataFileError(root, f"has {len(paths)} tables; at most {MOST_SHARDS} are read")
    first = format_of(paths[0])
    other = next((path for path in paths if format_of(path) != first), None)
    if other is not None:
        both = " and ".join(sorted((first, format_of(other))))
        raise DataFileError(root, f"has both {both}, {paths[0].name} and {other.name}; give one kind")
    used = set(paths)
    return Files(tuple(paths), first, tuple(path for path in tables if path not in used))


def unread(files: Files) -> str | None:
    """What is to be told about tables that are not read; None if there are none."""
    if not files.others:
        return None
    names = abbreviated([path.name for path in files.others], ", ")
    suffixes = ", ".join(SUFFIXES)
    return f"not read, beside files that end with {suffixes}: {names}; give them a folder of their own"


def files_below(root: Path) -> list[Path]:
    """All that is not a folder below `root`, sorted; links to folders are followed.

    Raises DataFileError for a link to a folder around it, which would never end.
    """
    found: list[Path] = []
    around = {root: {os.path.realpath(root)}}
    for folder, subfolders, files in os.walk(root, followlinks=True):
        path = Path(folder)
        above = around.pop(path)
        found.extend(path / name for name in files)
        for name in subfolders:
            real = os.path.realpath(path / name)
            if real in above:
                raise DataFileError(path / name, "is a link to a folder that it is in itself")
            around[path / name] = above | {real}
    return sorted(found)
