"""The speed of a fleet: its columns with their units, and the protocol of device profiles.

Defines the names under which a user may give a column, and every conversion between units. Knows no file
format.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from emulator.arrays import Floats, Ints
from emulator.errors import InputError
from emulator.numbers import DEVICE_BOUNDS
from emulator.plugins import returns

COLUMNS = tuple(DEVICE_BOUNDS)
MAY_BE_ZERO = frozenset({"latency_s"})

TRAINING_PER_INFERENCE = 3.0
"""Training time over inference time: a forward pass, and a backward pass of twice its time (FedScale's
augmentation_factor)."""


@dataclass(frozen=True)
class Alias:
    """A name under which a user may give the columns `gives`: they are the values x factor / divisor.

    A unit that is a whole part of the column's is a `divisor`, since 9 / 1000 is 0.009 and 9 x 0.001 is not.
    """

    gives: tuple[str, ...]
    factor: float = 1.0
    divisor: float = 1.0

    def convert(self, values: Floats) -> Floats:
        """Convert values of this name into those of its columns, of the same shape."""
        return values * self.factor / self.divisor


_LINKS = ("download_bytes_per_s", "upload_bytes_per_s")
_WAYS = {"download": _LINKS[:1], "upload": _LINKS[1:], "bandwidth": _LINKS}
# 1024 bits is FedScale's unit; it calls it kbps and uses one bandwidth both ways.
_UNITS = {"kibit_per_s": 1024 / 8, "mbps": 1e6 / 8, "KiB_per_s": 1024.0, "MB_per_s": 1e6}

ALIASES: Mapping[str, Alias] = {
    # inference time, as phone benchmarks publish it
    "compute_ms_per_sample": Alias(("seconds_per_sample",), TRAINING_PER_INFERENCE / 1000),
    # 1000 bits
    "download_kbps": Alias(("download_bytes_per_s",), 1000 / 8),
    "upload_kbps": Alias(("upload_bytes_per_s",), 1000 / 8),
    **{f"{way}_{unit}": Alias(gives, _UNITS[unit]) for unit in _UNITS for way, gives in _WAYS.items()},
    "ms_per_sample": Alias(("seconds_per_sample",), divisor=1000),
    "latency_ms": Alias(("latency_s",), divisor=1000),
}
SOURCES: Mapping[str, Alias] = {**{name: Alias((name,)) for name in COLUMNS}, **ALIASES}
"""Every name a fleet column can be given by: its own, or an alias. A mixture draws in this order, so new ones
are last."""


def match_columns(names: Iterable[str]) -> dict[str, str]:
    """Find, for each column of a fleet, which of the given names gives it.

    Args:
        names: keys of SOURCES.

    Returns:
        The name that gives each column, by column; `latency_s` may be missing.

    Raises:
        ValueError: a column is given twice, or not at all.

    >>> match_columns(["seconds_per_sample", "bandwidth_kibit_per_s"])["upload_bytes_per_s"]
    'bandwidth_kibit_per_s'
    """
    given: dict[str, str] = {}
    for name in names:
        for column in SOURCES[name].gives:
            if column in given:
                raise ValueError(f"{given[column]!r} and {name!r} both give {column}; keep one")
            given[column] = name
    for column in COLUMNS:
        if column not in given and column not in MAY_BE_ZERO:
            aliases = ", ".join(repr(name) for name, alias in ALIASES.items() if column in alias.gives)
            raise ValueError(f"column {column!r} is missing, and so is each alias of it: {aliases}")
    return given


@dataclass(frozen=True)
class Fleet:
    """The speed of the device of each of N clients: columns of shape (N,), as emulator.ports.FleetColumns.

    `seconds_per_sample` is the training time (forward and backward) of the profile's reference model.
    `device` (N,) is the row of the profile's table that each client's device is, and `ids` has the id in each
    row of the table; both are None if the profile has no table.
    InputError if the columns are not of one shape (N,), or for a value outside `DEVICE_BOUNDS`.
    """

    seconds_per_sample: Floats
    download_bytes_per_s: Floats
    upload_bytes_per_s: Floats
    latency_s: Floats
    device: Ints | None = None
    ids: Sequence[str] | None = None

    def __post_init__(self) -> None:
        """Check shapes and bounds."""
        for name, values in self.columns().items():
            if values.shape != self.seconds_per_sample.shape or values.ndim != 1:
                raise InputError(f"fleet column {name} has shape {values.shape}; all must be (num_clients,)")
            least, most = DEVICE_BOUNDS[name]
            good = (values >= least) & (values <= most)  # NaN is neither
            if not good.all():
                client = int(np.flatnonzero(~good)[0])
                raise InputError(
                    f"fleet column {name} is {values[client]:g} for client {client}; "
                    f"it must lie between {least:g} and {most:g}"
                )

        if self.device is not None and self.ids is not None:
            outside = (self.device < 0) | (self.device >= len(self.ids))
            if self.device.shape != self.seconds_per_sample.shape or outside.any():
                raise InputError(f"fleet column device must have one of {len(self.ids)} rows for each client")

    def __len__(self) -> int:
        """The number of clients."""
        return len(self.seconds_per_sample)

    def columns(self) -> dict[str, Floats]:
        """Collect the columns.

        Returns:
            The columns by name, each of shape (N,).
        """
        return {name: getattr(self, name) for name in COLUMNS}

    def take(self, rows: Ints) -> Fleet:
        """Select devices by row.

        Args:
            rows: the row of each new client's device, of shape (n,).

        Returns:
            The fleet of n clients.
        """
        device = None if self.device is None else self.device[rows]
        columns = {name: values[rows] for name, values in self.columns().items()}
        return Fleet(device=device, ids=self.ids, **columns)

    def quantiles(self, probabilities: Sequence[float]) -> dict[str, Floats]:
        """Compute quantiles of every column.

        Args:
            probabilities: p numbers in [0, 1].

        Returns:
            By column, the quantiles, of shape (p,).
        """
        return {name: np.quantile(values, probabilities) for name, values in self.columns().items()}


@runtime_checkable
class DeviceProfile(Protocol):
    """A population of devices from which fleets are drawn."""

    @property
    def name(self) -> str:
        """The profile's name."""
        ...

    @property
    def reference_model(self) -> str | None:
        """The model with which `seconds_per_sample` was measured; None if unknown."""
        ...

    @property
    def reference_flops(self) -> float | None:
        """FLOPs (two per multiply-add) of that model's forward pass over one sample; None if unknown."""
        ...

    @property
    def source(self) -> str:
        """The publication or measurement that its numbers come from."""
        ...

    @returns("device_profiles.checks:fleet")
    def draw(self, num_clients: int, generator: np.random.Generator) -> Fleet:
        """Draw a device for each client.

        The draw depends on the generator's state, and not on the order of rows in a file.

        Args:
            num_clients: the number of clients.
            generator: the source of the draw.

        Returns:
            The fleet, with one row for each client.
        """
        ...
