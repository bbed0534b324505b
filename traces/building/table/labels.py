"""The column of labels: classes, by texts, numbers, or numbers written as fractions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from emulator.arrays import Bools
from emulator.errors import DataFileError
from emulator.storage.reading.columns import NO_VALUE, without
from emulator.storage.reading.shards import Batch, Shards
from traces.building.bad_rows import BadRows
from traces.building.rows import Names
from traces.building.rules import EXACT, LABELS, NUMBERED, REGRESSION, TARGETS, Cells
from traces.building.table.key_columns import NameColumn, coded
from traces.files.arrivals import MOST_CLASSES

MOST_WHOLE = 1000
"""Most classes that are whole numbers written as fractions: more are a regression target."""

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
        padded = np.flatnonzero(is_padded)
        for number in np.intersect1d(padded, column.indices.drop_null()).tolist() if len(padded) else ():
            found = self._padded.setdefault(trimmed[number].as_py(), [])
            text = texts[number].as_py()
            if len(found) < 2 and text not in found:
                found.append(text)

    def notes(self) -> tuple[str, ...]:
        """One line for each class with two spellings."""
        spelled = ((*texts, *({label} & self._plain)) for label, texts in self._padded.items() if label)
        return tuple(
            f"labels {texts[0]!r} and {texts[1]!r} are one class: spaces around a text are left off"
            for texts in spelled
            if len(texts) > 1
        )


class LabelColumn(NameColumn):
    """Classes: texts, or whole numbers, also those written as fractions; other numbers are a target.

    A column of fractions is known by its type, of a CSV by that of the first rows: its values are turned into
    whole numbers as they are read. A fraction that comes later shows at the end. With `class_names`, labels
    are numbers of these.
    """

    remedy = f", {REGRESSION}"

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
        if class_names is not None:
            self.rules = NUMBERED
            self.told |= {"number": len(class_names), "last": len(class_names) - 1}

    def values(self, batch: Batch, start: int, present: Bools | None) -> np.ndarray:
        self._path = batch.path
        self._spellings.add(batch.columns[self.name])
        if self._is_fraction:
            batch = batch._replace(columns={self.name: self._as_whole(batch, start)})
        return super().values(batch, start, present)

    def _as_whole(self, batch: Batch, start: int) -> pa.Array[Any]:
        """The column, of fractions, as one of texts of whole numbers; DataFileError for another number."""
        column: Any = batch.columns[self.name]
        are_numbers = pa.types.is_floating(column.type)
        if are_numbers:
            encoded = pc.add(pc.cast(column, pa.float64()), 0.0).dictionary_encode()  # 0.0 is also -0.0
            texts = pa.array(map(str, encoded.dictionary.to_pylist()), pa.string())
            column = pa.DictionaryArray.from_arrays(encoded.indices, texts)
        column = without(column, NO_VALUE)
        trimmed, codes = coded(column)
        texts = trimmed.to_pylist()
        values = [self._value(text, are_numbers=are_numbers) for text in texts]
        is_text = [value is None for value in values[:-1]] + [False]
        is_target = [isinstance(value, Decimal) for value in values]
        self.refuse(TARGETS, batch, codes=codes, value=texts, is_target=is_target)
        self.keep(LABELS, batch, start, None, codes=codes, value=texts, is_text=is_text)
        for text, value in zip(texts, values, strict=True):
            if isinstance(value, int):
                self._written.setdefault(value, text)
        # A row that was left out has a label as well, which is not looked at.
        names = ["" if value is None else str(value) for value in values[:-1]]
        return pa.DictionaryArray.from_arrays(column.indices, pa.array(names, pa.string()))

    def finish(self) -> tuple[np.ndarray, Names]:
        codes, classes = super().finish()
        fraction = next((text for text in self.known if _FRACTION.match(self._pointed(text))), None)
        values = [] if fraction is None else [self._value(str(text)) for text in classes]
        if fraction is not None and None not in values:
            wrong = [text for text, value in zip(classes, values, strict=True) if isinstance(value, Decimal)]
            whole = [] if wrong else [value for value in values if isinstance(value, int)]
            numbers, ranks = np.unique(np.array(whole, np.int64), return_inverse=True)
            if wrong or len(numbers) > MOST_WHOLE:
                cells = Cells(name=self.name, value=wrong[0] if wrong else fraction)
                raise DataFileError(self._path, TARGETS[0].problem(cells))
            self._written = dict(zip(whole, map(str, classes), strict=True))
            codes, classes = ranks.astype(np.int16)[codes], tuple(map(str, numbers.tolist()))
        elif self._class_names is not None:
            classes = tuple(self._class_names[int(number)] for number in classes)
        fractions = [item for item in sorted(self._written.items()) if item[1] != str(item[0])]
        self.notes = tuple(
            f"label: whole numbers written as fractions, such as {text}, are classes, such as {number}"
            for number, text in fractions[:1]
        )
        self.notes += self._spellings.notes()
        return codes.astype(np.int16), classes

    def _pointed(self, text: str) -> str:
        """A text with a point, if it is a number."""
        return text if self._decimal == "." else text.replace(self._decimal, ".")

    def _value(self, text: str | None, *, are_numbers: bool = False) -> int | Decimal | None:
        """The whole number that a text is, or the other one, as of more than 18 digits; None: it is none."""
        pointed = self._pointed(text or "")
        if pointed in NO_VALUE or not (are_numbers or _NUMBER.match(pointed)):
            return None
        number = Decimal(pointed)
        is_exact = number.adjusted() < 18 and not (are_numbers and number.copy_abs() > EXACT)
        return int(number) if is_exact and number == number.to_integral_value() else number
