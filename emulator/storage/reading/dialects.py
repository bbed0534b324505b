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
from itertools import islice, pairwise, takewhile
from pathlib import Path
from typing import NamedTuple

from emulator.errors import DataFileError, abbreviated
from emulator.storage.reading.bounds import MOST_REASON
from emulator.storage.reading.text import Form, refuse_encoding
from emulator.storage.table_paths import Given

SEPARATORS = (",", ";", "\t", "|")

MOST_ROWS = 1000
"""Rows of a file that its dialect is found from, besides the header."""

MOST_SHOWN = 40
"""Most letters of a name of a column that is shown."""

_NAMES = {",": "','", ";": "';'", "\t": "a tab", "|": "'|'", " ": "blanks"}

_COMMENTS = ("#", "%", "//")

_WITH_POINT = re.compile(rb" *[+-]?(?:[0-9]+[.][0-9]*|[.][0-9]+)(?:[eE][+-]?[0-9]+)? *")
_WITH_THOUSANDS = re.compile(rb" *[+-]?[1-9][0-9]{0,2}(?:,[0-9]{3})+ *")
_WITH_COMMA = re.compile(
    rb"(?! *[+-]?[1-9][0-9]{0,2}(?:,[0-9]{3})+ *\Z) *[+-]?[0-9]*,[0-9]+(?:[eE][+-]?[0-9]+)? *"
)


@dataclass(frozen=True)
class Dialect:
    """How the cells of a CSV are separated, and its decimal point; `said` if that was found, and is unusual.

    >>> Dialect(";", ",", said=True).sentence(Given())
    "read with ';' between cells and ',' as decimal point: --separator and --decimal override"
    """

    separator: str = ","
    decimal: str = "."
    said: bool = False

    @property
    def number(self) -> str:
        """What a cell of a number must be."""
        return "a number" if self.decimal == "." else f"a number, with {self.decimal!r} as decimal point"

    def sentence(self, given: Given) -> str | None:
        """What is to be told about it; None if there is nothing to tell."""
        if not self.said:
            return None
        keys = "separator and decimal" if given.in_configuration else "--separator and --decimal"
        between = _NAMES[given.mark or self.separator]
        return f"read with {between} between cells and {self.decimal!r} as decimal point: {keys} override"


@dataclass(frozen=True)
class Sample:
    """The first lines of a CSV, without line ends and blank lines.

    `header` is empty if the names of the columns are given. `is_whole`: they are all lines of it, so the last
    row is complete.
    """

    path: Path
    header: bytes
    lines: Sequence[bytes]
    is_whole: bool
    form: Form = Form(Given())  # noqa: RUF009  (it is frozen)

    def names(self, separator: str) -> list[str]:
        """The names of the columns; none if the header cannot be read with this separator."""
        if self.form.given.columns:
            return list(self.form.given.columns)
        try:
            return next(csv.reader([self.header.decode("utf-8-sig", "replace")], delimiter=separator), [])
        except csv.Error:
            return []

    def option(self, key: str, value: object = None) -> str:
        """How a value is given for the file, for messages."""
        return self.form.given.option(self.path, key, value)


class Row(NamedTuple):
    """A row: its cells without quotes, with separators between them, and their number.

    Quoted cells in which a separator, a quote or a line end is are empty here: they are no numbers.
    """

    line: bytes
    width: int


class Cell(NamedTuple):
    """A cell of a sample, for messages."""

    path: Path
    given: Given
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
    samples: Callable[[], Iterable[Sample]],
    given: Given,
    *,
    mark: str | None = None,
    usual: str = ",",
    skips_bad: bool = False,
) -> Dialect:
    """The one dialect of the files of a table.

    Args:
        samples: the first lines of each file; called once for each pass over them.
        given: what need not be found.
        mark: the separator, if the first file names it.
        usual: the separator that is taken if it fits.
        skips_bad: rows with too few or too many cells may be left out: `usual` fits if it fits one row.

    Raises:
        DataFileError: two separators fit, or two readings of commas in numbers do; no one separator fits all
            files; or the columns that are given are not as many as those of a file.
    """
    named = mark or given.mark
    if given.columns:
        _refuse_other_count(samples(), (named,) if named else SEPARATORS)
    if named:
        separator = named
        _refuse_one_cell(samples(), separator)
    else:
        fits_all = all(_fits(sample, usual, any_row=skips_bad) for sample in samples())
        separator = usual if fits_all else _other_separator(samples(), usual)
    decimal: str = given.decimal or "."
    if given.decimal is None and separator != ",":
        decimal = _decimal_of([_numbers(sample, separator) for sample in samples()])
    is_unusual = (named is None and separator != ",") or (given.decimal is None and decimal != ".")
    return Dialect(separator, decimal, said=is_unusual)


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
    if b'"' in b"".join(sample.lines):
        widths = {row.width for row in rows_of(sample, separator)}
    else:
        between = separator.encode()
        widths = {line.count(between) + 1 for line in sample.lines}
    is_fit = len(names) in widths or not sample.lines if any_row else widths <= {len(names)}
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
        options = " or ".join(first.option("separator", mark) for mark in left)
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
        can_skip = "skip_bad" in type(sample.form.given).model_fields
        skip = " (and --skip-bad, to leave out such rows)" if can_skip else ""
        cells = "cannot be read" if width == 0 else f"has {width} cell{'s' * (width > 1)}"
        raise DataFileError(
            sample.path,
            f"{cells} with {_NAMES[mark]} between them, but the header has {len(names)}: mend the row, or "
            f"give {sample.option('separator', mark)}{skip}",
            number,
        )


def _refuse_other_count(samples: Iterable[Sample], marks: Sequence[str]) -> None:
    """Raise DataFileError for a file whose first row has not as many cells as there are names of columns."""
    for sample in samples:
        number = len(sample.names(marks[0]))
        widths = [row.width for mark in marks for row in islice(rows_of(sample, mark), 1)]
        if widths and number not in widths:
            is_one = max(widths) == 1 and len(sample.lines[0].split()) > 1
            blanks = f", or give {sample.option('separator', ' ')} if blanks separate" if is_one else ""
            raise DataFileError(
                sample.path,
                f"{sample.option('columns')}: has {number} name{'s' * (number > 1)}, but its first row has "
                f"{max(widths)} cell{'s' * (max(widths) > 1)}; name each of them{blanks}",
                1,
            )


def _refuse_one_cell(samples: Iterable[Sample], separator: str) -> None:
    for sample in samples:
        if len(sample.names(separator)) == 1 and not sample.form.given.columns:
            mark = sample.form.given.mark or separator
            shown = sample.header.decode("utf-8-sig", "replace")[:MOST_REASON]
            raise DataFileError(
                sample.path,
                f"{sample.option('separator', mark)}: its header {shown!r} has one cell with {_NAMES[mark]} "
                f"between cells; give another one, or none, to have it found",
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
    comma, point = (either.given.option(either.path, "decimal", mark) for mark in (",", "."))
    raise DataFileError(
        either.path,
        f"{either.column} = {either.text!r}: is {decimal} if its comma is a decimal point, and {whole} if it "
        f"separates thousands, and no other number tells: give {comma} for the former; for the latter save "
        f"the numbers without such commas, or give {point} to keep them as texts",
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
                return Cell(sample.path, sample.form.given, number, name, line[first:end].strip().decode())
            at = line.find(mark, end)
    return None


def names_of(sample: Sample, separator: str) -> list[str]:
    """The names of all columns of a CSV.

    Raises DataFileError for a header that is not in the encoding of the file, or cannot be read.
    """
    if b"\0" in sample.header:
        is_big = sample.header.find(b"\0") % 2 == 0  # of a Latin letter the first byte is null
        remedy = sample.option("encoding", "utf-16-be" if is_big else "utf-16-le")
        raise DataFileError(
            sample.path, f"its first line has null bytes: give its encoding, such as {remedy}"
        )
    try:
        header = sample.header.decode("utf-8-sig")
        given = sample.form.given.columns
        return list(given) if given else next(csv.reader([header], delimiter=separator), [])
    except UnicodeDecodeError:
        refuse_encoding(sample.path, sample.form.given)
        raise
    except csv.Error as error:  # such as a carriage return alone
        raise DataFileError(sample.path, f"cannot be read as CSV ({error})") from error


def doubt_of(sample: Sample, names: Sequence[str]) -> str | None:
    """Why the first line of a CSV may be no header, with the remedy; None if it looks like one.

    Numbers that count up, as pandas names columns without a name, are one.
    """
    if sample.form.given.columns or not names:
        return None
    shown = abbreviated([repr(name[:MOST_SHOWN]) for name in names], ", ")
    if names[0].lstrip().startswith(_COMMENTS):
        lines = takewhile(lambda line: line.decode("utf-8", "replace").startswith(_COMMENTS), sample.lines)
        remedy = sample.option("skip_lines", 1 + sum(1 for _ in lines))
        return f"its first line, {shown}, looks like a comment: leave it out with {remedy}"
    if len(names) == 1 and len(names[0].split()) > 1:
        return (
            f"its first line, {shown}, is one cell: give {sample.option('separator', ' ')} if blanks separate"
        )
    numbers = [float(name) for name in names if _WITH_POINT.fullmatch(name.encode()) or _is_whole(name)]
    if len(numbers) < 2 or all(after - before == 1 for before, after in pairwise(numbers)):
        return None
    columns = (*"abcdefgh"[: len(names)], *["..."][: len(names) > 8])
    return (
        f"its first line, {shown}, looks like data: if it has no header, name its {len(names)} columns, as "
        f"{sample.option('columns', columns)} does"
    )


def _is_whole(name: str) -> bool:
    digits = name.strip().removeprefix("-")
    return digits.isascii() and digits.isdigit()
