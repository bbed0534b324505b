"""The files of a table: one, or a folder of shards, read in batches of rows.

Untrusted: besides a batch, nothing is read into memory, and every value that does not fit is named with its
file, row and column.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from emulator.errors import DataFileError, UnknownNameError
from emulator.storage.bounded import is_file
from emulator.storage.parquet_columns import MOST_ROWS
from emulator.storage.tables import MOST_CELLS, SUFFIXES
from traces.building.folders import files_below
from traces.building.table.reading.columns import TEXT, missing
from traces.building.table.reading.csv_file import count_text, csv_batches, csv_kinds
from traces.building.table.reading.parquet_file import parquet_batches, parquet_kinds
from traces.building.tally import Tally

__all__ = ["TEXT", "Batch", "Shards", "find_shards", "missing"]

MOST_SHARDS = 100_000

_REMEDY = "save it as Parquet, in which numbers are no text, and leave out columns of texts"


class Batch(NamedTuple):
    """Some rows of a file: `first` is the number of the first one in its file, from 0 on."""

    path: Path
    first: int
    columns: Mapping[str, pa.Array[Any]]
    num_rows: int


@dataclass(frozen=True)
class Shards:
    """The files of one table, in the order of their names; `kinds` are the Arrow types of its columns.

    The type of a dictionary is that of its values. The types of a CSV are those of its first rows. Each pass
    over the files counts what it reads, and ends beyond `most_cells`.
    """

    files: tuple[Path, ...]
    kinds: Mapping[str, pa.DataType]
    is_csv: bool
    most_cells: int

    def tally(self) -> Tally:
        """The counts of one pass, none yet."""
        return Tally(self.most_cells, remedy=_REMEDY)

    def refuse_unknown(self, key: str, name: str) -> None:
        """Raise UnknownNameError, with the columns there are, unless `name` is one of them."""
        if name not in self.kinds:
            raise UnknownNameError("column", name, self.kinds, f"{self.files[0]}: {key}")

    def digest(self) -> str:
        """A digest of the names, sizes and times of change of all files."""
        state = hashlib.sha256()
        for path in self.files:
            status = path.stat()
            state.update(repr((path.name, status.st_size, status.st_mtime_ns)).encode())
        return state.hexdigest()

    def batches(
        self,
        types: Mapping[str, pa.DataType],
        most_rows: int,
        skip: int = 0,
        malformed: Callable[[], bool] | None = None,
        tally: Tally | None = None,
    ) -> Iterator[Batch]:
        """Read columns in batches of rows.

        Args:
            types: the columns, with the types that they are read as from a CSV. `TEXT` holds for both.
            most_rows: most rows of a batch of a Parquet file.
            skip: rows that are left out at first; the sum of the rows of some first batches.
            malformed: called for every line of a CSV with too few or too many cells, which is left out; False
                ends the reading. None: the first such line is an error.
            tally: counts rows and text; None: one of this pass alone.

        Yields:
            The batches; their borders depend on the files and `most_rows` only.

        Raises:
            DataFileError: a file is damaged, a value does not have the type of its column, or there are too
                many cells or too much text.
        """
        total = 0
        tally = tally or self.tally()
        for path in self.files:
            if self.is_csv:
                parts = csv_batches(path, types, malformed)
            else:
                parts = parquet_batches(path, types, most_rows, max(0, skip - total), tally)
            first = -1
            for first, columns in parts:
                [num_rows] = {len(column) for column in columns.values()}
                tally.add_rows(path, num_rows, len(self.kinds))
                if total + num_rows > MOST_ROWS:
                    raise DataFileError(path, f"the table has more than {MOST_ROWS} rows")
                if total >= skip:
                    yield Batch(path, first, columns, num_rows)
                total += num_rows
            if first < 0 and self.is_csv:
                raise DataFileError(path, "has no rows")


def find_shards(root: Path, *, most_cells: int = MOST_CELLS, skips_bad: bool = False) -> Shards:
    """The files of the table at `root`: a file, or all tables in a folder.

    Each pass over them reads at most `most_cells`. With `skips_bad`, lines of a CSV with too few or too many
    cells are no error here.

    Raises DataFileError if there are none, if they are of several kinds, or if their columns differ.
    """
    files = _files(root)
    kinds: dict[str, pa.DataType] = {}
    is_csv = not files[0].name.endswith(".parquet")
    tally = Tally(most_cells, remedy=_REMEDY)
    for path in files:
        if path.stat().st_size == 0:
            raise DataFileError(path, "is empty")
        if is_csv:
            count_text(path, tally)
        own = csv_kinds(path, skips_bad) if is_csv else parquet_kinds(path)
        if path == files[0]:
            kinds = own
            continue
        if set(own) != set(kinds):
            here, there = (
                ", ".join(sorted(set(a) - set(b))) or "none" for a, b in ((own, kinds), (kinds, own))
            )
            raise DataFileError(
                path, f"has other columns than {files[0].name}: it alone has {here}, it lacks {there}"
            )
        for name in kinds if not is_csv else ():
            if own[name] != kinds[name]:
                raise DataFileError(
                    path, f"column {name!r} is {own[name]}, but {kinds[name]} in {files[0].name}"
                )
    return Shards(files, kinds, is_csv, most_cells)


def _files(root: Path) -> tuple[Path, ...]:
    if not root.is_dir():
        if not is_file(root):
            raise DataFileError(root, "no such file")
        if not root.name.endswith(SUFFIXES):
            raise DataFileError(root, f"a table is one of {', '.join(SUFFIXES)}, or a folder of them")
        return (root,)
    files = [
        path
        for path in files_below(root)
        if path.name.endswith(SUFFIXES) and not path.name.startswith((".", "_")) and is_file(path)
    ]
    if not files:
        raise DataFileError(root, f"has no table, no file that ends with {', '.join(SUFFIXES)}")
    if len(files) > MOST_SHARDS:
        raise DataFileError(root, f"has {len(files)} tables; at most {MOST_SHARDS} are read")
    other = next(
        (path for path in files if (path.suffix == ".parquet") != (files[0].suffix == ".parquet")), None
    )
    if other is not None:
        raise DataFileError(
            root, f"has both CSV and Parquet, {files[0].name} and {other.name}; give one kind"
        )
    return tuple(files)
