"""Availability from a user's tables: one row per interval and, optionally, one row per device."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import AwareDatetime, Field

from emulator import plugins
from emulator.arrays import Bools, Floats, Ints
from emulator.assigning import deal
from emulator.errors import DataFileError
from emulator.storage.table_paths import TablePath
from emulator.storage.tables import TableFile, find_table
from traces.availability.base import AvailabilitySource, Locate
from traces.availability.instants import DAY_US, instant_columns, read_instants
from traces.availability.interval_availability import (
    DeviceIntervals,
    IntervalAvailability,
    Overlapping,
    from_intervals,
)

DAY_S = 86_400.0
ID_NAMES = ("device_id", "device", "client")
ORIGIN_NAMES = ("origin_s", "trace_start_s")
PERIOD_NAMES = ("period_s", "trace_end_s")


class IntervalsSettings(plugins.Settings):
    """Settings of the source `intervals`."""

    windows: TablePath = Field(
        description="path of a table with the columns `device_id` (or `device`, `client`), `start_s`, "
        "`end_s` and, if they repeat, `period_s`, the same in all rows of a device; or `start`, `end`: "
        "timestamps with a zone, or Unix times; without an `end` until the last instant of the table",
        examples=["phones.csv"],
    )
    devices: TablePath | None = Field(
        None,
        description="path of a table with a row per device: `device_id` (or `device`, `client`), `origin_s` "
        "(or `trace_start_s`; 0 without either), and `period_s` or the instant `trace_end_s` at which the "
        "period ends",
    )
    origin: AwareDatetime | None = Field(
        None, description="the instant 0 of `start` and `end`; by default the earliest of them"
    )
    align: Literal["origin", "time_of_day"] = Field(
        "origin",
        description="the instant at virtual time 0: each device's origin, or the midnight before it on the "
        "tables' clock (of `start` and `end`: in UTC), so that devices keep a common daily rhythm",
    )
    overlapping: Overlapping = Field(
        "refuse", description="intervals of a device that overlap: refuse them, or merge them into one"
    )
    drop_never_online: bool = Field(False, description="leave out devices without any interval longer than 0")

    def find_files(self, locate: Locate) -> None:
        for table in (self.devices, self.windows):
            if table is not None:
                locate(table.path)


class Intervals(AvailabilitySource):
    r"""Availability from a user's tables of intervals; each client draws one of their devices.

    Source: ours; FedScale's trace is read in this form too.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     table = Path(folder, "windows.csv")
    ...     _ = table.write_text("device_id,start_s,end_s,period_s\n7,600,1200,3600\n")
    ...     source = Intervals(IntervalsSettings(windows=str(table)))
    ...     clients = source.build(2, np.random.default_rng(0), locate=Path)
    >>> clients.next_online_s(np.array([0, 1]), 1200.0)  # 600 s into the next hour
    array([4200., 4200.])
    """

    Settings = IntervalsSettings
    settings: IntervalsSettings

    def build(self, num_clients: int, generator: np.random.Generator, locate: Locate) -> IntervalAvailability:
        hours = self.read(locate)
        hours = hours.take(np.flatnonzero(self.is_dealt(hours)))
        return IntervalAvailability(hours, deal(num_clients, hours.num_devices, generator))

    def read(self, locate: Locate) -> DeviceIntervals:
        """The hours of all devices of the tables, with their ids; DataFileError if a table breaks a rule."""
        settings = self.settings
        devices = None if settings.devices is None else find_table(settings.devices, locate)
        windows = find_table(settings.windows, locate)
        return read_intervals(
            windows, devices, settings.align, origin=settings.origin, overlapping=settings.overlapping
        )

    def is_dealt(self, hours: DeviceIntervals) -> Bools:
        """(D,) whether each device is dealt to clients; DataFileError if none is left."""
        if not self.settings.drop_never_online:
            return np.ones(hours.num_devices, dtype=np.bool_)
        ever_online: Bools = hours.num_intervals > 0
        if not ever_online.any():
            path = "intervals" if hours.ids is None else hours.ids.path
            raise DataFileError(path, "no device is ever online: every interval has length 0")
        return ever_online


def read_intervals(
    windows: TableFile,
    devices: TableFile | None = None,
    align: Literal["origin", "time_of_day"] = "origin",
    *,
    origin: datetime | None = None,
    overlapping: Overlapping = "refuse",
) -> DeviceIntervals:
    """The intervals of the tables, device by device in the order of their ids; see IntervalsSettings.

    A device may lack its origin and period only if it has no row in `windows`: it was not traced, and is
    never online. Raises DataFileError, naming file and row, for every broken rule.
    """
    id_name = _one_of(windows, ID_NAMES)
    notes = windows.unread({id_name, "period_s", *instant_columns(windows)})
    instants = read_instants(windows, origin, align)
    if devices is None:
        device, ids = windows.ids(id_name), windows.devices(id_name)
        period_s = _own_periods(windows, device)
        origin_s = np.zeros(len(period_s))
    else:
        if "period_s" in windows.columns:
            raise DataFileError(
                windows.path, f"period_s belongs in {devices.path}, which describes the devices"
            )
        device = _match_devices(windows, devices)
        ids = devices.devices(_one_of(devices, ID_NAMES))
        ids = replace(ids, notes=(*ids.notes, *windows.notes))
        origin_s, period_s, others = _origins_and_periods(devices, device, instants.zero_us is not None)
        notes += others
    zero_s = origin_s + (instants.zero_us or 0) % DAY_US / 1e6
    hours = from_intervals(
        device,
        instants.start_s,
        instants.end_s,
        period_s,
        origin_s,
        np.fmod(zero_s, DAY_S) if align == "time_of_day" else None,
        path=windows.path,
        overlapping=overlapping,
        shown=instants.shown,
    )
    return replace(hours, ids=replace(ids, notes=(*ids.notes, *instants.notes, *notes)))


def _own_periods(windows: TableFile, device: Ints) -> Floats:
    """(D,) the period of each device as written in the table of windows; inf if it has no such column.

    `device` is the device of each row. Raises DataFileError if two rows of a device have different periods.
    """
    _, first = np.unique(device, return_index=True)
    if "period_s" not in windows.columns:
        return np.full(len(first), np.inf)
    written = windows.numbers("period_s", above=0)
    period_s = written[first]
    differs = np.flatnonzero(written != period_s[device])
    if len(differs):
        row = int(differs[0])
        problem = f"period_s = {written[row]:.15g} differs from {period_s[device[row]]:.15g}"
        raise DataFileError(
            windows.path, f"{problem} of the same device in row {first[device[row]] + 1}", row=row + 1
        )
    return period_s


def _match_devices(windows: TableFile, devices: TableFile) -> Ints:
    """(rows of `windows`,) the rank of each window's device among the ids of `devices`.

    A device is the one whose id is written so, or else has that value, as 7 for 7.0. Raises DataFileError if
    a device is not in `devices`.
    """
    window_name, known_name = _one_of(windows, ID_NAMES), _one_of(devices, ID_NAMES)
    devices.unique_ids(known_name)
    known, wanted = devices.distinct(known_name), windows.distinct(window_name)
    by_text = {text: rank for rank, text in enumerate(devices.texts_of(known_name, known))}
    by_value = {value: rank for rank, value in enumerate(devices.values_of(known_name, known))}
    texts, values = (of(window_name, wanted) for of in (windows.texts_of, windows.values_of))
    found = [by_text.get(text, by_value.get(value, -1)) for text, value in zip(texts, values, strict=True)]
    device: Ints = np.array(found, np.int64)[wanted.ranks]
    unknown = np.flatnonzero(device < 0)
    if len(unknown):
        row = int(unknown[0])
        problem = f"{window_name} {windows.values(window_name)[row]!r} is not in {devices.path}"
        raise DataFileError(windows.path, problem, row=row + 1)
    return device


def _origins_and_periods(
    devices: TableFile, traced: Ints, is_real: bool
) -> tuple[Floats, Floats, tuple[str, ...]]:
    """(D,) the origin and (D,) the period of each device, by ascending id, and notes for the user.

    The origin of dates (`is_real`) is a setting, and no column. A value that is missing is NaN if the device
    is not in `traced`, and otherwise a DataFileError, as is a period that is not above 0.
    """
    periods, origins = (PERIOD_NAMES[:1], ()) if is_real else (PERIOD_NAMES, ORIGIN_NAMES)
    id_name, period_name = _one_of(devices, ID_NAMES), _one_of(devices, periods)
    origin_name = _one_of(devices, origins, needed=False)
    notes = devices.unread({id_name, *periods, *origins})
    rank = devices.unique_ids(id_name)
    needed = np.isin(rank, traced)
    origin_s = _numbers_where(needed, devices, origin_name) if origin_name else np.zeros(len(rank))
    period_s = _numbers_where(needed, devices, period_name)
    if period_name == "trace_end_s":
        period_s = period_s - origin_s
    bad = np.flatnonzero(period_s <= 0)
    if len(bad):
        problem = f"the period must be longer than 0 s, and is {period_s[bad[0]]:.15g} s"
        raise DataFileError(devices.path, problem, row=int(bad[0]) + 1)
    row = np.argsort(rank)
    return origin_s[row], period_s[row], notes


def _numbers_where(needed: Bools, table: TableFile, name: str) -> Floats:
    """(rows,) the column as `TableFile.numbers`, but NaN for a missing value that is not needed."""
    column = table.table.column(name)
    if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
        return table.numbers(name)
    spared = np.asarray(column.is_null(nan_is_null=True)) & ~needed
    filled = pc.if_else(pa.array(spared), pa.scalar(0, column.type), column)
    filled_in = table.table.set_column(table.columns.index(name), name, filled)
    return np.where(spared, np.nan, replace(table, table=filled_in).numbers(name))


def _one_of(table: TableFile, names: tuple[str, ...], needed: bool = True) -> str:
    """The one of the alternative `names` that is a column of the table; "" if not `needed` and absent.

    Raises DataFileError if the table has several of them, or none and one is `needed`.
    """
    present = [name for name in names if name in table.columns]
    if len(present) > 1:
        raise DataFileError(table.path, f"has both {' and '.join(present)}; one of them is enough")
    if not present and needed:
        choices = " or ".join(map(repr, names))
        raise DataFileError(table.path, f"column {choices} is missing; {table.has}")
    return present[0] if present else ""
