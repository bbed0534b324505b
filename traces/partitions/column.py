"""The natural partition: one client for each value of a column, such as a camera, a place or a person."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field

from emulator.arrays import Ints
from emulator.errors import ConfigurationError
from emulator.plugins import Settings
from traces.partitions.base import Partition, Samples


class ByColumnSettings(Settings):
    """The column that names the client of each sample."""

    column: str = Field(
        min_length=1, description="the column whose every value is a client", examples=["camera"]
    )


class ByColumn(Partition):
    """One client for each value of a column, in ascending order of the values; nothing is random.

    The number of clients is that of the values: another one is refused. Client c is the c-th of
    `numpy.unique` of the column.

    Source: ours.

    >>> samples = Samples(np.zeros(4, int), {"camera": np.array(["b", "c", "a", "b"])})
    >>> partition = ByColumn(ByColumnSettings(column="camera"))
    >>> partition.divide(samples, None, np.random.default_rng(0)).tolist()
    [1, 2, 0, 1]
    """

    Settings: ClassVar[type[Settings]] = ByColumnSettings
    settings: ByColumnSettings

    def count_clients(self, samples: Samples, num_clients: int | None) -> int:
        name = self.settings.column
        values = len(np.unique(self._values(samples)))
        if num_clients not in (None, values):
            raise ConfigurationError(
                f"partition.column = {name!r}: has {values} values, each of which is a client, and not "
                f"{num_clients}; leave the number of clients out, or set it to {values}"
            )
        return values

    def assign(self, samples: Samples, num_clients: int, generator: np.random.Generator) -> Ints:
        clients: Ints = np.unique(self._values(samples), return_inverse=True)[1].astype(np.int64)
        return clients

    def _values(self, samples: Samples) -> np.ndarray:
        name = self.settings.column
        if not samples.columns:
            raise ConfigurationError(
                f"partition.column = {name!r}: the data have no columns, only images and labels; choose "
                f"another kind of partition (`driftscale parts partition` lists them)"
            )
        if name not in samples.columns:
            raise ConfigurationError(
                f"partition.column = {name!r}: no such column; choices: {', '.join(sorted(samples.columns))}"
            )
        return samples.columns[name]
