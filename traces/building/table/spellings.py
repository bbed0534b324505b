"""How labels are spelled: texts that are one class once the spaces around them are left off."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


class Spellings:
    """The labels with spaces around them, one or two of each class; and those without."""

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
