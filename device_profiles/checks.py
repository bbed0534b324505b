"""What device profiles return: the rule by which guards hold own ones to it."""

from __future__ import annotations

import numpy as np

from device_profiles.fleet import DeviceProfile, Fleet
from emulator.own.declared import expect


def fleet(fleet: Fleet, profile: DeviceProfile, num_clients: int, generator: np.random.Generator) -> None:
    """Rule of `DeviceProfile.draw`."""
    expect(len(fleet) == num_clients, f"must have {num_clients} devices, one for each client")
