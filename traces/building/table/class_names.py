"""The names of classes that Hugging Face's `datasets` writes into the schema of a table.

Its metadata has JSON under the key `huggingface`: {"info": {"features": {COLUMN: {"_type": "ClassLabel",
"names": [...]}}}}, and the column has the numbers of the names. Untrusted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from emulator.errors import DataFileError
from emulator.storage.bounded import json_document
from emulator.storage.reading.shards import Shards
from traces.building.rows import Rows
from traces.files.arrivals import MOST_CLASSES

KEY = b"huggingface"

MOST_BYTES = 2**24
"""Most bytes of the metadata that are parsed."""

_REMEDY = "write the table without it: table.replace_schema_metadata(None) in pyarrow"


def class_names(shards: Shards, label: str) -> tuple[str, ...] | None:
    """The names of the classes of the column `label`; None if it is none of whole numbers, or has no names.

    Raises DataFileError if the metadata is damaged or too large, if names break a rule, or if two files have
    different ones.
    """
    if not pa.types.is_integer(shards.kinds[label]) or KEY not in shards.metadata:
        return None
    names = _names(shards.files[0], shards.metadata, label)
    for path in shards.files[1:]:
        own = _names(path, shards.metadata_of(path), label)
        if own != names:
            raise DataFileError(
                path,
                f"label: column {label!r} has other class names than in {shards.files[0].name}: "
                f"{_shown(own)}, there {_shown(names)}",
            )
    return names


def numbered(rows: Rows, label: str | None, names: Sequence[str], path: Path, first: int = 1) -> Rows:
    """The rows with all classes `names`, of which labels are numbers, whether they occur or not.

    DataFileError for another label, with its row, of which the first one has the number `first`.
    """
    for code, text in enumerate(rows.classes):
        if not text.isdecimal() or int(text) >= len(names):
            raise DataFileError(
                path,
                f"{label} = {text}: there are {len(names)} classes, 0 to {len(names) - 1}; give all of them, "
                f"or leave out rows without one",
                int(np.flatnonzero(rows.label == code)[0]) + first,
            )
    number = np.array(list(map(int, rows.classes)), np.int16)
    return replace(rows, classes=tuple(names), label=number[rows.label], keeps_classes=True)


def _names(path: Path, metadata: Mapping[bytes, bytes], label: str) -> tuple[str, ...] | None:
    content = metadata.get(KEY, b"{}")
    if len(content) > MOST_BYTES:
        raise DataFileError(
            path,
            f"has {len(content):,} bytes of metadata of Hugging Face; at most {MOST_BYTES:,} are read; "
            f"{_REMEDY}",
        )
    try:
        document = json_document(content.decode("utf-8"))
        feature = _entry(_entry(_entry(document, "info"), "features"), label)
        if _entry(feature, "_type", "") != "ClassLabel" or _entry(feature, "names", None) is None:
            return None
        return _checked(feature["names"])
    except ValueError as error:
        raise DataFileError(path, f"its metadata of Hugging Face is damaged ({error}); {_REMEDY}") from error


def _entry(table: Any, key: str, default: Any = {}) -> Any:  # noqa: B006
    """The value of a key of a JSON object; ValueError if it is none."""
    if not isinstance(table, dict):
        raise ValueError(f"where {key!r} is looked up there is no object")
    return table.get(key, default)


def _checked(names: Any) -> tuple[str, ...]:
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise ValueError("names of classes are no list of texts")
    if len(names) > MOST_CLASSES:
        raise ValueError(f"it names {len(names)} classes; at most {MOST_CLASSES} are supported")
    [(name, number)] = Counter(names).most_common(1)
    if number > 1:
        raise ValueError(f"it names two classes {name!r}")
    return tuple(names)


def _shown(names: tuple[str, ...] | None) -> str:
    if names is None:
        return "none"
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
