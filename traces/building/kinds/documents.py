"""Documents of JSON beside images, whose values are checked as they are taken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from emulator.errors import DataFileError
from emulator.storage.bounded import json_document, read_text


def read_document(path: Path, most_bytes: int) -> Any:
    """The document in a file of at most `most_bytes`; DataFileError if it cannot be read."""
    try:
        return json_document(read_text(path, most_bytes))
    except (OSError, ValueError) as error:
        raise DataFileError(path, f"cannot be read as JSON ({error})") from error


def field(
    path: Path, values: Any, key: str, kind: type[Any], within: str = "", *, may_be_empty: bool = False
) -> Any:
    """The value of a key.

    Args:
        path: the file of the document.
        values: the object that should have the key, part of the document.
        key: the key.
        kind: the type of its value, str or list.
        within: where the object is in the document, such as "boxes.0.".
        may_be_empty: whether an empty value is one.

    Raises:
        DataFileError: the key is missing, its value has another type or is empty, or `values` is no object.
    """
    value = values.get(key) if isinstance(values, dict) else None
    if not isinstance(value, kind) or not (value or may_be_empty):
        what = "a text" if kind is str else "a list"
        rule = f"is missing or not {what}" if may_be_empty else f"must be {what}, and not empty"
        raise DataFileError(path, f"{within}{key}: {rule}")
    return value
