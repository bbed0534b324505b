"""Times as tables write them: as dates, timestamps, texts in ISO 8601, or seconds since 1970."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from emulator.arrays import Bools, Ints
from emulator.errors import DataFileError
from emulator.storage.parquet_columns import EARLIEST_US, LATEST_US, OUT_OF_RANGE, microseconds_of
from traces.building.table.bad_rows import BadRows
from traces.building.table.reading.shards import Batch, missing

EXPECTED = "a date or a timestamp in ISO 8601, as 2015-01-31 or 2015-01-31T12:00:00Z"

MICROSECONDS_PER_S = 10**6
MOST_SECONDS = 2**63 // MICROSECONDS_PER_S - 1

_WITH_ZONE = r"^(?P<at>.*:.*[0-9])(?P<zone>Z|[+-][0-9]{2}:?[0-9]{2})$"
_ISO = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)?(Z|[+-][0-9]{2}:?[0-9]{2})?)?$"
)


@dataclass(frozen=True)
class _Zone:
    """The time zone of the first row: an offset such as +01:00, or none; and where that row is."""

    offset: str
    shown: str
    place: str


class Zones(NamedTuple):
    """The time zones of some texts: "" for none, "Z" for UTC, or an offset such as +0100.

    Text i has the zone `names[of_text[i]]`.
    """

    names: list[str]
    of_text: Ints


class Instants:
    """The times of a column, batch by batch, in microseconds since 1970.

    All of them have the same time zone, or none has one.
    """

    def __init__(self, name: str, *, unix_seconds: bool, bad: BadRows) -> None:
        self.name = name
        self.unix_seconds = unix_seconds
        self.bad = bad
        self._zone: _Zone | None = None

    @property
    def has_zone(self) -> bool:
        """Whether the times have a time zone."""
        return self._zone is not None and bool(self._zone.offset)

    def read(self, batch: Batch, start: int) -> Ints:
        """(rows,) the times of a batch that begins at row `start` of the table; 0 where a row is bad.

        Raises DataFileError for a type or a text that is no time, for one before the year 1 or after 9999,
        and for mixed time zones.
        """
        instants = self._instants(batch, start)
        outside = (instants < EARLIEST_US) | (instants >= LATEST_US)
        self.bad.refuse(batch, start, outside, lambda row: f"{self.name} {OUT_OF_RANGE}")
        return np.where(outside, 0, instants)

    def _instants(self, batch: Batch, start: int) -> Ints:
        column = batch.columns[self.name]
        kind = column.type
        is_missing = missing(column)
        if isinstance(column, pa.DictionaryArray):
            return self._texts(batch, start, column)
        if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
            self.bad.refuse(batch, start, is_missing, lambda row: f"{self.name} is missing")
            zone = getattr(kind, "tz", None)
            self._zone = self._zone or _Zone("Z" if zone else "", "", "")
            instants, outside = microseconds_of(column, kind)
            return np.where(outside, LATEST_US, instants)
        if pa.types.is_integer(kind) and self.unix_seconds:
            self.bad.refuse(batch, start, is_missing, lambda row: f"{self.name} is missing")
            seconds = np.asarray(pc.cast(column, pa.int64()).fill_null(0))
            beyond = np.abs(seconds) > MOST_SECONDS
            self.bad.refuse(
                batch,
                start,
                beyond,
                lambda row: f"{self.name} = {seconds[row]}: is no time in seconds since 1970",
            )
            return np.where(beyond, 0, seconds) * MICROSECONDS_PER_S
        if pa.types.is_integer(kind):
            raise DataFileError(
                batch.path,
                f"column {self.name!r} is {kind}; a time is {EXPECTED}; give --unix-seconds for whole "
                f"seconds since 1970, or --step or --order for other whole numbers",
            )
        raise DataFileError(batch.path, f"column {self.name!r} is {kind}; a time is {EXPECTED}")

    def _texts(self, batch: Batch, start: int, column: Any) -> Ints:
        """(rows,) the times of a column of texts, each of which is parsed once."""
        texts: Any = pc.utf8_trim_whitespace(pc.cast(column.dictionary, pa.string()))
        codes = np.asarray(column.indices.fill_null(-1)).astype(np.int64)
        is_iso = np.asarray(pc.match_substring_regex(texts, _ISO).fill_null(False))
        zones = _zones(texts)
        values, is_time = _parsed(texts, is_iso, zones)
        row_is_bad = np.where(codes < 0, True, ~is_time[codes] if len(texts) else True)

        def problem(row: int) -> str:
            text = None if codes[row] < 0 else texts[int(codes[row])].as_py()
            return f"{self.name} = {text!r}: must be {EXPECTED}" if text else f"{self.name} is missing"

        self.bad.refuse(batch, start, row_is_bad, problem)
        good = np.flatnonzero(~row_is_bad)
        self._refuse_mixed(batch, texts, zones, codes, good)
        instants = np.zeros(len(codes), dtype=np.int64)
        instants[good] = values[codes[good]]
        return instants

    def _refuse_mixed(self, batch: Batch, texts: Any, zones: Zones, codes: Ints, good: Ints) -> None:
        if len(good) == 0:
            return
        if self._zone is None:
            first = int(good[0])
            self._zone = _Zone(
                zones.names[zones.of_text[codes[first]]], *self._shown(batch, texts, codes, first)
            )
        other = np.flatnonzero(
            np.array([zone != self._zone.offset for zone in zones.names])[zones.of_text[codes[good]]]
        )
        if len(other):
            shown, _ = self._shown(batch, texts, codes, row := int(good[other[0]]))
            raise DataFileError(
                batch.path,
                f"{self.name} = {shown!r}: its time zone is not that of {self._zone.shown!r} in "
                f"{self._zone.place}; give all times the same one, or none",
                batch.first + row + 1,
            )

    def _shown(self, batch: Batch, texts: Any, codes: np.ndarray, row: int) -> tuple[str, str]:
        return texts[int(codes[row])].as_py() or "", f"{batch.path.name}, row {batch.first + row + 1}"


def _zones(texts: Any) -> Zones:
    """The time zones of texts, and which of them each text has."""
    found = pc.struct_field(pc.extract_regex(texts, pattern=_WITH_ZONE), "zone").fill_null("")
    encoded = pc.replace_substring(found, ":", "").dictionary_encode()
    names = ["Z" if zone in ("+0000", "-0000") else zone for zone in encoded.dictionary.to_pylist()]
    return Zones(names, np.asarray(encoded.indices).astype(np.int64))


def _parsed(texts: Any, is_iso: Bools, zones: Zones) -> tuple[Ints, Bools]:
    """The microseconds (k,) of each text, and whether it is a time (k,)."""
    parts = pc.extract_regex(texts, pattern=_WITH_ZONE)
    local = pc.if_else(pc.is_valid(parts), pc.struct_field(parts, "at"), texts)
    local = pc.if_else(pa.array(is_iso), local, pa.scalar("1970-01-01"))
    try:
        times, valid = pc.cast(local, pa.timestamp("us")), is_iso
    except pa.ArrowInvalid:  # such as 2015-02-30, or nanoseconds
        castable = np.array([_is_time(text) for text in local.to_pylist()], dtype=np.bool_)
        times = pc.cast(pc.if_else(pa.array(castable), local, pa.scalar("1970-01-01")), pa.timestamp("us"))
        valid = is_iso & castable
    offsets = np.array([_offset_us(zone) for zone in zones.names], dtype=np.int64)
    return np.asarray(pc.cast(times, pa.int64())) - offsets[zones.of_text], valid


def _is_time(text: str) -> bool:
    try:
        pc.cast(pa.scalar(text), pa.timestamp("us"))
    except pa.ArrowInvalid:
        return False
    return True


def _offset_us(zone: str) -> int:
    """The microseconds of an offset such as +0130; 0 for "" and "Z".

    >>> _offset_us("-0130")
    -5400000000
    """
    if zone in ("", "Z"):
        return 0
    seconds = int(zone[1:3]) * 3600 + int(zone[3:]) * 60
    return (-seconds if zone[0] == "-" else seconds) * MICROSECONDS_PER_S
