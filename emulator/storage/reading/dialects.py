"""The dialect of a CSV: what separates its cells, and its decimal point.

Pure functions of its header and first rows. A separator is one that gives each row as many cells as the
header has; nothing is guessed from frequencies, as `csv.Sniffer` does, which takes the blank of
"2024-01-01 10:00".
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from emulator.errors import DataFileError, abbreviated
from emulator.storage.reading.bounds import MOST_REASON

SEPARATORS = (",", ";", "\t", "|")

MOST_ROWS = 1000
"""Rows of a file that its dialect is found from, besides the header."""

_NAMES = {",": "','", ";": "';'", "\t": "a tab", "|": "'|'"}
_OPTIONS = {",": "--separator ','", ";": "--separator ';'", "\t": "--separator tab", "|": "--separator '|'"}

_WITH_POINT = re.compile(rb" *[+-]?(?:[0-9]+[.][0-9]*|[.][0-9]+)(?:[eE][+-]?[0-9]+)? *")
_WITH_THOUSANDS = re.compile(rb" *[+-]?[1-9][0-9]{0,2}(?:,[0-9]{3})+ *")
_WITH_COMMA = re.compile(
    rb"(?! *[+-]?[1-9][0-9]{0,2}(?:,[0-9]{3})+ *\Z) *[+-]?[0-9]*,[0-9]+(?:[eE][+-]?[0-9]+)? *"
)


@dataclass(frozen=True)
class Dialect:
    """How the cells of a CSV are separated, and its decimal point; `said` if that was found, and is unusual.

    >>> Dialect(";", ",", said=True).sentence()
    "read with ';' between cells and ',' as decimal point: --separator and --decimal override"
    """

    separator: str = ","
    decimal: str = "."
    said: bool = False

    @property
    def number(self) -> str:
        """What a cell of a number must be."""
        return "a number" if self.decimal == "." else f"a number, with {self.decimal!r} as decimal point"

    def sentence(self) -> str | None:
        """What is to be told about it; None if there is nothing to tell."""
        if not self.said:
            return None
        return (
            f"read with {_NAMES[self.separator]} between cells and {self.decimal!r} as decimal point: "
            f"--separator and --decimal override"
        )


@dataclass(frozen=True)
class Given:
    """What is given of a dialect; None: to be found."""

    separator: str | None = None
    decimal: str | None = None


@dataclass(frozen=True)
class Sample:
    """The first lines of a CSV, without line ends and blank lines.

    `is_whole`: they are all lines of it, so the last row is complete.
    """

    path: Path
    header: bytes
    lines: Sequence[bytes]
    is_whole: bool

    def names(self, separator: str) -> list[str]:
        """The cells of the header; none if it cannot be read with this separator."""
        try:
            return next(csv.reader([self.header.decode("utf-8-sig", "replace")], delimiter=separator), [])
        except csv.Error:
            return []


class Row(NamedTuple):
    """A row: its cells without quotes, with separators between them, and their number.

    Quoted cells in which a separator, a quote or a line end is are empty here: they are no numbers.
    """

    line: bytes
    width: int


class Cell(NamedTuple):
    """A cell of a sample, for messages."""

    path: Path
    row: int
    column: str
    text: str


@dataclass(frozen=True)
class Numbers:
    """The numbers of a sample: the first one with a comma, and whether one has a point.

    `comma` can only be a decimal comma; the comma of `either` could separate thousands as well.
    """

    comma: Cell | None
    either: Cell | None
    has_point: bool


def find_dialect(
    samples: Callable[[], Iterable[Sample]], given: Given, *, usual: str = ",", skips_bad: bool = False
) -> Dialect:
    """The one dialect of the files of a table.

    Args:
        samples: the first lines of each file; called once for each pass over them.
        given: what need not be found.
        usual: the separator that is taken if it fits.
        skips_bad: rows with too few or too many cells may be left out: `usual` fits if it fits one row.

    Raises:
        DataFileError: two separators fit, or two readings of commas in numbers do; no one separator fits all
            files.
    """
    separator = given.separator
    if separator is None:
        fits_all = all(_fits(sample, usual, any_row=skips_bad) for sample in samples())
        separator = usual if fits_all else _other_separator(samples(), usual)
    else:
        _refuse_one_cell(samples(), separator)
    decimal = given.decimal or "."
    if given.decimal is None and separator != ",":
        decimal = _decimal_of([_numbers(sample, separator) for sample in samples()])
    is_found = (given.separator is None and separator != ",") or (given.decimal is None and decimal != ".")
    return Dialect(separator, decimal, said=is_found)


def rows_of(sample: Sample, separator: str) -> Iterator[Row]:
    """The rows of a sample; one with 0 cells, the last one, if a row cannot be read.

    Lines are read by csv.reader where quotes demand it only: it takes ten times as long.
    """
    lines, between, number = sample.lines, separator.encode(), 0
    while number < len(lines):
        row = _row_of(lines[number], between)
        if row is not None:
            yield row
            number += 1
            continue
        reader = csv.reader(
            (line.decode("utf-8", "replace") for line in islice(lines, number, None)), delimiter=separator
        )
        try:
            cells = next(reader)
        except csv.Error:
            yield Row(b"", 0)
            return
        number += reader.line_num
        if number == len(lines) and not sample.is_whole:
            return
        bare = ["" if separator in cell or "\n" in cell else cell for cell in cells]
        yield Row(separator.join(bare).encode(), len(cells))


def _row_of(line: bytes, between: bytes) -> Row | None:
    """A line as a row; None if it has quotes elsewhere than around cells, or a cell that it does not end."""
    if b'"' not in line:
        return Row(line, line.count(between) + 1)
    pieces = line.split(b'"')  # in turn outside and inside of quotes
    outside = pieces[::2]
    if len(pieces) % 2 == 0 or not (
        outside[0][-1:] in (b"", between)
        and outside[-1][:1] in (b"", between)
        and all(piece == b"" or piece[:1] == piece[-1:] == between for piece in outside[1:-1])
    ):
        return None
    pieces[1::2] = [b"" if between in piece else piece for piece in pieces[1::2]]
    return Row(b"".join(pieces), sum(piece.count(between) for piece in outside) + 1)


def _fits(sample: Sample, separator: str, *, any_row: bool = False) -> list[str]:
    """The columns that a separator gives, two at least; none if a row, or with `any_row` all, have others."""
    names = sample.names(separator)
    if len(names) < 2:
        return []
    fitting = (row.width == len(names) for row in rows_of(sample, separator))
    is_fit = all(fitting) if not any_row else any(fitting) or not sample.lines
    return names if is_fit else []


def _other_separator(samples: Iterable[Sample], usual: str) -> str:
    """The separator of files that `usual` does not fit, or `usual` where none does."""
    left: dict[str, list[str]] = {}
    first: Sample | None = None
    for sample in samples:
        fitting = {mark: names for mark in SEPARATORS if (names := _fits(sample, mark))}
        if not fitting:
            _refuse_misfit(sample, usual)
            return usual
        if first is None:
            first, left = sample, fitting
            continue
        common = {mark: names for mark, names in left.items() if mark in fitting}
        if not common:
            here, there = (" or ".join(_NAMES[mark] for mark in marks) for marks in (fitting, left))
            raise DataFileError(
                sample.path,
                f"has {here} between its cells, but {first.path.name} has {there}: files of one table have "
                f"the same; save them alike, or give each kind of them a folder of its own",
            )
        left = common
    assert first is not None
    if len(left) > 1 and usual not in left:
        readings = "; ".join(
            f"{_NAMES[mark]} gives {len(names)} columns, {abbreviated(names, ', ')}"
            for mark, names in left.items()
        )
        options = " or ".join(_OPTIONS[mark] for mark in left)
        raise DataFileError(first.path, f"may be separated in two ways: {readings}: give {options}")
    return usual if usual in left else next(iter(left))


def _refuse_misfit(sample: Sample, usual: str) -> None:
    """Raise DataFileError for a file that has another separator in its header, and a row that does not fit.

    A header that has `usual` is read with that, and its reader names the row.
    """
    if len(sample.names(usual)) > 1:
        return
    for mark in SEPARATORS:
        names = sample.names(mark)
        if len(names) < 2:
            continue
        misfits = (
            (n, row.width) for n, row in enumerate(rows_of(sample, mark), 1) if row.width != len(names)
        )
        number, width = next(misfits)
        cells = "cannot be read" if width == 0 else f"has {width} cell{'s' * (width > 1)}"
        raise DataFileError(
            sample.path,
            f"{cells} with {_NAMES[mark]} between them, but the header has {len(names)}: mend the row, or "
            f"give {_OPTIONS[mark]} (and --skip-bad, to leave out such rows)",
            number,
        )


def _refuse_one_cell(samples: Iterable[Sample], separator: str) -> None:
    for sample in samples:
        if len(sample.names(separator)) == 1:
            shown = sample.header.decode("utf-8-sig", "replace")[:MOST_REASON]
            raise DataFileError(
                sample.path,
                f"{_OPTIONS[separator]}: its header {shown!r} has one cell with {_NAMES[separator]} between "
                f"cells; give another --separator, or none, to have it found",
            )


def _decimal_of(numbers: Sequence[Numbers]) -> str:
    """The decimal point of files with these numbers; DataFileError if it cannot be told."""
    if any(each.has_point for each in numbers):
        return "."
    if any(each.comma for each in numbers):
        return ","
    either = next((each.either for each in numbers if each.either), None)
    if either is None:
        return "."
    decimal, whole = either.text.replace(",", ".", 1), either.text.replace(",", "")
    raise DataFileError(
        either.path,
        f"{either.column} = {either.text!r}: is {decimal} if its comma is a decimal point, and {whole} if it "
        f"separates thousands, and no other number tells: give --decimal ',' for the former; for the latter "
        f"save the numbers without such commas, or give --decimal . to keep them as texts",
        either.row,
    )


def _numbers(sample: Sample, separator: str) -> Numbers:
    """The numbers of a sample; those with a comma are not looked for where one has a point."""
    rows = [row.line for row in rows_of(sample, separator)]
    if _first_cell(sample, separator, rows, b".", _WITH_POINT):
        return Numbers(None, None, has_point=True)
    comma = _first_cell(sample, separator, rows, b",", _WITH_COMMA)
    either = None if comma else _first_cell(sample, separator, rows, b",", _WITH_THOUSANDS)
    return Numbers(comma, either, has_point=False)


def _first_cell(
    sample: Sample, separator: str, rows: Sequence[bytes], mark: bytes, pattern: re.Pattern[bytes]
) -> Cell | None:
    """The first cell with `mark` in it that matches a pattern."""
    between = separator.encode()
    for number, line in enumerate(rows, start=1):
        at = line.find(mark)
        while at >= 0:
            first = line.rfind(between, 0, at) + 1
            end = line.find(between, at)
            end = len(line) if end < 0 else end
            if pattern.fullmatch(line, first, end):
                column = line.count(between, 0, first)
                names = sample.names(separator)
                name = names[column] if column < len(names) else f"column {column + 1}"
                return Cell(sample.path, number, name, line[first:end].strip().decode())
            at = line.find(mark, end)
    return None
