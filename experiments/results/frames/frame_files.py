"""A frame as a CSV or a Parquet file: the same frame always gives the same bytes.

CSV is UTF-8 with "\\n" at line ends. Floats have as many digits as it takes to read them back exactly;
missing values are empty; a list is its items with a space between them, as in "3 5".

Parquet keeps the types: lists stay lists (of integers, or of floats if some item is one) or maps (from an
integer to a float), and an ordered categorical is an ordered dictionary. A column of texts and numbers, such
as that of the targets 0.5 and "reference", is one of texts, as in CSV.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.storage.checkpoints import make_folder, write_durably
from emulator.storage.own_files import path_below

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


def write_frames(frames: Mapping[str, pd.DataFrame], kind: str, root: Path, *names: str) -> list[Path]:
    """Write each frame into the folder `root/names...`, as `<name>.<kind>`, atomically.

    Args:
        frames: The frames by name.
        kind: "csv" or "parquet".
        root: A trusted folder.
        names: Names of the folders from there on, created if they are missing.

    Returns:
        The paths of the files, in the order of `frames`.

    Raises:
        ForeignFileError: A folder or a file is a link, or of another kind.
        OSError: A file cannot be written; the error has its name.
    """
    paths = [path_below(root, *names, f"{name}.{kind}") for name in frames]  # before any is written
    make_folder(root.joinpath(*names))
    for path, frame in zip(paths, frames.values(), strict=True):
        write_durably(path, CONTENT[kind](frame))
    return paths


def as_csv(frame: pd.DataFrame) -> bytes:
    """The frame as CSV; its index is left out.

    >>> import pandas as pd
    >>> as_csv(pd.DataFrame({"arm": ["a", "b"], "closed_s": [0.1, None], "models": [[3, 5], []]}))
    b'arm,closed_s,models\\na,0.1,3 5\\nb,,\\n'
    """
    lists = [name for name in frame.columns if any(map(_is_list, frame[name]))]
    flat = frame.assign(**{name: frame[name].map(_joined) for name in lists}) if lists else frame
    text = io.StringIO(newline="")
    flat.to_csv(text, index=False, lineterminator="\n")
    return text.getvalue().encode()


def as_parquet(frame: pd.DataFrame) -> bytes:
    """The frame as Parquet; its index is left out.

    >>> import pandas as pd, pyarrow as pa, pyarrow.parquet as pq
    >>> table = pq.read_table(pa.BufferReader(as_parquet(pd.DataFrame({"round": [0, 1]}))))
    >>> table.to_pydict()
    {'round': [0, 1]}
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    lists = [name for name in frame.columns if any(map(_is_list, frame[name]))]
    plain = frame.drop(columns=lists)
    texts = {name: column.map(str, na_action="ignore") for name, column in plain.items() if _is_mixed(column)}
    table = pa.Table.from_pandas(plain.assign(**texts), preserve_index=False)
    for name in lists:
        table = table.add_column(frame.columns.get_loc(name), name, _nested(frame[name]))
    buffer = pa.BufferOutputStream()
    pq.write_table(table, buffer)
    return buffer.getvalue().to_pybytes()


CONTENT: dict[str, Callable[[pd.DataFrame], bytes]] = {"csv": as_csv, "parquet": as_parquet}
"""The formats of files."""


def _nested(column: pd.Series[Any]) -> pa.Array[Any]:
    """A column of lists of numbers, or of maps from an integer to a float, also where some are missing.

    A plain number between lists of floats is a list of one.

    >>> import pandas as pd
    >>> for values in ([[1, 2], None], [[0.5], 2.0, float("nan")]):
    ...     print(_nested(pd.Series(values, dtype=object)).to_pylist())
    [[1, 2], None]
    [[0.5], [2.0], None]
    """
    import pyarrow as pa

    values = [value if _is_list(value) else None for value in column]
    if any(isinstance(value, Mapping) for value in values):
        items = [None if value is None else list(value.items()) for value in values]
        return pa.array(items, pa.map_(pa.int64(), pa.float64()))
    if not any(map(_has_floats, values)):
        return pa.array(values, pa.list_(pa.int64()))
    values = [
        [value] if isinstance(value, int | float) and value == value else item
        for value, item in zip(column, values, strict=True)
    ]
    return pa.array(values, pa.list_(pa.float64()))


def _has_floats(value: Any) -> bool:
    """Whether a list, or None, has a float."""
    kind = getattr(value, "dtype", None)
    if kind is not None:  # NOTE: of an array at once, since a table of visits has millions of lists
        return bool(kind.kind == "f")
    return value is not None and any(isinstance(item, float) for item in value)


def _is_mixed(column: pd.Series[Any]) -> bool:
    """Whether a column has values of several kinds, which Parquet cannot keep; numbers are of one kind.

    >>> import pandas as pd
    >>> [_is_mixed(pd.Series(values, dtype=object)) for values in ([0.5, "a"], [1, 0.5, None], [True, 1])]
    [True, False, True]
    """
    if column.dtype != object:
        return False
    kinds = set(map(type, column.dropna()))
    return len(kinds) > 1 and not kinds <= {int, float}


def _is_list(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes)


def _joined(value: Any) -> Any:
    """A list as text; what is no list is returned as it is.

    >>> _joined({3: 0.25, 4: None})
    '3=0.25 4='
    """
    if isinstance(value, Mapping):
        return " ".join(f"{key}={'' if item is None else item}" for key, item in value.items())
    return " ".join(map(str, value)) if _is_list(value) else value
