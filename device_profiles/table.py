"""A device profile from a table with one device per row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from device_profiles.fleet import COLUMNS, MAY_BE_ZERO, SOURCES, Fleet, match_columns
from emulator.arrays import Floats
from emulator.assigning import DeviceIds, deal
from emulator.errors import DataFileError
from emulator.numbers import DEVICE_BOUNDS
from emulator.storage.bounded import has_controls
from emulator.storage.table_paths import Given
from emulator.storage.tables import TableFile, read_table

ID = "device_id"
ABOUT_KEYS = ("reference_model", "reference_flops", "source")
"""Keys of a Parquet file's schema metadata, which a CSV does not have."""


@dataclass(frozen=True)
class TableProfile:
    """Devices that were measured one by one; `devices` is in the order of their ids.

    Two devices serve four clients, twice each:

    >>> devices = Fleet(np.array([0.1, 0.2]), np.full(2, 1e6), np.full(2, 1e5), np.zeros(2))
    >>> ids = DeviceIds(Path("bench.csv"), "device_id", ["a", "b"], np.arange(2))
    >>> profile = TableProfile("bench", None, None, "an example", devices, ids)
    >>> np.sort(profile.draw(4, np.random.default_rng(0)).seconds_per_sample).tolist()
    [0.1, 0.1, 0.2, 0.2]
    """

    name: str
    reference_model: str | None
    reference_flops: float | None
    source: str
    devices: Fleet
    ids: DeviceIds

    def draw(self, num_clients: int, generator: np.random.Generator) -> Fleet:
        """Deal the devices in random permutations, one after another, until every client has one.

        The numbers of clients that two devices serve differ by at most one.
        """
        return self.devices.take(deal(num_clients, len(self.devices), generator))

    @property
    def counts(self) -> Mapping[str, int]:
        return {"devices": len(self.devices)}


def read_device_table(path: Path, given: Given = Given()) -> TableProfile:  # noqa: B008  (it is frozen)
    """Read the profile in a table with columns `device_id` and those of `Fleet`, or their aliases.

    Further columns are not read; the notes of its ids name them. DataFileError names the file and, where
    they are known, row and column: a column that is missing, misspelt or given twice, a value that is
    missing, NaN or out of `DEVICE_BOUNDS`, an id in two rows, an empty file, unusable metadata.
    """
    table = read_table(path, given)
    unread = table.unread({ID, *SOURCES})
    try:
        sources = match_columns(name for name in table.columns if name in SOURCES)
    except ValueError as error:
        raise DataFileError(path, f"{error}; {table.has}") from error
    by_id = np.argsort(table.unique_ids(ID))
    ids = table.devices(ID)
    ids = replace(ids, notes=(*ids.notes, *unread))
    columns = {column: _read(table, column, sources.get(column))[by_id] for column in COLUMNS}
    model, flops, source = _about(table)
    by_row = [ids.ids[rank] for rank in np.argsort(by_id).tolist()]
    devices = Fleet(device=by_id, ids=by_row, **columns)
    return TableProfile(path.stem, model, flops, source or f"the table {path.name}", devices, ids)


def _read(table: TableFile, column: str, name: str | None) -> Floats:
    if name is None:
        return np.zeros(len(table))
    rule = {"at_least": 0.0} if column in MAY_BE_ZERO else {"above": 0.0}
    source, values = SOURCES[name], table.numbers(name, **rule)
    converted = source.convert(values)
    least, most = DEVICE_BOUNDS[column]
    bad = np.flatnonzero((converted < least) | (converted > most))
    if len(bad):
        factor = source.factor / source.divisor
        raise DataFileError(
            table.path,
            f"{name} = {values[bad[0]]:g} must lie between {least / factor:g} and {most / factor:g}",
            row=int(bad[0]) + 1,
        )
    return converted


def _about(table: TableFile) -> tuple[str | None, float | None, str | None]:
    metadata = table.table.schema.metadata or {}
    model, flops, source = (metadata.get(key.encode(), b"").decode(errors="replace") for key in ABOUT_KEYS)
    if has_controls(model + source):
        raise DataFileError(table.path, "its metadata has characters that nobody can read")
    try:
        number = float(flops) if flops else None
    except ValueError:
        number = float("nan")
    if number is not None and not 0 < number < float("inf"):
        raise DataFileError(table.path, f"metadata reference_flops = {flops!r} must be a number above 0")
    return model or None, number, source or None
