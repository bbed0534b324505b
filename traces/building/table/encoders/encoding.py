"""What the features of a table are written by: an encoder of its rows, and their mean and deviation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from emulator.arrays import Bools
from emulator.storage.reading.shards import Batch
from traces.building.bad_rows import BadRows


class Encoder(Protocol):
    """Makes the rows of a batch rows of `features.npy`; `types` are the columns that it reads for that."""

    bad: BadRows

    @property
    def types(self) -> Mapping[str, pa.DataType]: ...
    @property
    def rows(self) -> int: ...
    def encode(self, batch: Batch, start: int, keep: Bools) -> np.ndarray: ...


class Statistics(Protocol):
    """Mean and deviation of what is written, block by block."""

    def add(self, block: np.ndarray, weight: np.ndarray) -> None: ...
    def as_json(self) -> dict[str, Any]: ...
    def restore(self, state: Mapping[str, Any]) -> None: ...
    def finish(self) -> tuple[np.ndarray, np.ndarray]: ...


class Standardised(Protocol):
    """The columns or channels of numbers: their names, and which of them are standardised."""

    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def is_number(self) -> Bools: ...


class Encoding(NamedTuple):
    """How features are written: samples of `shape` and `dtype`, which `names` describe in `trace.toml`."""

    encoder: Encoder
    statistics: Statistics
    shape: tuple[int, ...]
    dtype: np.dtype
    names: tuple[str, ...]
