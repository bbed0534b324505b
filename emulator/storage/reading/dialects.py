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

_WHOLE = re.compile(r"\s*-?[0-9]+\s*")
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

    def error(self, problem: str, row: int | None = None) -> DataFileError:
        """What is wrong with the file, or with one of its rows."""
        return DataFileError(self.path, problem, row)

    def option(self, key: str, value: object = None) -> str:
        """How a value is given for the file, for messages."""
        return self.form.given.option(self.path, key, value)


class Row(NamedTuple):
    """A row: its cells without quotes, with separators between them, and their number.

    Quoted cells in which a separator, a quote or a line end is are empty here: they are no numbers.
    """

    line: bytes
    width: int


def find_dialect(
    samples: Callable[[], Iterable[Sample]], given: Given, *, usual: str = ",", skips_bad: bool = False
) -> Dialect:
    """The one dialect of the files of a table.

    Args:
        samples: the first lines of each file; called once for each pass over them.
        given: what need not be found; the separator may also be named by the first file.
        usual: the separator that is taken if it fits.
        skips_bad: rows with too few or too many cells may be left out: `usual` fits if it fits one row.

    Raises:
        DataFileError: two separators fit, or two readings of commas in numbers do; no one separator fits all
            files; or the columns that are given are not as many as those of a file.
    """
    named = next(iter(samples())).form.mark or given.mark
    if named or given.columns:
        for sample in samples():
            _refuse_given(sample, named)
    if named:
        separator = named
    else:
        fits_all = all(_fits(sample, usual, any_row=skips_bad) for sample in samples())
        separator = usual if fits_all else _other_separator(samples(), usual)
    decimal: str = given.decimal or "."
    if given.decimal is None and separator != ",":
        decimal = _decimal_of([_decimal_in(sample, separator) for sample in samples()])
    is_unusual = (named is None and separator != ",") or (given.decimal is None and decimal != ".")
    return Dialect(separator, decimal, said=is_unusual)


def rows_of(sample: Sample, separator: str) -> Iterator[Row]:
    """The rows of a sample; one with 0 cells, the last one, if a row cannot be read.

    Lines are read by csv.reader where quotes demand it only: it takes ten times as long.
    """
    lines, between, number = sample.lines, separator.encode(), 0
    while number < len(lines):
        row, num_lines = _row_of(lines[number], between), 1
        if row is None:
            texts = (line.decode("utf-8", "replace") for line in islice(lines, number, None))
            reader = csv.reader(texts, delimiter=separator)
            try:
                cells = next(reader)
            except csv.Error:
                yield Row(b"", 0)
                return
            bare = ["" if separator in cell or "\n" in cell else cell for cell in cells]
            row, num_lines = Row(separator.join(bare).encode(), len(cells)), reader.line_num
            if number + num_lines == len(lines) and not sample.is_whole:
                return
        yield row
        number += num_lines


def _row_of(line: bytes, between: bytes) -> Row | None:
    """A line as a row; None if it has quotes elsewhere than around cells, or a cell that it does not end."""
    if b'"' in line:
        quoted = rb'"(?<![^%b]")([^"]*(?:""[^"]*)*)"(?=[%b]|\Z)'.replace(b"%b", between)
        line = re.sub(quoted, lambda cell: b"" if between in cell[1] or b'"' in cell[1] else cell[1], line)
    return None if b'"' in line else Row(line, line.count(between) + 1)


def _fits(sample: Sample, separator: str, *, any_row: bool = False) -> list[str]:
    """The columns that a separator gives, two at least; none if a row, or with `any_row` all, have others."""
    names = sample.names(separator)
    if len(names) < 2:
        return []
    widths = {row.width for row in rows_of(sample, separator)}
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
        first = first or sample
        common = {mark: names for mark, names in (left or fitting).items() if mark in fitting}
        if not common:
            here, there = (" or ".join(_NAMES[mark] for mark in marks) for marks in (fitting, left))
            raise sample.error(
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
        raise first.error(f"may be separated in two ways: {readings}: give {options}")
    return usual if usual in left else next(iter(left))


def _refuse_misfit(sample: Sample, usual: str) -> None:
    """Raise DataFileError for a file that has another separator in its header, and a row that does not fit.

    A header that has `usual` is read with that, and its reader names the row.
    """
    mark = next((mark for mark in SEPARATORS if len(sample.names(mark)) > 1), None)
    if mark is None or len(sample.names(usual)) > 1:
        return
    num_names = len(sample.names(mark))
    number, width = next(
        (n, row.width) for n, row in enumerate(rows_of(sample, mark), 1) if row.width != num_names
    )
    can_skip = "skip_bad" in type(sample.form.given).model_fields
    skip = " (and --skip-bad, to leave out such rows)" if can_skip else ""
    cells = "cannot be read" if width == 0 else f"has {width} cell{'s' * (width > 1)}"
    raise sample.error(
        f"{cells} with {_NAMES[mark]} between them, but the header has {num_names}: mend the row, or give "
        f"{sample.option('separator', mark)}{skip}",
        number,
    )


def _refuse_given(sample: Sample, separator: str | None) -> None:
    """Raise DataFileError for a file that the names of its columns, or else its separator, do not fit."""
    given, number = sample.form.given, len(sample.names(separator or ","))
    if not given.columns and separator and number == 1:
        mark, shown = given.mark or separator, sample.header.decode("utf-8-sig", "replace")[:MOST_REASON]
        raise sample.error(
            f"{sample.option('separator', mark)}: its header {shown!r} has one cell with {_NAMES[mark]} "
            f"between cells; give another one, or none, to have it found",
        )
    marks = (separator,) if separator else SEPARATORS
    widths = [row.width for mark in marks for row in islice(rows_of(sample, mark), 1)]
    if given.columns and widths and number not in widths:
        is_one = max(widths) == 1 and len(sample.lines[0].split()) > 1
        blanks = f", or give {sample.option('separator', ' ')} if blanks separate" if is_one else ""
        raise sample.error(
            f"{sample.option('columns')}: has {number} name{'s' * (number > 1)}, but its first row has "
            f"{max(widths)} cell{'s' * (max(widths) > 1)}; name each of them{blanks}",
            1,
        )


def _decimal_of(found: Sequence[str | DataFileError | None]) -> str:
    """The decimal point of files in which these were found; DataFileError if it cannot be told."""
    for mark in (".", ","):
        if mark in found:
            return mark
    for error in found:
        if isinstance(error, DataFileError):
            raise error
    return "."


def _decimal_in(sample: Sample, separator: str) -> str | DataFileError | None:
    """The decimal point of the numbers of a sample; an error if commas may separate thousands as well.

    Those with a comma are not looked for where one has a point. None: no number has either.
    """
    lines = [row.line for row in rows_of(sample, separator)]
    if _first_cell(lines, separator, b".", _WITH_POINT):
        return "."
    if _first_cell(lines, separator, b",", _WITH_COMMA):
        return ","
    either = _first_cell(lines, separator, b",", _WITH_THOUSANDS)
    if either is None:
        return None
    row, column, text = either
    name = dict(enumerate(sample.names(separator))).get(column, f"column {column + 1}")
    comma, point = (sample.option("decimal", mark) for mark in (",", "."))
    return sample.error(
        f"{name} = {text!r}: is {text.replace(',', '.', 1)} if its comma is a decimal point, and "
        f"{text.replace(',', '')} if it separates thousands, and no other number tells: give {comma} for the "
        f"former; for the latter save the numbers without such commas, or give {point} to keep them as texts",
        row,
    )


def _first_cell(
    lines: Sequence[bytes], separator: str, mark: bytes, pattern: re.Pattern[bytes]
) -> tuple[int, int, str] | None:
    """The row, counted from 1, the column and the text of the first cell with `mark` that matches."""
    between = separator.encode()
    for row, line in enumerate(lines, 1):
        at = line.find(mark)
        while at >= 0:
            first, end = line.rfind(between, 0, at) + 1, line.find(between, at)
            end = len(line) if end < 0 else end
            if pattern.fullmatch(line, first, end):
                return row, line.count(between, 0, first), line[first:end].strip().decode()
            at = line.find(mark, end)
    return None


def names_of(sample: Sample, separator: str) -> list[str]:
    """The names of all columns of a CSV.

    Raises DataFileError for a header that is not in the encoding of the file, or cannot be read.
    """
    if b"\0" in sample.header:
        is_big = sample.header.find(b"\0") % 2 == 0  # of a Latin letter the first byte is null
        remedy = sample.option("encoding", "utf-16-be" if is_big else "utf-16-le")
        raise sample.error(f"its first line has null bytes: give its encoding, such as {remedy}")
    try:
        header = sample.header.decode("utf-8-sig")
        given = sample.form.given.columns
        return list(given) if given else next(csv.reader([header], delimiter=separator), [])
    except UnicodeDecodeError:
        refuse_encoding(sample.path, sample.form)
        raise
    except csv.Error as error:  # such as a carriage return alone
        raise sample.error(f"cannot be read as CSV ({error})") from error


def doubt_of(sample: Sample, names: Sequence[str]) -> str | None:
    """Why the first line of a CSV may be no header, with the remedy; None if it looks like one.

    Numbers that count up, as pandas names columns without a name, are one.
    """
    if sample.form.given.columns or not names:
        return None
    line = f"its first line, {abbreviated([repr(name[:MOST_SHOWN]) for name in names], ', ')},"
    if names[0].lstrip().startswith(_COMMENTS):
        lines = takewhile(lambda line: line.decode("utf-8", "replace").startswith(_COMMENTS), sample.lines)
        remedy = sample.option("skip_lines", 1 + sum(1 for _ in lines))
        return f"{line} looks like a comment: leave it out with {remedy}"
    if len(names) == 1 and len(names[0].split()) > 1:
        return f"{line} is one cell: give {sample.option('separator', ' ')} if blanks separate"
    numbers = [
        float(name) for name in names if _WITH_POINT.fullmatch(name.encode()) or _WHOLE.fullmatch(name)
    ]
    if len(numbers) < 2 or all(after - before == 1 for before, after in pairwise(numbers)):
        return None
    columns = sample.option("columns", (*"abcdefgh"[: len(names)], *["..."][: len(names) > 8]))
    return f"{line} looks like data: if it has no header, name its {len(names)} columns, as {columns} does"
