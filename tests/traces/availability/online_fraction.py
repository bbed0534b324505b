"""The share of clients online, hour by hour."""

from __future__ import annotations

import numpy as np

from emulator.arrays import Floats
from emulator.ports import Availability

HOUR_S = 3600.0


def online_fraction(
    availability: Availability, num_clients: int, num_hours: int = 96, samples_per_hour: int = 4
) -> Floats:
    """(num_hours,) the mean share of clients online in each hour, from evenly spaced instants."""
    ids = np.arange(num_clients, dtype=np.int64)
    times_s = (np.arange(num_hours * samples_per_hour) + 0.5) * (HOUR_S / samples_per_hour)
    shares = [float(availability.online(ids, float(time_s)).mean()) for time_s in times_s]
    hourly: Floats = np.reshape(shares, (num_hours, samples_per_hour)).mean(axis=1)
    return hourly
