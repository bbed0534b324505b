"""Registry of availability sources by name: which clients are online, when."""

from emulator.plugins import Registry
from traces.availability.base import AvailabilitySource, Locate
from traces.availability.interval_availability import DeviceIntervals, IntervalAvailability, from_intervals

AVAILABILITIES: Registry[type[AvailabilitySource]] = Registry(
    "availability",
    "driftscale.availability",
    {
        "always": "traces.availability.always:Always",
        "diurnal": "traces.availability.diurnal:Diurnal",
        "intervals": "traces.availability.intervals:Intervals",
    },
    base="traces.availability.base:AvailabilitySource",
)

__all__ = [
    "AVAILABILITIES",
    "AvailabilitySource",
    "DeviceIntervals",
    "IntervalAvailability",
    "Locate",
    "from_intervals",
]
