"""Which files a table is read from, and what format they have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from emulator.errors import DataFileError, abbreviated
from emulator.storage.bounded import is_file
from emulator.storage.reading.folders import files_below
from emulator.storage.tables import SUFFIXES

MOST_SHARDS = 100_000

Format = Literal["CSV", "Parquet", "Arrow"]

FORMATS: dict[str, Format] = {
    ".csv": "CSV",
    ".csv.gz": "CSV",
    ".csv.zip": "CSV",
    ".tsv": "CSV",
    ".tsv.gz": "CSV",
    ".parquet": "Parquet",
    ".arrow": "Arrow",
    ".feather": "Arrow",
}
_KNOWN = tuple(FORMATS)


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
        if not root.name.endswith(_KNOWN):
            raise DataFileError(root, f"a table is one of {', '.join(_KNOWN)}, or a folder of them")
        return Files((root,), format_of(root))
    tables = [
        path
        for path in files_below(root)
        if path.name.endswith(_KNOWN) and not path.name.startswith((".", "_")) and is_file(path)
    ]
    if not tables:
        raise DataFileError(root, f"has no table, no file that ends with {', '.join(_KNOWN)}")
    if chosen is not None:
        paths = tables = list(chosen(tables))
    else:
        paths = [path for path in tables if path.name.endswith(SUFFIXES)] or tables
    if len(paths) > MOST_SHARDS:
        raise DataFileError(root, f"has {len(paths)} tables; at most {MOST_SHARDS} are read")
    first = format_of(paths[0])
    other = next((path for path in paths if format_of(path) != first), None)
    if other is not None:
        both = " and ".join(sorted((first, format_of(other))))
        raise DataFileError(root, f"has both {both}, {paths[0].name} and {other.name}; give one kind")
    return Files(tuple(paths), first, tuple(path for path in tables if path not in set(paths)))


def format_of(path: Path) -> Format:
    """The format of a table, by its name."""
    return FORMATS[next(suffix for suffix in _KNOWN if path.name.endswith(suffix))]


def unread(files: Files) -> str | None:
    """What is to be told about tables that are not read; None if there are none."""
    if not files.others:
        return None
    names = abbreviated([path.name for path in files.others], ", ")
    suffixes = ", ".join(SUFFIXES)
    return f"not read, beside files that end with {suffixes}: {names}; give them a folder of their own"
