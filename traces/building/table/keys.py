"""The columns of a table that are no features: who has a row, when it arrives, and its class."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from emulator.arrays import Ints
from emulator.errors import DataFileError
from emulator.storage.parquet_columns import MOST_TEXTS
from traces.arrivals import SPLITS
from traces.building.table.bad_rows import BadRows
from traces.building.table.expiry import Expiry, PresentRows, refuse_never_held
from traces.building.table.instants import Instants, TimeOptions, read_as
from traces.building.table.reading.columns import NO_VALUE, is_text, without
from traces.building.table.reading.shards import TEXT, Batch, Shards, missing
from traces.building.table.settings import TableSettings
from traces.building.table.spellings import Spellings
from traces.files.arrivals import BOUNDS, MOST_CLASSES
from traces.ordering import pieces, ranks_of

ROWS = 2**16
"""Rows of a batch of keys."""

BLOCK_BYTES = 2**26
"""Bytes of a block of a column, of eight bytes a row."""

MOST_CATEGORIES = 4096
"""Most values of a feature that becomes one column for each."""

MOST_WHOLE = 1000
"""Most classes that are whole numbers written as fractions: more are a regression target."""

EXACT = 2**53
"""Whole numbers up to this are exact in double precision."""

REGRESSION = "a regression target; labels are classes: integers or texts"
SEQUENCE = "a sequence; labels are classes: integers or texts"

_NUMBER = re.compile(r"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?$")
_FRACTION = re.compile(r"[+-]?[0-9]*[.][0-9]*([eE][+-]?[0-9]+)?$")

Names = tuple[str, ...] | Ints


@dataclass(frozen=True)
class Keys:
    """The columns of all rows (rows,), in the order of the files.

    `client` and `label` index into `clients` and `classes`. `at` is a time in microseconds, a data step, or
    a number by which rows are ordered; None: all rows are owned at the start, or arrive in the order of the
    file.
    `expiry` is when a client holds the row no longer, in the unit of `at`: the greatest number, or infinity,
    if it holds it to the end. None: no column says.
    `categories` has the values of each `one_hot` feature. `notes` are what is to be told about them.
    """

    num_rows: int
    client: np.ndarray | None
    clients: Names
    label: np.ndarray
    classes: tuple[str, ...]
    at: np.ndarray | None
    has_zone: bool
    split: np.ndarray | None
    count: np.ndarray | None
    concept: np.ndarray | None
    expiry: np.ndarray | None
    categories: dict[str, tuple[str, ...]]
    notes: tuple[str, ...] = ()


def read_keys(
    shards: Shards,
    settings: TableSettings,
    bad: BadRows,
    owners: Mapping[Path, str] | None = None,
    class_names: Sequence[str] | None = None,
) -> Keys:
    """Read all columns that are no features, and the values of `one_hot` features.

    Args:
        shards: the table.
        settings: which columns are what.
        bad: counts the rows that are left out.
        owners: the client of each file, if no column has the clients.
        class_names: the names of the classes, if labels are numbers of them.

    Raises:
        DataFileError: a value is missing or breaks a rule, and may not be left out; or the table has too many
            cells, counted while they are read.
    """
    columns = settings.columns_of_keys()
    at = _arrival(shards, settings, bad)
    expiry = None if settings.expiry is None else _expiry(shards, settings, bad)
    client = _clients(settings, bad, owners)
    label = _Labels(settings.label, shards, bad, class_names)
    split = None if settings.split is None else _Values(settings.split, "split", len(SPLITS), bad, SPLITS)
    count = None if settings.count is None else _Whole(settings.count, *BOUNDS["count"], bad)
    concept = None if settings.concept is None else _Whole(settings.concept, *BOUNDS["concept"], bad)
    one_hot = {name: _Values(name, name, MOST_CATEGORIES, bad, empty=True) for name in settings.one_hot}
    readers = [
        reader for reader in (client, label, at, expiry, split, count, concept, *one_hot.values()) if reader
    ]
    types = {name: _read_as(shards, settings, name) for name in (*columns.values(), *settings.one_hot)}
    start = 0
    malformed = bad.malformed_line if bad.most else None
    tally = shards.tally()
    na_in = types if settings.na_everywhere else settings.one_hot
    for batch in shards.batches(types, ROWS, malformed=malformed, tally=tally, na_in=na_in):
        for reader in readers:
            reader.add(batch, start)
            if isinstance(reader, _Values):
                tally.add_names(batch.path, reader.new_names())
        start += batch.num_rows
    codes, classes = label.finish()
    arrived = at.all() if at else None
    expired = None
    if at is not None and arrived is not None and expiry is not None:
        expired = expiry.all()
        _refuse_other_unit(at, expiry, shards)
        refuse_never_held(shards, arrived, expired, (at.name, expiry.reader.name), bad)
    client_codes, clients = client.finish() if client else (None, ())
    return Keys(
        num_rows=start,
        client=client_codes,
        clients=clients,
        label=codes,
        classes=tuple(map(str, classes)),
        at=arrived,
        has_zone=isinstance(at, _Times) and at.instants.has_zone,
        split=split.in_choices() if split else None,
        count=count.all() if count else None,
        concept=concept.all() if concept else None,
        expiry=expired,
        categories={name: tuple(map(str, reader.finish()[1])) for name, reader in one_hot.items()},
        notes=(*(filter(None, [at.instants.note()]) if isinstance(at, _Times) else ()), *label.notes),
    )


def _clients(settings: TableSettings, bad: BadRows, owners: Mapping[Path, str] | None) -> _Values | None:
    if owners is not None:
        return _FileClients(owners, bad)
    return None if settings.client is None else _Values(settings.client, "client", MOST_TEXTS, bad)


def refuse_types(shards: Shards, settings: TableSettings) -> None:
    """Raise an error for a column that does not exist, or is of a type that its role does not take."""
    columns = settings.columns_of_keys()
    for key, name in columns.items():
        shards.refuse_unknown(key, name)
        kind, path = shards.kinds[name], shards.files[0]
        if key == "label" and pa.types.is_decimal(kind):
            raise DataFileError(path, f"label: column {name!r} is {kind}, {REGRESSION}")
        if key == "label" and pa.types.is_nested(kind):
            raise DataFileError(path, f"label: column {name!r} is {kind}, {SEQUENCE}")
        is_fraction = key == "label" and pa.types.is_floating(kind)  # whole numbers, perhaps
        if key in ("client", "label", "split") and not (shards.is_csv or is_fraction or _is_name(kind)):
            raise DataFileError(
                path, f"{key}: column {name!r} is {kind}; it must hold texts or whole numbers"
            )
        whole = key in ("step", "count", "concept")
        if whole and not (pa.types.is_integer(kind) or (shards.is_csv and pa.types.is_null(kind))):
            raise DataFileError(path, f"{key}: column {name!r} is {kind}; it must hold whole numbers")


def _is_name(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_boolean(kind) or is_text(kind)


def _read_as(shards: Shards, settings: TableSettings, name: str) -> pa.DataType:
    """The type as which a column is read: texts wherever names or times are due, in a CSV."""
    kind = shards.kinds[name]
    if name == settings.expiry:
        # pandas writes whole numbers of which some are missing as fractions.
        is_fraction = settings.step is not None and pa.types.is_floating(kind)
        return kind if is_fraction else _read_as(shards, settings.of_expiry(), name)
    if not shards.is_csv:
        return TEXT if is_text(kind) else kind
    if name in (settings.step, settings.count, settings.concept):
        return pa.int64()
    if name == settings.time:
        return read_as(kind, settings.time_options)
    if name == settings.order and _is_ordered_by_number(kind, settings):
        return pa.float64()
    return TEXT


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def _arrival(shards: Shards, settings: TableSettings, bad: BadRows) -> _Times | _Whole | _Numbers | None:
    if settings.time is not None:
        return _Times(settings.time, settings.time_options, bad)
    if settings.step is not None:
        return _Whole(settings.step, *BOUNDS["step"], bad)
    if settings.order is None:
        return None
    if _is_ordered_by_number(shards.kinds[settings.order], settings):
        return _Numbers(settings.order, bad)
    return _Times(settings.order, settings.time_options, bad)


def _is_ordered_by_number(kind: pa.DataType, settings: TableSettings) -> bool:
    """Whether the column of `order` holds numbers, whose unit does not matter, and not times."""
    return _is_number(kind) and settings.time_format is None


def _expiry(shards: Shards, settings: TableSettings, bad: BadRows) -> Expiry:
    present = PresentRows(bad)
    reader = _arrival(shards, settings.of_expiry(), present)
    assert reader is not None  # the settings make sure of it
    return Expiry(reader, present, is_whole=settings.step is not None)


def _refuse_other_unit(at: _Column, expiry: Expiry, shards: Shards) -> None:
    """Raise DataFileError if the columns of arrivals and of expiry cannot be compared."""
    reader = expiry.reader
    if not expiry.has_some:
        return
    units = [
        "numbers"
        if not isinstance(column, _Times)
        else f"times {'with' if column.instants.has_zone else 'without'} a time zone"
        for column in (at, reader)
    ]
    if units[0] != units[1]:
        raise DataFileError(
            shards.files[0],
            f"expiry: column {reader.name!r} holds {units[1]}, and {at.name!r} {units[0]}; give both alike",
        )


class _Column:
    """A column that is read batch by batch, and then as a whole.

    NOTE: what is read is kept in large blocks, which the system takes back at once when they are freed; of
    arrays as long as a batch, the allocator keeps as much memory as they had.
    """

    def __init__(self, name: str, bad: BadRows) -> None:
        self.name = name
        self.bad = bad
        self._blocks: list[np.ndarray] = []
        self._used = 0  # of the last block

    def add(self, batch: Batch, start: int) -> None:
        values = self.values(batch, start)
        while len(values):
            if not self._blocks or self._used == len(self._blocks[-1]) or self._widens(values):
                self._cut()
                self._blocks.append(np.empty(BLOCK_BYTES // 8, values.dtype))
            block = self._blocks[-1][self._used :][: len(values)]
            block[:] = values[: len(block)]
            self._used += len(block)
            values = values[len(block) :]

    def _widens(self, values: np.ndarray) -> bool:
        """Whether `values` are of a longer type than the last block; shorter ones fit into it."""
        return values.dtype.itemsize > self._blocks[-1].dtype.itemsize

    def _cut(self) -> None:
        """Leave off what the last block has no values for."""
        if self._blocks:
            self._blocks[-1] = self._blocks[-1][: self._used]
        self._used = 0

    def values(self, batch: Batch, start: int) -> np.ndarray:
        """(rows,) what is kept of a batch; raises DataFileError for a value that breaks a rule."""
        raise NotImplementedError

    def all(self) -> np.ndarray:
        """(rows,) what was kept of all batches, which is forgotten."""
        self._cut()
        whole = np.empty(sum(map(len, self._blocks)), max(block.dtype for block in self._blocks))
        last = len(whole)
        while self._blocks:  # each one is freed before the next one is copied
            block = self._blocks.pop()
            whole[last - len(block) : last] = block
            last -= len(block)
        return whole


class _Times(_Column):
    def __init__(self, name: str, options: TimeOptions, bad: BadRows) -> None:
        super().__init__(name, bad)
        self.instants = Instants(name, options, bad)

    def values(self, batch: Batch, start: int) -> np.ndarray:
        return self.instants.read(batch, start)


class _Whole(_Column):
    """Whole numbers in a range."""

    def __init__(self, name: str, least: int, most: int, bad: BadRows) -> None:
        super().__init__(name, bad)
        self.least, self.most = least, most

    def values(self, batch: Batch, start: int) -> np.ndarray:
        column = batch.columns[self.name]
        is_missing = missing(column)
        numbers = np.asarray(column.fill_null(0))
        outside = (numbers < self.least) | (numbers > self.most)

        def problem(row: int) -> str:
            if is_missing[row]:
                return f"{self.name} is missing"
            return f"{self.name} = {numbers[row]}: must be from {self.least} to {self.most}"

        self.bad.refuse(batch, start, is_missing | outside, problem)
        return np.where(outside, 0, numbers).astype(np.int32)


class _Numbers(_Column):
    """Finite numbers, by which rows are ordered."""

    def values(self, batch: Batch, start: int) -> np.ndarray:
        numbers = pc.cast(batch.columns[self.name], pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        infinite = ~np.isfinite(numbers)
        self.bad.refuse(
            batch,
            start,
            infinite,
            lambda row: (
                f"{self.name} is missing"
                if np.isnan(numbers[row])
                else f"{self.name} = {numbers[row]}: must be a finite number"
            ),
        )
        return np.where(infinite, 0.0, numbers)


class _Values(_Column):
    """Texts or whole numbers, each of which is a name: of a client, a class, a split, or a category.

    `choices` are the names that are allowed. With `empty`, a missing value is allowed; its code is -1.
    """

    def __init__(
        self,
        name: str,
        what: str,
        most: int,
        bad: BadRows,
        choices: tuple[str, ...] | None = None,
        *,
        empty: bool = False,
    ) -> None:
        super().__init__(name, bad)
        self.what, self.most, self.choices, self.empty = what, most, choices, empty
        self.known: dict[str, int] = {}
        self.is_whole = False
        self._num_counted = 0

    def values(self, batch: Batch, start: int) -> np.ndarray:
        column = batch.columns[self.name]
        if self.what == "client" and pa.types.is_integer(column.type) and not pa.types.is_uint64(column.type):
            self.is_whole = True
            self.bad.refuse(batch, start, missing(column), lambda row: self._missing())
            numbers = np.asarray(pc.cast(column.fill_null(0), pa.int64()))
            fits = numbers.min() >= -(2**31) and numbers.max() < 2**31
            return numbers.astype(np.int32) if fits else numbers
        if not isinstance(column, pa.DictionaryArray):
            column = pc.cast(column, pa.string()).dictionary_encode()
        codes = np.asarray(column.indices.fill_null(-1)).astype(np.int64)
        texts: list[Any] = pc.utf8_trim_whitespace(pc.cast(column.dictionary, pa.string())).to_pylist()
        is_good = np.array(
            [self._is_good(text) for text in texts] + [self.empty], dtype=np.bool_
        )  # -1: missing
        if not self.empty:
            self.bad.refuse(batch, start, ~is_good[codes], lambda row: self._problem(texts, codes[row]))
        known = self.known
        used = np.zeros(len(texts) + 1, dtype=np.bool_)
        used[codes] = True
        numbers = np.full(len(texts) + 1, -1 if self.empty else 0, dtype=np.int32)
        if used[:-1].all() and is_good[:-1].all() and all(texts):
            numbers[:-1] = [known.setdefault(text, len(known)) for text in texts]
        else:
            for number in np.flatnonzero(used[:-1] & is_good[:-1]).tolist():
                if texts[number]:
                    numbers[number] = known.setdefault(texts[number], len(known))
        if len(known) > self.most:
            raise self.too_many(batch)
        return numbers[codes]

    def new_names(self) -> Iterator[str]:
        """The names that were not there when this was last called."""
        number, self._num_counted = len(self.known) - self._num_counted, len(self.known)
        return islice(reversed(self.known), number)

    def too_many(self, batch: Batch) -> DataFileError:
        return DataFileError(
            batch.path, f"{self.what}: column {self.name!r} has more than {self.most} different values"
        )

    def finish(self) -> tuple[np.ndarray, Names]:
        """The rank (rows,) of each value among the different ones, and these: numbers if all are, else texts.

        Numbers ascend, and so do texts.
        """
        codes = self.all()
        if self.is_whole:
            distinct, rank = ranks_of(codes)
            return rank, distinct
        texts = list(self.known)
        whole = self.what != "split" and all(map(_is_canonical, texts))
        order = sorted(range(len(texts)), key=lambda code: int(texts[code]) if whole else texts[code])
        rank_of = np.full(len(texts) + 1, -1, dtype=np.int32)
        rank_of[order] = np.arange(len(order), dtype=np.int32)
        names = [texts[code] for code in order]
        for piece in pieces(len(codes)):
            codes[piece] = rank_of[codes[piece]]
        if whole and self.what == "client":
            return codes, np.array([int(name) for name in names], dtype=np.int64)
        return codes, tuple(names)

    def in_choices(self) -> np.ndarray:
        """(rows,) the number of each value among `choices`."""
        assert self.choices is not None
        numbers = np.array([self.choices.index(text) for text in self.known] or [0], dtype=np.int8)
        codes = self.all()
        taken = np.empty(len(codes), np.int8)
        for piece in pieces(len(codes)):
            taken[piece] = numbers[np.minimum(codes[piece], len(numbers) - 1)]
        return taken

    def _is_good(self, text: str | None) -> bool:
        if not text:
            return self.empty
        return self.choices is None or text in self.choices

    def _problem(self, texts: list[Any], code: int) -> str:
        if code < 0 or not texts[code]:
            return self._missing()
        return f"{self.name} = {texts[code]!r}: must be {' or '.join(self.choices or ())}"

    def _missing(self) -> str:
        return f"{self.name} is missing: the {self.what} of the row"


class _FileClients(_Values):
    """The clients of files: all rows of a file have the same one."""

    def __init__(self, owners: Mapping[Path, str], bad: BadRows) -> None:
        super().__init__("client_from", "client", MOST_TEXTS, bad)
        self.owners = owners

    def values(self, batch: Batch, start: int) -> np.ndarray:
        code = self.known.setdefault(self.owners[batch.path], len(self.known))
        return np.full(batch.num_rows, code, np.int32)


class _Labels(_Values):
    """Classes: texts, or whole numbers, also those written as fractions; other numbers are a target.

    A column of fractions is known by its type, of a CSV by that of the first rows: its values are turned into
    whole numbers as they are read. A fraction that comes later shows at the end. With `class_names`, labels
    are numbers of these.
    """

    def __init__(
        self, name: str, shards: Shards, bad: BadRows, class_names: Sequence[str] | None = None
    ) -> None:
        self._is_fraction = pa.types.is_floating(shards.kinds[name])
        super().__init__(name, "label", MOST_WHOLE if self._is_fraction else MOST_CLASSES, bad)
        self._decimal = shards.dialect.decimal
        self._path = shards.files[0]
        self._written: dict[int, str] = {}
        self._class_names = class_names
        self._spellings = Spellings()

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be told about them, at the end."""
        written = ((text, number) for number, text in sorted(self._written.items()) if text != str(number))
        text, number = next(written, ("", 0))
        if not text:
            return self._spellings.notes()
        return (
            f"label: whole numbers written as fractions, such as {text}, are classes, such as {number}",
            *self._spellings.notes(),
        )

    def add(self, batch: Batch, start: int) -> None:
        super().add(batch, start)
        self._spellings.add(batch.columns[self.name])

    def values(self, batch: Batch, start: int) -> np.ndarray:
        self._path = batch.path
        column: Any = batch.columns[self.name]
        if pa.types.is_floating(column.type):
            column = self._of_numbers(batch, column)
        elif self._is_fraction:
            column = self._of_texts(batch, start, column)
        return super().values(batch._replace(columns={self.name: column}), start)

    def _of_numbers(self, batch: Batch, column: pa.Array[Any]) -> pa.Array[Any]:
        """A column of floats as one of whole numbers, in which NaN is missing."""
        numbers = pc.cast(column, pa.float64()).to_numpy(zero_copy_only=False)
        is_missing = np.isnan(numbers)
        with np.errstate(invalid="ignore"):
            is_other = ~is_missing & ((numbers != np.rint(numbers)) | (np.abs(numbers) > EXACT))
        if is_other.any():
            row = int(is_other.argmax())
            raise self._target(batch.path, f"{numbers[row]}", batch.first + row + 1)
        whole = np.where(is_missing, 0, numbers).astype(np.int64)
        for number in np.unique(whole[~is_missing])[: MOST_WHOLE + 1].tolist():
            self._written.setdefault(number, f"{number}.0")
        return pa.array(whole, mask=is_missing)

    def _of_texts(self, batch: Batch, start: int, column: Any) -> pa.Array[Any]:
        """A column of texts that are fractions as one of texts of whole numbers."""
        column = cast(Any, without(column, NO_VALUE))
        texts = [text.strip() for text in column.dictionary.to_pylist()]
        whole = [self._whole(text) for text in texts]
        codes = np.asarray(column.indices.fill_null(-1)).astype(np.int64)
        is_number = np.array([_NUMBER.match(self._pointed(text)) is not None for text in texts] + [True])
        is_target = np.array([number is None for number in whole] + [False]) & is_number
        if is_target[codes].any():
            row = int(is_target[codes].argmax())
            raise self._target(batch.path, texts[codes[row]], batch.first + row + 1)
        self.bad.refuse(
            batch,
            start,
            ~is_number[codes],
            lambda row: f"{self.name} = {texts[codes[row]]!r}: must be a whole number, as in the first rows",
        )
        for text, number in zip(texts, whole, strict=True):
            if number is not None:
                self._written.setdefault(number, text)
        # A row that was left out has a label as well, which is not looked at.
        names = ["" if number is None else str(number) for number in whole]
        return pa.DictionaryArray.from_arrays(column.indices, pa.array(names, pa.string()))

    def finish(self) -> tuple[np.ndarray, Names]:
        texts = list(self.known)
        fraction = next((text for text in texts if _FRACTION.match(self._pointed(text))), None)
        is_number = fraction is not None and all(_NUMBER.match(self._pointed(text)) for text in texts)
        codes, classes = super().finish()
        if fraction is None or not is_number:
            if self._class_names is not None:
                classes = tuple(self._class_names[int(number)] for number in classes)
            return codes.astype(np.int16), classes
        whole = [self._whole(str(text)) for text in classes]
        distinct = sorted({number for number in whole if number is not None})
        if None in whole or len(distinct) > MOST_WHOLE:
            shown = classes[whole.index(None)] if None in whole else fraction
            raise self._target(self._path, str(shown))
        rank = {number: place for place, number in enumerate(distinct)}
        kept = [number for number in whole if number is not None]  # all of them
        self._written = {number: str(text) for number, text in zip(kept, classes, strict=True)}
        ranks = np.array([rank[number] for number in kept], dtype=np.int16)
        return ranks[codes], tuple(map(str, distinct))

    def _is_good(self, text: str | None) -> bool:
        is_good = super()._is_good(text)
        if self._class_names is None or not text:
            return is_good
        return 0 <= int(text) < len(self._class_names)

    def _problem(self, texts: list[Any], code: int) -> str:
        if self._class_names is None or code < 0 or not texts[code]:
            return super()._problem(texts, code)
        if texts[code] == "-1":
            return f"{self.name} = -1: must be a class, and -1 is none; leave out such rows with --skip-bad"
        most = len(self._class_names) - 1
        return f"{self.name} = {texts[code]}: must be from 0 to {most}, as there are {most + 1} class names"

    def too_many(self, batch: Batch) -> DataFileError:
        return DataFileError(
            batch.path,
            f"label: column {self.name!r} has more than {self.most} different values, {REGRESSION}",
        )

    def _target(self, path: Path, shown: str, row: int | None = None) -> DataFileError:
        return DataFileError(path, f"label: column {self.name!r} holds {shown}, {REGRESSION}", row)

    def _pointed(self, text: str) -> str:
        """A text with a point, if it is a number."""
        return text if self._decimal == "." else text.replace(self._decimal, ".")

    def _whole(self, text: str) -> int | None:
        """The whole number that a text is; None if it is another number, or has more than 18 digits."""
        pointed = self._pointed(text)
        if not _NUMBER.match(pointed):
            return None
        number = Decimal(pointed)
        if number.adjusted() > 17 or number != number.to_integral_value():
            return None
        return int(number)


def _is_canonical(text: str) -> bool:
    """Whether a text is a whole number of 64 bits, written as Python writes it: not 007, +7 or 7.0.

    >>> _is_canonical("-7"), _is_canonical("007"), _is_canonical("7.0")
    (True, False, False)
    """
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) < 19 and str(int(text)) == text
