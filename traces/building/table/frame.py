"""A trace folder of what is in memory: an array of samples, and a pandas frame with a row for each of them.

Clients, labels and times are read as the builder `table` reads them, by the same rules. Rows are counted from
0 in messages, as by `frame.iloc`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from emulator.errors import DataFileError, InputError, UnknownNameError
from emulator.storage.parquet_columns import MOST_ROWS
from emulator.storage.reading.bounds import MOST_REASON
from emulator.storage.reading.columns import (
    Types,
    as_text,
    is_text,
    kinds_of,
    refuse_columns,
    refuse_twice,
    twice_in,
)
from emulator.storage.reading.dialects import Dialect
from emulator.storage.reading.shards import Batch, Shards
from traces.building.bad_rows import BadRows
from traces.building.base import Built, Request
from traces.building.rows import Rows
from traces.building.table.build import write_trace
from traces.building.table.class_names import numbered
from traces.building.table.encoders.encoding import Encoder
from traces.building.table.encoders.samples import Samples, as_samples
from traces.building.table.keys import read_keys, refuse_types
from traces.building.table.settings import TableSettings
from traces.building.table.targets import as_targets, refuse_unlabelled
from traces.building.workspace import workspace

if TYPE_CHECKING:
    import pandas as pd

PATH = Path("frame")
"""What messages name in the place of a file."""


@dataclass(frozen=True, kw_only=True)
class FrameColumns(Shards):
    """The columns of a frame that settings name, in the place of the files of a table.

    `names` are those of all its columns, and `columns` has the named ones. Labels that are whole numbers
    index into `classes`, if that is given.
    """

    names: tuple[str, ...]
    columns: Mapping[str, pa.Array[Any]]
    num_rows: int
    classes: tuple[str, ...] | None

    def refuse_unknown(self, key: str, name: str) -> None:
        if name not in self.names:
            raise UnknownNameError("column", name, self.names, f"{PATH}: {key}")

    def batches_of(self, path: Path, types: Types, most_rows: int, *_: Any) -> Iterator[Batch]:
        for first in range(0, self.num_rows, most_rows):
            pieces = {name: self.columns[name].slice(first, most_rows) for name in types}
            columns = {name: as_text(pieces[name], kind) for name, kind in types.items()}
            # Messages add 1, and rows are counted from 0.
            yield Batch(path, first - 1, columns, min(most_rows, self.num_rows - first))


def frame_columns(
    frame: pd.DataFrame, settings: TableSettings, class_names: Sequence[str] | None
) -> FrameColumns:
    """The columns of `frame` that the settings name, as Arrow has them.

    The categories of a label, if they are texts, are the names of its classes, in their order.

    Raises:
        DataFileError: a column does not exist, occurs twice or has values of several types; or the names of
            classes do not fit the labels.
    """
    names = tuple(map(str, frame.columns))
    refuse_columns(PATH, names)
    refuse_twice(PATH, names, twice_in(names))
    if len(frame) > MOST_ROWS:
        raise DataFileError(PATH, f"has more than {MOST_ROWS} rows")
    columns: dict[str, pa.Array[Any]] = {}
    for key, name in settings.columns_of_keys().items():
        if name not in names:
            raise UnknownNameError("column", name, names, f"{PATH}: {key}")
        columns[name] = _as_arrow(frame.iloc[:, names.index(name)], name)
    label = columns.get(str(settings.label), pa.array([], pa.int64()))
    classes = None if class_names is None else _class_names(class_names)
    if settings.num_classes is not None:
        classes = tuple(map(str, range(settings.num_classes)))
    if classes is None and isinstance(label, pa.DictionaryArray) and is_text(label.dictionary.type):
        classes = tuple(map(str, label.dictionary.to_pylist()))
        columns[str(settings.label)] = label = label.indices
    if classes is not None and not pa.types.is_integer(label.type):
        raise DataFileError(
            PATH, f"class_names: column {settings.label!r} is {label.type}; they name whole numbers from 0 on"
        )
    return FrameColumns(
        files=(PATH,),
        kinds=kinds_of(pa.schema([(name, column.type) for name, column in columns.items()])),
        format="Arrow",
        dialect=Dialect(),
        most_cells=settings.most_cells,
        names=names,
        columns=columns,
        num_rows=len(frame),
        classes=classes,
    )


def _class_names(given: Sequence[str]) -> tuple[str, ...]:
    names = () if isinstance(given, str) else tuple(given)
    if not names or not all(isinstance(name, str) for name in names):
        raise InputError(f"class_names = {given!r}: must be a list of texts, the names of classes 0, 1, ...")
    twice = next((name for number, name in enumerate(names) if name in names[:number]), None)
    if twice is not None:
        raise InputError(f"class_names: has {twice!r} twice; every class has a name of its own")
    return tuple(map(str, names))


def _as_arrow(series: pd.Series[Any], name: str) -> pa.Array[Any]:
    try:
        column: Any = pa.array(series, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        reason = " ".join(str(error).split())[:MOST_REASON]
        raise DataFileError(
            PATH, f"column {name!r} cannot be read ({reason}); give all its values one type"
        ) from error
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def write_frame(
    out: Path,
    features: Any,
    frame: pd.DataFrame,
    settings: TableSettings,
    *,
    class_names: Sequence[str] | None = None,
    targets: Any = None,
    fresh: bool = False,
) -> Built:
    """Make the trace folder `out` of samples in memory; nothing is left of one that fails.

    Args:
        out: the folder, which must not exist.
        features: the samples, of shape (n, *shape); see `as_samples`.
        frame: n rows; row i is about sample i, whatever its index is.
        settings: which columns are what, and which rows are used.
        class_names: the names of labels 0, 1, ...
        targets: what models are to tell beside the class, of shape (n,) or (n, K); see `as_targets`.
        fresh: delete what another build of `out` left.

    Raises:
        InputError: the samples, the frame or the settings break a rule, or `out` exists.
        ResumableError: the disk is full.
    """
    values = as_samples(features)
    if len(values) != len(frame):
        raise InputError(
            f"features: {len(values)} samples, but the frame has {len(frame)} rows; row i of the frame is "
            f"about features[i]"
        )
    if len(values) == 0:
        raise DataFileError(PATH, "has no rows")
    refuse_unlabelled(settings, has_targets=targets is not None)
    numbers = None if targets is None else as_targets(targets, len(values))
    if class_names is not None and (settings.label is None or settings.num_classes is not None):
        raise InputError("class_names: only with label, whose classes they name, and without num_classes")
    keeps = settings.num_classes is not None or (class_names is not None and settings.classes is None)
    columns = frame_columns(frame, settings, class_names)
    refuse_types(columns, settings)

    def read(bad: BadRows) -> tuple[Rows, Encoder]:
        rows, _ = read_keys(columns, settings, bad)
        if columns.classes is not None:
            rows = replace(numbered(rows, settings.label, columns.classes, PATH, 0), keeps_classes=keeps)
        return rows if numbers is None else replace(rows, target=numbers), Samples(values, bad)

    with workspace(out, {"kind": "frame"}, fresh=fresh, nothing_after=BaseException) as space:
        space.record({})  # what an attempt that was killed left of other arrays, perhaps, is written anew
        return write_trace(settings, columns, read, Request(PATH, out), space)
