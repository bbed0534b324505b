"""What an availability returns: the rules by which guards hold own ones to it."""

from __future__ import annotations

import numpy as np

from emulator.arrays import Bools, Floats, Ints
from emulator.own.declared import expect, expect_array
from emulator.ports import Availability


def online(online: Bools, availability: Availability, ids: Ints, time_s: float) -> None:
    """Rule of `Availability.online`."""
    expect_array(online, ids.shape, "b")


def later(next_s: Floats, availability: Availability, ids: Ints, time_s: float) -> None:
    """Rule of `Availability.next_online_s` and `next_offline_s`."""
    later = next_s.shape == ids.shape and next_s > time_s  # NaN is not
    expect(np.all(later), f"must be of shape {ids.shape} and later than {time_s:g}, inf for never")
