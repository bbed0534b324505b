"""The rules that the rows of a data set keep: each one a condition, and a message with its remedy.

A rule looks at cells, by name: at columns, and at what else they are about. In its message `{name}` is what
the cells have under that name, of a column the value in the row that breaks it. To add a rule to a kind of
column, add it to the rules of that kind.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from emulator.arrays import Bools
from emulator.numbers import LARGEST
from emulator.storage.parquet_columns import EARLIEST_US, LATEST_US, OUT_OF_RANGE
from emulator.storage.reading.columns import is_text
from emulator.storage.reading.shards import Batch
from traces.building.bad_rows import BadRows
from traces.building.pixels import leads_out


class Cells(SimpleNamespace):
    """What rules look at: columns (rows,), or (rows, columns), and whatever else, by name.

    With `codes` (rows,), columns have distinct values (k,), and row i has the one at `codes[i]`; a missing
    text is None. A function stands for what is worked out for a message alone: it gets the place of the value
    in its column.

    NOTE: a function that refers to the cells makes them outlive their batch, until Python looks for cycles.
    """

    codes: np.ndarray | None = None


class Rule(NamedTuple):
    """Cells where `broken` is true, an array of the shape of their columns, are refused with a message."""

    broken: Callable[[Any], Any]
    message: str

    def problem(self, cells: object, cell: Any = None) -> str:
        """What is wrong with a cell that breaks it; None: all of the cells are single values."""
        return self.message.format_map(_Shown(cells, cell))


Rules = tuple[Rule, ...]


class _Shown:
    """What is shown of the cells in a message, each once it is asked for."""

    def __init__(self, cells: object, cell: Any) -> None:
        self.cells, self.cell = cells, cell

    def __getitem__(self, name: str) -> Any:
        value: Any = getattr(self.cells, name)
        if callable(value):
            return value(self.cell)
        if isinstance(value, pa.Array):
            return value[self.cell].as_py()
        return value[self.cell] if isinstance(value, list | np.ndarray) else value


def keep(
    rules: Rules, cells: Cells, bad: BadRows, batch: Batch, start: int, among: Bools | None = None
) -> Bools:
    """(rows,) whether each row of a batch, whose first one is number `start` of the table, keeps all rules.

    Others are left out, each by the first rule that it breaks; DataFileError if they are too many. Rows that
    are not `among` (rows,) those that are looked at are neither kept nor left out.
    """
    broken = [np.asarray(rule.broken(cells), np.bool_) for rule in rules]
    wrong: Bools = reduce(np.logical_or, broken)
    refused = wrong if cells.codes is None else wrong[cells.codes]
    refused = refused if refused.ndim == 1 else np.any(refused, axis=1)
    refused = refused if among is None else refused & among

    def problem(row: int) -> str:
        cell: Any = row if cells.codes is None else int(cells.codes[row])
        if wrong.ndim == 2:
            cell = row, int(wrong[row].argmax())
        return next(rule.problem(cells, cell) for rule, at in zip(rules, broken, strict=True) if at[cell])

    bad.refuse(batch, start, refused, problem)
    return ~refused if among is None else among & ~refused


def refuse(rules: Rules, cells: Cells, path: Path, num_rows: int, first: int = 0) -> None:
    """Raise DataFileError, with its row, for the first of the rows of a file that breaks one of the rules.

    The first of the cells is in row `first` of the file, from 0 on.
    """
    keep(rules, cells, BadRows(0), Batch(path, first, {}, num_rows), 0)


# -- tables

EXACT = 2**53
"""Whole numbers up to this are exact in double precision."""

REGRESSION = "a regression target; labels are classes: integers or texts"
SEQUENCE = "a sequence or several labels of a sample; labels are classes: integers or texts"
TIMES = "a date or a timestamp in ISO 8601, as 2015-01-31 or 2015-01-31T12:00:00Z"

PRESENT = (Rule(lambda c: c.is_missing, "{name} is missing"),)

WHOLE = (
    *PRESENT,
    Rule(lambda c: c.value < c.least, "{name} = {value}: must be from {least} to {most}"),
    Rule(lambda c: c.value > c.most, "{name} = {value}: must be from {least} to {most}"),
)
FRACTIONS = (
    Rule(
        lambda c: (np.floor(c.value) != c.value) | ~(np.abs(c.value) < EXACT),
        "{name} = {value}: must be a whole number, or empty for never",
    ),
)
"""Whole numbers that are written as fractions."""

NUMBERS = (*PRESENT, Rule(lambda c: ~np.isfinite(c.value), "{name} = {value}: must be a finite number"))

NAMES = (Rule(lambda c: c.is_missing, "{name} is missing: the {what} of the row"),)

SPLITS = (
    *NAMES,
    Rule(
        lambda c: [text not in c.choices for text in c.value],
        "{name} = {value!r}: must be {either}; --splits 'val=test' says what other texts are",
    ),
)
NUMBERED = (
    *NAMES,
    Rule(
        lambda c: [text == "-1" for text in c.value],
        "{name} = -1: must be a class, and -1 is none; leave out such rows with --skip-bad",
    ),
    Rule(
        lambda c: [not 0 <= int(text or 0) <= c.last for text in c.value],
        "{name} = {value}: must be from 0 to {last}, as there are {number} class names: name all",
    ),
)
"""Labels that are numbers of classes, which have names."""

NAMED = {"client": NAMES, "label": NAMES, "split": SPLITS}
"""The rules of texts that are names, by what they name; categories keep `NAMES`."""

TARGETS = (Rule(lambda c: c.is_target, f"label: column {{name!r}} holds {{value}}, {REGRESSION}"),)
LABELS = (Rule(lambda c: c.is_text, "{name} = {value!r}: must be a whole number, as in the first rows"),)
"""Labels of which the first ones are numbers."""

INSTANTS = (Rule(lambda c: (c.value < EARLIEST_US) | (c.value >= LATEST_US), f"{{name}} {OUT_OF_RANGE}"),)
WRITTEN_TIMES = (*PRESENT, Rule(lambda c: ~c.is_time, "{name} = {value!r}: {expected}"))
MIXED_TIMES = (
    Rule(
        lambda c: c.is_time & (c.written == c.first.written) & c.is_local,
        "{name} = {value!r}: has no offset, so that its day is a local one already; leave out --zone",
    ),
    Rule(
        lambda c: c.is_time & (c.written != c.first.written),
        "{name} = {value!r}: {way}, and {first.shown!r} in {first.place} {first.way}; give all times an "
        "offset, or none",
    ),
)

UNIX_SIZES = (
    Rule(
        lambda c: c.size == 0,
        "{name} = {value}: too small for a Unix time; give --unix s if it is one, --time-format for dates "
        "such as 20240131, or --step or --order for other numbers",
    ),
)
UNIX_UNITS = (
    Rule(
        lambda c: c.is_other,
        "{name} = {value}: has the size of Unix {own}, and {first} that of {known}; write all of them in one "
        "unit, or give --unix {unit} if they are",
    ),
)
UNIX_TIMES = (Rule(lambda c: ~c.is_time, "{name} = {value}: is no time in {known} since 1970"),)
UNIX_YEARS = (
    Rule(
        lambda c: (c.time < c.earliest) | (c.time >= c.latest),
        "{name} = {value}: by its size {known} since 1970, yet {shown} is not in {year} to 2100: give --unix "
        "{unit} if it is right{readings}; give --order instead of --time for numbers that only order rows",
    ),
)

EXPIRY = (Rule(lambda c: c.expiry <= c.at, "{name} = {until}: must be after {other} = {since}"),)

_FILL = "give --missing mean or --missing zero to fill it"
CATEGORIES = (Rule(lambda c: c.is_missing, f"{{name}} is missing; {_FILL}"),)
WRITTEN_NUMBERS = (Rule(lambda c: ~c.is_number, "{name} = {value!r}: must be {number}"),)
FEATURES = (
    Rule(lambda c: np.isnan(c.value) & c.is_needed, f"{{name}} is missing; {_FILL}"),
    Rule(
        lambda c: np.abs(c.value) > LARGEST,
        f"{{name}} is not finite: infinity, or a number beyond {LARGEST:g}",
    ),
)
TARGETS_FIT = (
    Rule(lambda c: ~(np.abs(c.value) <= LARGEST), "{name} = {value}: must be a finite number of 32 bits"),
)
MOST_EXACT = 2**24
"""Whole numbers up to that size are numbers of 32 bits without loss."""

FLOAT_SAMPLES = (
    Rule(
        lambda c: ~(np.abs(c.stored) <= LARGEST),
        f"{{value}} at {{index}} of its features: must be a finite number of 32 bits, up to {LARGEST:g}",
    ),
)
WHOLE_SAMPLES = (
    Rule(
        lambda c: (c.value > MOST_EXACT) | (c.value < -MOST_EXACT),
        f"{{value}} at {{index}} of its features: a whole number must be at most {MOST_EXACT} in size, to be "
        "exact as one of 32 bits",
    ),
)
IMAGES = (Rule(lambda c: c.is_bad, "{name} {problem}"),)
VECTORS = (
    Rule(
        lambda c: c.is_missing,
        "{name} is missing; a vector is not filled: leave out such rows with --skip-bad",
    ),
    Rule(
        lambda c: ~c.fits,
        "{name} = {found}: must have {size} values, as the first row has; --skip-bad leaves out such rows",
    ),
)

_IS = "{key}: column {name!r} is {kind}"
WHOLE_NUMBERS = ("step", "count", "concept")
"""Columns of texts or whole numbers, and of whole numbers."""

KINDS = (
    Rule(lambda c: c.key == "label" and pa.types.is_decimal(c.kind), f"{_IS}, {REGRESSION}"),
    Rule(lambda c: c.key == "label" and pa.types.is_nested(c.kind), f"{_IS}, {SEQUENCE}"),
    Rule(lambda c: c.key in NAMED and not _is_name(c), f"{_IS}; it must hold texts or whole numbers"),
    Rule(lambda c: c.key in WHOLE_NUMBERS and not _is_whole(c), f"{_IS}; it must hold whole numbers"),
)
"""The types of columns that are no features, by what the columns are."""


def _is_name(c: Cells) -> bool:
    is_fraction = c.key == "label" and pa.types.is_floating(c.kind)  # whole numbers, perhaps
    is_known = pa.types.is_integer(c.kind) or pa.types.is_boolean(c.kind) or is_text(c.kind)
    return bool(c.is_csv or is_fraction or is_known)


def _is_whole(c: Cells) -> bool:
    return bool(pa.types.is_integer(c.kind) or (c.is_csv and pa.types.is_null(c.kind)))


# -- data sets of images

FILES = (Rule(lambda c: [leads_out(name) for name in c.file], "{column} {file!r}: leads out of {folder}"),)
OBJECTS = (
    Rule(lambda c: c.label < 0, "class {text!r}: must be a number from 0 to {last}, or one of {names}"),
    *FILES,
    Rule(lambda c: (c.box[:, 2:] <= c.box[:, :2]).any(axis=1), "x0,y0,x1,y1 = {corners}: the box is empty"),
)
FMOW_CLASSES = (Rule(lambda c: c.label < 0, "category {category!r}: is none of the {number} of fMoW"),)
LABEL_IDS = (
    Rule(lambda c: c.label < 0, "label_id = {label}: no class; samples without classes cannot be played"),
)
CIFAR_LABELS = (
    Rule(
        lambda c: c.label >= c.size, "{name} label {label}: must be below {size}; is it of another version?"
    ),
)
PATHS_ONCE = (Rule(lambda c: c.first < c.number, "path {path!r} is also in row {first}"),)
PATHS_OF_IMAGES = (Rule(lambda c: ~c.known, "path {path!r}: no such image below {root}"),)
FRAMES_ONCE = (Rule(lambda c: c.again, "{keys[0]} and {keys[1]}: occur twice"),)
FRAMES = (Rule(lambda c: ~c.known, "{keys[0]} = {time}, {keys[1]} = {camera}: {images} has no such frame"),)
