"""Data without clients, divided among clients as a partition says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import numpy as np
from pydantic import Field

from emulator.arrays import Ints
from emulator.errors import InputError
from emulator.numbers import Count
from emulator.plugins import ChoiceOf, Chosen
from emulator.seeding import RandomStreams
from traces.arrivals import SPLITS
from traces.building.base import BuilderSettings
from traces.building.images import ImageSettings, Side
from traces.building.rows import Coded
from traces.partitions import PARTITIONS, Partition, Samples
from traces.partitions.population import follow

PartitionChoice = Annotated[Chosen[Partition], ChoiceOf(PARTITIONS)] | None


class DividedSettings(BuilderSettings):
    """The settings of data sets that may have no clients."""

    partition: PartitionChoice = Field(
        None,
        description='how images are divided among clients, such as `{ kind = "dirichlet", alpha = 0.1 }`; '
        "`driftscale parts partition` lists them",
    )
    clients: Count | None = Field(None, description="number of clients of the partition")


class PixelSettings(ImageSettings):
    """The settings of data sets that are pixels already."""

    size: Side | None = Field(None, description="side of the images in pixels; without it, they keep theirs")


def divided(
    settings: DividedSettings,
    label: Ints,
    split: np.ndarray | None = None,
    columns: Mapping[str, np.ndarray] | None = None,
) -> Coded:
    """Divide samples among clients: the client of each (n,), and the names of all.

    If `split` (n,) says which samples are for tests, these follow the training samples of their labels, as
    with `trace.partition`.

    Args:
        settings: the partition and the number of clients.
        label: (n,) the class of each sample.
        split: (n,) index into SPLITS; None if it is not known.
        columns: other columns (n,) that a partition may use.

    Raises:
        InputError: there is no partition.
        ConfigurationError: the partition does not fit the samples.
    """
    if settings.partition is None:
        raise InputError(
            f"the data set has no clients: give --partition ({', '.join(PARTITIONS.names())}) and --clients"
        )
    streams = RandomStreams(settings.seed)
    is_train = np.ones(len(label), np.bool_) if split is None else split == SPLITS.index("train")
    train, test = np.flatnonzero(is_train), np.flatnonzero(~is_train)
    samples = Samples(label[train], {name: column[train] for name, column in (columns or {}).items()})
    of_train = settings.partition.build().divide(samples, settings.clients, streams.generator("partition", 0))
    number = int(of_train.max()) + 1
    client = np.zeros(len(label), np.int64)
    client[train] = of_train
    if len(test):
        generator = streams.generator("partition", 1)
        client[test] = follow(of_train, label[train], label[test], number, generator)
    width = len(str(number - 1))
    return client, tuple(f"{client:0{width}d}" for client in range(number))
