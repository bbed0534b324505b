"""The columns of a table that are no features: who has a row, when it arrives, and its class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from emulator.errors import DataFileError
from emulator.storage.parquet_columns import MOST_TEXTS
from emulator.storage.reading.columns import is_text
from emulator.storage.reading.shards import TEXT, Shards
from traces.building.bad_rows import BadRows
from traces.building.rows import Rows
from traces.building.rules import KINDS, WHOLE_NUMBERS, Cells
from traces.building.table.expiry import refuse_never_held
from traces.building.table.key_columns import (
    Column,
    FileColumn,
    NameColumn,
    NumberColumn,
    SplitColumn,
    is_number,
)
from traces.building.table.labels import LabelColumn
from traces.building.table.settings import TARGET, TableSettings
from traces.building.table.targets import TargetColumn
from traces.building.table.times.instants import TimeColumn
from traces.files.arrivals import BOUNDS

ROWS = 2**16
"""Rows of a batch of keys."""

ONE_CLASS = ("all",)
"""The class of all rows, where no column says it."""

MOST_CATEGORIES = 4096
"""Most values of a feature that becomes one column for each."""


def read_keys(
    shards: Shards,
    settings: TableSettings,
    bad: BadRows,
    owners: Mapping[Path, str] | None = None,
    class_names: Sequence[str] | None = None,
) -> tuple[Rows, dict[str, tuple[str, ...]]]:
    """Read all columns that are no features, and the values of `one_hot` features.

    Args:
        shards: the table.
        settings: which columns are what.
        bad: counts the rows that are left out.
        owners: the client of each file, if no column has the clients.
        class_names: the names of the classes, if labels are numbers of them.

    Returns:
        All rows, in the order of the files. `at` is a number by which rows are ordered where that is wanted,
        and 0 if all are owned at the start, or arrive in the order of the file; `expiry` is the greatest
        number, or infinity, of a row that its client holds to the end. Without clients all rows are one's,
        and without labels they have one class.
        The values of each `one_hot` feature.

    Raises:
        DataFileError: a value is missing or breaks a rule, and may not be left out; or the table has too many
            cells, counted while they are read.
    """
    readers: dict[str, Column] = {} if owners is None else {"client": FileColumn(owners, bad)}
    for key, name in settings.columns_of_keys().items():
        is_target = key.startswith(TARGET)
        readers[key] = (
            TargetColumn(name, shards, bad) if is_target else _reader_of(key, name, shards, settings, bad)
        )
    if class_names is not None:
        readers["label"] = LabelColumn(readers["label"].name, shards, bad, class_names)
    one_hot = [NameColumn(name, name, MOST_CATEGORIES, bad, optional=True) for name in settings.one_hot]
    columns = [*readers.values(), *one_hot]
    types = {reader.name: _read_as(shards, reader) for reader in columns if reader.has_column}
    start = 0
    malformed = bad.malformed_line if bad.most else None
    tally = shards.tally()
    na_in = types if settings.na_everywhere else settings.one_hot
    for batch in shards.batches(types, ROWS, malformed=malformed, tally=tally, na_in=na_in):
        for reader in columns:
            reader.add(batch, start)
            tally.add_names(batch.path, reader.new_names())
        start += batch.num_rows
    at = None if settings.instant is None else readers[settings.instant[0]]
    # The clients come last: ranking them takes the most memory.
    finished = {"at" if reader is at else key: reader.finish() for key, reader in reversed(readers.items())}
    values: dict[str, Any] = {key: codes for key, (codes, _) in finished.items()}
    if at is not None and "expiry" in readers:
        expiry = readers["expiry"]
        if expiry.has_some and expiry.unit != at.unit:
            units = f"holds {expiry.unit}, and {at.name!r} {at.unit}; give both alike"
            raise DataFileError(shards.files[0], f"expiry: column {expiry.name!r} {units}")
        refuse_never_held(shards, values["at"], values["expiry"], (at.name, expiry.name), bad)
    targets = [values.pop(key) for key in readers if key.startswith(TARGET)]
    if targets:
        values["target"] = np.column_stack(targets)
    for key in ("client", "at", "label"):
        if key not in values:
            values[key] = np.zeros(start, np.int32)
    rows = Rows(
        clients=finished["client"][1] if "client" in finished else (),
        classes=tuple(map(str, finished["label"][1])) if "label" in finished else ONE_CLASS,
        when=settings.when,
        has_zone=at is not None and at.has_zone,
        notes=(*(() if at is None else at.notes), *(readers["label"].notes if "label" in readers else ())),
        **values,
    )
    return rows, {reader.name: tuple(map(str, reader.finish()[1])) for reader in one_hot}


def refuse_types(shards: Shards, settings: TableSettings) -> None:
    """Raise an error for a column that does not exist, or is of a type that its role does not take."""
    for key, name in settings.columns_of_keys().items():
        shards.refuse_unknown(key, name)
        cells = Cells(key=key, name=name, kind=shards.kinds[name], is_csv=shards.is_csv)
        for rule in KINDS:
            if rule.broken(cells):
                raise DataFileError(shards.files[0], rule.problem(cells))


def _reader_of(key: str, name: str, shards: Shards, settings: TableSettings, bad: BadRows) -> Column:
    """What reads the column `name`, which says `key` of a row."""
    if key == "client":
        return NameColumn(name, key, MOST_TEXTS, bad)
    if key == "label":
        return LabelColumn(name, shards, bad)
    if key == "split":
        return SplitColumn(name, settings.splits_of, bad)
    is_optional = key == "expiry"
    if is_optional and settings.instant is not None:
        key, _ = settings.instant
    if key in WHOLE_NUMBERS:
        return NumberColumn(name, bad, BOUNDS[key], optional=is_optional)
    if key == "order" and _is_ordered_by_number(shards.kinds[name], settings):
        return NumberColumn(name, bad, optional=is_optional)
    return TimeColumn(name, settings.time_options, bad, optional=is_optional)


def _read_as(shards: Shards, reader: Column) -> pa.DataType:
    kind = shards.kinds[reader.name]
    if shards.is_csv:
        return reader.read_as(kind)
    return TEXT if is_text(kind) else kind


def _is_ordered_by_number(kind: pa.DataType, settings: TableSettings) -> bool:
    """Whether the column of `order` holds numbers, whose unit does not matter, and not times."""
    return settings.time_format is None and is_number(kind) and not pa.types.is_boolean(kind)
