"""Which devices of a table serve which clients: drawn, by the clients' names, or in the order of the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal
from unicodedata import normalize

import numpy as np

from emulator.arrays import Ints
from emulator.errors import ConfigurationError, DataFileError

Assign = Literal["draw", "by_name", "by_index"]

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
        notes: What is to be told about how the table was read.
    """

    path: Path
    column: str
    ids: Sequence[str]
    first_row: Ints
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        """The number of devices."""
        return len(self.ids)

    @cached_property
    def by_key(self) -> Mapping[str, int]:
        """The device of each id, as ids are compared; of several with the same id the first row's."""
        order = np.argsort(self.first_row, kind="stable")[::-1].tolist()
        return {compared(self.ids[device]): device for device in order}

    def refuse_same(self) -> None:
        """Raise DataFileError if two ids are the same as ids are compared."""
        for device, id_ in enumerate(self.ids):
            first = self.by_key[compared(id_)]
            if first != device:
                row, other = self.first_row[first] + 1, self.ids[first]
                raise DataFileError(
                    self.path,
                    f"{self.column} {id_!r} is {other!r} of row {row} but for blanks around it or how its "
                    f"letters are composed; each device needs a name of its own",
                    row=int(self.first_row[device]) + 1,
                )

    def found_in(self, other: DeviceIds) -> Ints:
        """(D,) the device of each id in `other`, as ids are compared; -1 for none."""
        return np.array([other.by_key.get(compared(id_), -1) for id_ in self.ids], dtype=np.int64)

    def take(self, devices: Ints) -> DeviceIds:
        """Those of some devices, in this order."""
        ids = [self.ids[device] for device in devices.tolist()]
        return replace(self, ids=ids, first_row=self.first_row[devices])


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


def by_name(names: Sequence[str], devices: DeviceIds, *, may_lack: bool) -> Ints:
    """(num_clients,) the device whose id is the name of each client; -1 for none, if clients `may_lack` one.

    Raises:
        DataFileError: Two devices have the same name, or a client has no device, and may not.
    """
    devices.refuse_same()
    found = np.array([devices.by_key.get(compared(name), -1) for name in names], dtype=np.int64)
    lacking = np.flatnonzero(found < 0).tolist()
    if lacking and not may_lack:
        spare = np.setdiff1d(np.arange(len(devices)), found)
        spare = spare[np.argsort(devices.first_row[spare], kind="stable")].tolist()
        others = f"; ids of no client: {_shown([devices.ids[one] for one in spare])}" if spare else ""
        without = _shown([names[client] for client in lacking])
        raise DataFileError(
            devices.path,
            f"{devices.column}: {len(lacking)} of {len(names)} clients have no row, by their names: "
            f"{without}{others}{_near(names, lacking, devices, spare)}; "
            f'add or rename rows, or set devices.unmatched = "draw"',
        )
    return found


def refuse_same_names(names: Sequence[str]) -> None:
    """Raise ConfigurationError if two clients have the same name, as names are compared."""
    clients: dict[str, int] = {}
    for client, name in enumerate(names):
        other = clients.setdefault(compared(name), client)
        if other != client:
            raise ConfigurationError(
                f'devices.assign = "by_name": clients {other} and {client} of the trace are {names[other]!r} '
                f"and {name!r}, the same but for blanks or how letters are composed; rename one in the trace"
            )


def _shown(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_SHOWN} more" if len(names) > MOST_SHOWN else ""
    return ", ".join(map(repr, names[:MOST_SHOWN])) + more


def _near(names: Sequence[str], lacking: Sequence[int], devices: DeviceIds, spare: Sequence[int]) -> str:
    """The first client without a device that has one if case, or zeros in front, did not matter."""
    loose = {_loose(devices.ids[device]): device for device in reversed(spare)}
    for client in lacking:
        device = loose.get(_loose(names[client]))
        if device is not None:
            row, id_ = devices.first_row[device] + 1, devices.ids[device]
            return f"; names are compared as written: row {row} has {id_!r}, the client is {names[client]!r}"
    return ""


def _loose(name: str) -> str:
    return compared(name).casefold().lstrip("0")
