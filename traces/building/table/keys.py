"""The columns of a table that are no features: who has a row, when it arrives, and its class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from emulator.errors import DataFileError
from emulator.storage.parquet_columns import MOST_TEXTS
from emulator.storage.reading.columns import is_text
from emulator.storage.reading.shards import TEXT, Shards
from traces.building.bad_rows import BadRows
from traces.building.rows import Rows
from traces.building.table.expiry import Expiry, PresentRows, refuse_never_held
from traces.building.table.key_columns import Column, FileClients, Numbers, Times, Values, Whole
from traces.building.table.labels import REGRESSION, Labels
from traces.building.table.settings import TableSettings
from traces.building.table.times.instants import read_as
from traces.files.arrivals import BOUNDS

ROWS = 2**16
"""Rows of a batch of keys."""

MOST_CATEGORIES = 4096
"""Most values of a feature that becomes one column for each."""

SEQUENCE = "a sequence or several labels of a sample; labels are classes: integers or texts"


def read_keys(
    shards: Shards,
    settings: TableSettings,
    bad: BadRows,
    owners: Mapping[Path, str] | None = None,
    class_names: Sequence[str] | None = None,
) -> tuple[Rows, dict[str, tuple[str, ...]]]:
    """Read all columns that are no features, and the values of `one_hot` features.

    Returns:
        All rows, in the order of the files. `at` is a number by which rows are ordered where that is wanted,
        and 0 if all are owned at the start, or arrive in the order of the file; `expiry` is the greatest
        number, or infinity, of a row that its client holds to the end. Without clients all rows are one's.
        The values of each `one_hot` feature.

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
    label = Labels(settings.label, shards, bad, class_names)
    choices = settings.splits_of
    split = None if settings.split is None else Values(settings.split, "split", len(choices), bad, choices)
    count = None if settings.count is None else Whole(settings.count, *BOUNDS["count"], bad)
    concept = None if settings.concept is None else Whole(settings.concept, *BOUNDS["concept"], bad)
    one_hot = {name: Values(name, name, MOST_CATEGORIES, bad, empty=True) for name in settings.one_hot}
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
            if isinstance(reader, Values):
                tally.add_names(batch.path, reader.new_names())
        start += batch.num_rows
    codes, classes = label.finish()
    arrived = at.all() if at else None
    expired = None
    if at is not None and arrived is not None and expiry is not None:
        expired = expiry.all()
        _refuse_other_unit(at, expiry, shards)
        refuse_never_held(shards, arrived, expired, (at.name, expiry.reader.name), bad)
    none = np.zeros(0 if at and client else start, np.int32)
    client_codes, clients = client.finish() if client else (none, ())
    rows = Rows(
        client=client_codes,
        clients=clients,
        label=codes,
        classes=tuple(map(str, classes)),
        when=settings.when,
        at=none if arrived is None else arrived,
        has_zone=isinstance(at, Times) and at.instants.has_zone,
        split=split.in_choices() if split else None,
        count=count.all() if count else None,
        concept=concept.all() if concept else None,
        expiry=expired,
        notes=(*(filter(None, [at.instants.note()]) if isinstance(at, Times) else ()), *label.notes),
    )
    return rows, {name: tuple(map(str, reader.finish()[1])) for name, reader in one_hot.items()}


def _clients(settings: TableSettings, bad: BadRows, owners: Mapping[Path, str] | None) -> Values | None:
    if owners is not None:
        return FileClients(owners, bad)
    return None if settings.client is None else Values(settings.client, "client", MOST_TEXTS, bad)


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


def _arrival(shards: Shards, settings: TableSettings, bad: BadRows) -> Times | Whole | Numbers | None:
    if settings.time is not None:
        return Times(settings.time, settings.time_options, bad)
    if settings.step is not None:
        return Whole(settings.step, *BOUNDS["step"], bad)
    if settings.order is None:
        return None
    if _is_ordered_by_number(shards.kinds[settings.order], settings):
        return Numbers(settings.order, bad)
    return Times(settings.order, settings.time_options, bad)


def _is_ordered_by_number(kind: pa.DataType, settings: TableSettings) -> bool:
    """Whether the column of `order` holds numbers, whose unit does not matter, and not times."""
    return _is_number(kind) and settings.time_format is None


def _expiry(shards: Shards, settings: TableSettings, bad: BadRows) -> Expiry:
    present = PresentRows(bad)
    reader = _arrival(shards, settings.of_expiry(), present)
    assert reader is not None  # the settings make sure of it
    return Expiry(reader, present, is_whole=settings.step is not None)


def _refuse_other_unit(at: Column, expiry: Expiry, shards: Shards) -> None:
    """Raise DataFileError if the columns of arrivals and of expiry cannot be compared."""
    reader = expiry.reader
    if not expiry.has_some:
        return
    units = [
        "numbers"
        if not isinstance(column, Times)
        else f"times {'with' if column.instants.has_zone else 'without'} a time zone"
        for column in (at, reader)
    ]
    if units[0] != units[1]:
        raise DataFileError(
            shards.files[0],
            f"expiry: column {reader.name!r} holds {units[1]}, and {at.name!r} {units[0]}; give both alike",
        )
