"""Which devices of a table serve which clients: drawn, by the clients' names, or in the order of the rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal
from unicodedata import normalize

import numpy as np

from emulator.arrays import Ints
from emulator.errors import DataFileError, abbreviated

Assign = Literal["draw", "by_name", "by_index"]
Unmatched = Literal["refuse", "draw"]

MOST_SHOWN = 5
"""Names that a refusal shows on either side."""


def deal(num_clients: int, num_devices: int, generator: np.random.Generator) -> Ints:
    """Assign a device to each client: random permutations of all devices, one after the other.

    The order of devices in a file therefore does not matter, and no device is used twice before every device
    has been used once.

    Args:
        num_clients: length of the result.
        num_devices: number of devices to choose from, at least 1.
        generator: is advanced.

    Returns:
        Array of shape (num_clients,) with values in [0, num_devices).

    >>> np.sort(deal(6, 3, np.random.default_rng(0)))
    array([0, 0, 1, 1, 2, 2])
    """
    laps = -(-num_clients // num_devices)
    devices = np.tile(np.arange(num_devices, dtype=np.int64), (laps, 1))
    return generator.permuted(devices, axis=1).ravel()[:num_clients]


@dataclass(frozen=True)
class DeviceIds:
    """The ids of the D devices of a table, in the order in which they are drawn from.

    Attributes:
        path: The table.
        column: Its column of ids.
        ids: (D,) the ids as they are written.
        first_row: (D,) the row, counted from 0, in which each occurs first.
    """

    path: Path
    column: str
    ids: Sequence[str]
    first_row: Ints

    def __len__(self) -> int:
        """The number of devices."""
        return len(self.ids)

    @cached_property
    def by_key(self) -> Mapping[str, int]:
        """The device of each id, as ids are compared; DataFileError if two are then the same."""
        devices: dict[str, int] = {}
        for device, id_ in enumerate(self.ids):
            other = devices.setdefault(compared(id_), device)
            if other != device:
                first, second = sorted((other, device), key=lambda one: self.first_row[one])
                raise DataFileError(
                    self.path,
                    f"{self.column} {self.ids[second]!r} is {self.ids[first]!r} of row "
                    f"{self.first_row[first] + 1} but for blanks around it or how its letters are composed; "
                    f"each device needs a name of its own",
                    row=int(self.first_row[second]) + 1,
                )
        return devices

    def devices_in(self, other: DeviceIds) -> Ints | None:
        """(D,) the device of each id in `other`; None unless it has all of them."""
        if len(self) > len(other):
            return None
        found = [other.by_key.get(key, -1) for key in self.by_key]
        return np.array(found, dtype=np.int64) if min(found) >= 0 else None

    def take(self, devices: Ints) -> DeviceIds:
        """Those of some devices, in this order."""
        ids = [self.ids[device] for device in devices.tolist()]
        return DeviceIds(self.path, self.column, ids, self.first_row[devices])


def compared(name: str) -> str:
    """A name as names are compared: as it is written, but for blanks around it.

    >>> compared(" wearer-7") == compared("wearer-7"), compared("007") == compared("7")
    (True, False)
    """
    return normalize("NFC", name.strip())


def by_index(num_clients: int, devices: DeviceIds) -> Ints:
    """(num_clients,) the devices in the order of their rows, and again from the first one.

    >>> by_index(3, DeviceIds(Path("phones.csv"), "device_id", ["a", "b"], np.array([1, 0]))).tolist()
    [1, 0, 1]
    """
    return np.resize(np.argsort(devices.first_row, kind="stable"), num_clients)


def by_name(names: Sequence[str], devices: DeviceIds) -> Ints:
    """(num_clients,) the device that has the name of each client; -1 for none.

    InputError if two clients have the same name, or two devices.
    """
    refuse_same_names(names)
    return np.array([devices.by_key.get(compared(name), -1) for name in names], dtype=np.int64)
