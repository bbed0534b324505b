"""The files of a table: one, or a folder of shards, read in batches of rows.

Untrusted: besides a batch, nothing is read into memory, and every value that does not fit is named with its
file, row and column.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

import pyarrow as pa

from emulator.errors import DataFileError, UnknownNameError
from emulator.storage.parquet_columns import MOST_ROWS, damage_in_one_line
from emulator.storage.reading.arrow_file import arrow_batches, arrow_schema
from emulator.storage.reading.bounds import MOST_CELLS
from emulator.storage.reading.columns import (
    TEXT,
    Batch,
    Types,
    kinds_of,
    missing,
    refuse_columns,
    refuse_twice,
    text_bytes,
    twice_in,
    without,
)
from emulator.storage.reading.csv_file import UNNAMED, CsvFile, Malformed, count_text, csv_of, sample_of
from emulator.storage.reading.dialects import Dialect, Sample, doubt_of, find_dialect
from emulator.storage.reading.files import Files, find_files, unread
from emulator.storage.reading.parquet_file import parquet_batches, parquet_schema
from emulator.storage.reading.tally import Tally
from emulator.storage.table_paths import Format, Given

__all__ = ["TEXT", "Batch", "Shards", "find_shards", "missing"]

_REMEDY = "save it as Parquet, in which numbers are no text, and leave out columns of texts"


@dataclass(frozen=True)
class Shards:
    """The files of one table, in the order of their names; `kinds` are the Arrow types of its columns.

    The type of a dictionary is that of its values. The types of a CSV are those of its first rows. Each pass
    over the files counts what it reads, and ends beyond `most_cells`.

    Attributes:
        format: The format of all files; is_csv: whether it is text, separated by commas or otherwise.
        dialect: How CSVs are read.
        na: Texts that stand for a missing value, where `batches` is told so.
        metadata: Those of the schema of the first file; none of a CSV.
        notes: What is to be told about how the files are read.
        doubt: Why the first line may be no header; None: it looks like one.
        given: What is given of how CSVs are written.
        twice: Columns that occur twice, and may not be used.
    """

    files: tuple[Path, ...]
    kinds: Types
    format: Format
    most_cells: int
    dialect: Dialect
    na: tuple[str, ...] = ()
    metadata: Mapping[bytes, bytes] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    doubt: str | None = None
    given: Given = Given()  # noqa: RUF009  (it is frozen)
    twice: frozenset[str] = frozenset()

    @property
    def is_csv(self) -> bool:
        return self.format == "CSV"

    def metadata_of(self, path: Path) -> Mapping[bytes, bytes]:
        """The metadata of the schema of one of the files; none of a CSV."""
        return {} if self.is_csv else _schema(path, self.format).metadata or {}

    def tally(self) -> Tally:
        """The counts of one pass, none yet."""
        return Tally(self.most_cells, remedy=_REMEDY)

    def refuse_unknown(self, key: str, name: str) -> None:
        """Raise UnknownNameError, with the columns there are, unless `name` is one; two are refused."""
        if name not in self.kinds:
            doubt = "" if self.doubt is None else f"{self.doubt}: "
            raise UnknownNameError("column", name, self.kinds, f"{self.files[0]}: {doubt}{key}")
        refuse_twice(self.files[0], (name,), self.twice)

    def digest(self) -> str:
        """A digest of the names, sizes and times of change of all files."""
        files = [(path.name, path.stat()) for path in self.files]
        state = "".join(repr((name, status.st_size, status.st_mtime_ns)) for name, status in files)
        return hashlib.sha256(state.encode()).hexdigest()

    def batches(
        self,
        types: Types,
        most_rows: int,
        skip: int = 0,
        malformed: Malformed = None,
        tally: Tally | None = None,
        na_in: Collection[str] = (),
    ) -> Iterator[Batch]:
        """Read columns in batches of rows.

        Args:
            types: the columns, with the types that they are read as from a CSV. `TEXT` holds for both.
            most_rows: most rows of a batch, but of a CSV, which is read by bytes.
            skip: rows that are left out at first; the sum of the rows of some first batches.
            malformed: called for every line of a CSV with too few or too many cells, which is left out; False
                ends the reading. None: the first such line is an error.
            tally: counts rows and text; None: one of this pass alone.
            na_in: the columns in which the texts `na` stand for a missing value.

        Yields:
            The batches; their borders depend on the files and `most_rows` only.

        Raises:
            DataFileError: a file is damaged, a value does not have the type of its column, or there are too
                many cells or too much text.
        """
        total, tally = 0, tally or self.tally()
        with_na = [name for name in types if self.na and name in na_in]
        na = self.na if any(types[name] != TEXT for name in with_na) else ()
        for path in self.files:
            batch = None
            with damage_in_one_line(path):
                for batch in self.batches_of(path, types, most_rows, max(0, skip - total), malformed, na):
                    if not self.is_csv:  # whose text has been counted
                        tally.add_text(path, sum(map(text_bytes, batch.columns.values())))
                    tally.add_rows(path, batch.num_rows, len(self.kinds))
                    if total + batch.num_rows > MOST_ROWS:
                        raise DataFileError(path, f"the table has more than {MOST_ROWS} rows")
                    if total >= skip:
                        changed = {name: without(batch.columns[name], self.na) for name in with_na}
                        yield batch._replace(columns={**batch.columns, **changed})
                    total += batch.num_rows
            if batch is None and self.is_csv:
                raise DataFileError(path, "has no rows")

    def batches_of(
        self, path: Path, types: Types, most_rows: int, skip: int, malformed: Malformed, na: tuple[str, ...]
    ) -> Iterator[Batch]:
        """The batches of one of the files, in which skipped rows may have no values; see `batches`."""
        if self.is_csv:
            return replace(self.csv(path), na=na, types=types, malformed=malformed).batches()
        if self.format == "Parquet":
            return parquet_batches(path, types, most_rows, skip)
        return arrow_batches(path, types, most_rows)

    def csv(self, path: Path) -> CsvFile:
        """One of the files, which are CSVs."""
        return csv_of(sample_of(path, self.given, 0), self.dialect)


def find_shards(
    root: Path,
    *,
    most_cells: int = MOST_CELLS,
    skips_bad: bool = False,
    given: Given = Given(),  # noqa: B008  (it is frozen)
    na: tuple[str, ...] = (),
    chosen: Callable[[Sequence[Path]], Sequence[Path]] | None = None,
    finds_types: bool = True,
) -> Shards:
    """The files of the table at `root`: a file, or all tables in a folder.

    Args:
        root: the file or folder.
        most_cells: cells that each pass over the files reads at most.
        skips_bad: lines of a CSV with too few or too many cells are no error here.
        given: what is given of the dialect of a CSV.
        na: texts that stand for a missing number, besides the usual ones.
        chosen: chooses some of the tables in a folder; None: see `find_files`.
        finds_types: False: all columns of a CSV have the type null, for a caller that needs none.

    Raises:
        DataFileError: there are no files, they are of several formats, their columns differ, or their dialect
            cannot be told.
    """
    files = find_files(root, chosen)
    for path in files.paths:
        if path.stat().st_size == 0:
            raise DataFileError(path, "is empty")
    tally = Tally(most_cells, remedy=_REMEDY)
    first = sample_of(files.paths[0], given) if files.format == "CSV" else None
    dialect = _dialect(root, files, given, first, skips_bad=skips_bad)

    def head_of(path: Path) -> tuple[Types, Sequence[str], Mapping[bytes, bytes]]:
        """The types of the columns of a file, the names of all of them, and the metadata of its schema."""
        if first is None:
            schema = _schema(path, files.format)
            return kinds_of(schema), schema.names, schema.metadata or {}
        count_text(path, tally)
        csv = csv_of(first if path == root else sample_of(path, given, 0), dialect)
        csv = replace(csv, na=na, malformed=(lambda: True) if skips_bad else None)
        no_types = {name: pa.null() for name in csv.names if name.strip()}
        return csv.kinds() if finds_types else no_types, csv.names, {}

    kinds, names, metadata = head_of(files.paths[0])
    for path in files.paths[1:]:
        _refuse_other_columns(path, head_of(path)[0], files, kinds)
    doubt = None if first is None else doubt_of(first, names)
    unnamed = None if "".join(names[:1]).strip() else UNNAMED
    notes = tuple(filter(None, (dialect.sentence(given), unread(files), unnamed, doubt)))
    twice, paths = twice_in(names), files.paths
    return Shards(paths, kinds, files.format, most_cells, dialect, na, metadata, notes, doubt, given, twice)


def _schema(path: Path, kind: Format) -> pa.Schema:
    """The schema of a Parquet or an Arrow file with at least one row."""
    with damage_in_one_line(path):
        schema, num_rows = parquet_schema(path) if kind == "Parquet" else arrow_schema(path)
        refuse_columns(path, schema.names)
    if num_rows == 0:
        raise DataFileError(path, "has no rows")
    return schema


def _dialect(root: Path, files: Files, given: Given, first: Sample | None, *, skips_bad: bool) -> Dialect:
    """How the files are read, if they are CSVs; DataFileError if a dialect is given of others."""
    if first is None:
        given.refuse_of(root, files.format)
        return Dialect()
    usual = "\t" if all(".tsv" in path.suffixes for path in files.paths) else ","

    def samples() -> Iterable[Sample]:  # of many files, not all in memory
        return chain([first], (sample_of(path, given) for path in files.paths[1:]))

    return find_dialect(samples, given, usual=usual, skips_bad=skips_bad)


def _refuse_other_columns(path: Path, own: Types, files: Files, kinds: Types) -> None:
    """Raise DataFileError unless a file has the columns `kinds` of the first one, also of the same types."""
    first = files.paths[0].name
    if set(own) != set(kinds):
        here, there = (", ".join(sorted(set(a) - set(b))) or "none" for a, b in ((own, kinds), (kinds, own)))
        raise DataFileError(path, f"has other columns than {first}: it alone has {here}, it lacks {there}")
    for name in kinds if files.format != "CSV" else ():
        if own[name] != kinds[name]:
            raise DataFileError(path, f"column {name!r} is {own[name]}, but {kinds[name]} in {first}")
