"""Who is online when: sources of availability, by name."""

from __future__ import annotations

from collections.abc import Mapping

from emulator.plugins import Registry
from traces.availability.always import Always, AlwaysOnline
from traces.availability.base import AvailabilitySource, Locate
from traces.availability.diurnal import Diurnal
from traces.availability.interval_availability import DeviceIntervals, IntervalAvailability, from_intervals
from traces.availability.intervals import Intervals, read_intervals

_OURS: Mapping[str, type[AvailabilitySource]] = {
    "always": Always,
    "diurnal": Diurnal,
    "intervals": Intervals,
}
AVAILABILITIES = Registry("availability", "driftscale.availability", _OURS)

__all__ = [
    "AVAILABILITIES",
    "Always",
    "AlwaysOnline",
    "AvailabilitySource",
    "DeviceIntervals",
    "Diurnal",
    "IntervalAvailability",
    "Intervals",
    "Locate",
    "from_intervals",
    "read_intervals",
]
