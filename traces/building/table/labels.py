"""The column of labels: classes, by texts, numbers, or numbers written as fractions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from emulator.errors import DataFileError
from emulator.storage.reading.columns import NO_VALUE, without
from emulator.storage.reading.shards import Batch, Shards
from traces.building.bad_rows import BadRows
from traces.building.rows import Names
from traces.building.table.key_columns import Values
from traces.files.arrivals import MOST_CLASSES

MOST_WHOLE = 1000
"""Most classes that are whole numbers written as fractions: more are a regression target."""

EXACT = 2**53
"""Whole numbers up to this are exact in double precision."""

REGRESSION = "a regression target; labels are classes: integers or texts"

_NUMBER = re.compile(r"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?$")
_FRACTION = re.compile(r"[+-]?[0-9]*[.][0-9]*([eE][+-]?[0-9]+)?$")


class _Spellings:
    """The texts that are one class once the spaces around them are left off; at most two with spaces."""

    def __init__(self) -> None:
        self._plain: set[str] = set()
        self._padded: dict[str, list[str]] = {}

    def add(self, column: pa.Array[Any]) -> None:
        """Take in the labels of a batch; only texts have spellings."""
        if not isinstance(column, pa.DictionaryArray) or not pa.types.is_string(column.dictionary.type):
            return
        texts: Any = column.dictionary
        trimmed = pc.utf8_trim_whitespace(texts)
        is_padded = np.asarray(pc.not_equal(texts, trimmed).fill_null(False))
        self._plain.update(texts.filter(pa.array(~is_padded)).to_pylist())
        if not is_padded.any():
            return
        used = np.zeros(len(texts), np.bool_)
        used[np.asarray(column.indices.drop_null())] = True
        for number in np.flatnonzero(is_padded & used).tolist():
            found = self._padded.setdefault(trimmed[number].as_py(), [])
            text = texts[number].as_py()
            if len(found) < 2 and text not in found:
                found.append(text)

    def notes(self) -> tuple[str, ...]:
        """One line for each class with two spellings."""
        spelled = {
            label: [*texts, label] if label in self._plain else texts for label, texts in self._padded.items()
        }
        return tuple(
            f"labels {texts[0]!r} and {texts[1]!r} are one class: spaces around a text are left off"
            for label, texts in spelled.items()
            if label and len(texts) > 1
        )


class Labels(Values):
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
        self._spellings = _Spellings()

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
        rule = f"must be from 0 to {most}, as there are {most + 1} class names: name all"
        return f"{self.name} = {texts[code]}: {rule}"

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
