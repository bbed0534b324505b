"""The samples of a trace as other processes read them: mapped from files without a name, never copied there.

What a reader needs is less than a trace: which sample a row is, and what is in it. Who holds what when stays
with the one process that has the trace.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from emulator.arrays import NO_IDS, Floats32, Ints
from emulator.state_tree import Tree
from traces.columns import Columns
from traces.even_table import EvenTable
from traces.flipped_labels import FlippedLabels
from traces.images import ImageSet
from traces.samples import NoisyImages
from traces.sorted_table import SortedTable
from traces.table import CHUNK_ROWS, Table
from traces.trace import Trace

STORED = ("label", "image", "noise_start")


class SharedTrace:
    """A trace whose samples other processes may map: what they are told, and the files that go with it.

    The files are open as long as both this and the trace are there.
    """

    def __init__(self, trace: Trace, scratch: Path | None) -> None:
        samples = trace.samples
        pixels = samples.images.pixels
        columns = Columns(
            {"pixels": (pixels.dtype, pixels.size), "normal": (samples.normal.dtype, len(samples.normal))},
            scratch,
            shared=True,
        )
        columns["pixels"][:] = pixels.ravel()
        columns["normal"][:] = samples.normal
        described, of_samples = columns.share()
        self._kept: list[object] = [columns]  # their files are open as long as they are there
        table, of_table = self._table(trace.table, scratch)
        self.descriptors = [of_samples, of_table]
        self.description: Tree = {
            "samples": described,
            "shape": samples.images.shape,
            "scale": float(samples.images.scale),
            "num_labels": samples.images.num_labels,
            "noise": float(samples.noise),
            "table": table,
        }

    def _table(self, table: Table, scratch: Path | None) -> tuple[Tree, int]:
        """What a table is, for `_opened`."""
        if isinstance(table, FlippedLabels) and isinstance(table.table, EvenTable):
            inner, descriptor = self._table(table.table, scratch)
            return {"kind": "flipped", "table": inner, "clients": table.clients}, descriptor
        if isinstance(table, EvenTable):
            described, descriptor = table.columns.share()
            return {"kind": "even", "columns": described, "shape": table.shape}, descriptor
        if isinstance(table, SortedTable):
            described, descriptor = table.columns.share()
            return {"kind": "rows", "columns": described}, descriptor
        # Whatever else a table is, what it says of its rows is all that is read.
        layout = {name: (table.take(name, NO_IDS).dtype, len(table)) for name in STORED}
        columns = Columns(layout, scratch, shared=True)
        for first in range(0, len(table), CHUNK_ROWS):
            rows = np.arange(first, min(first + CHUNK_ROWS, len(table)))
            for name in STORED:
                columns[name][rows] = table.take(name, rows)
        self._kept.append(columns)
        described, descriptor = columns.share()
        return {"kind": "rows", "columns": described}, descriptor


class MappedSamples:
    """`emulator.ports.SampleReader` over what `SharedTrace` described, its files handed over in its order."""

    def __init__(self, description: Tree, descriptors: list[int]) -> None:
        of_samples, of_table = descriptors
        columns = Columns.mapped(description["samples"], of_samples)
        pixels = columns["pixels"].reshape(-1, *description["shape"])
        images = ImageSet(pixels, description["scale"], NO_IDS, description["num_labels"], NO_IDS, NO_IDS)
        self._samples = NoisyImages(images, description["noise"], columns["normal"])
        self._table = _opened(description["table"], of_table, images.num_labels)

    @property
    def sample_shape(self) -> tuple[int, ...]:
        return self._samples.images.shape

    @property
    def num_labels(self) -> int:
        return self._samples.images.num_labels

    def features(self, rows: Ints) -> Floats32:
        """(n, *sample_shape)."""
        starts = self._table.take("noise_start", rows) if self._samples.noise > 0 else None
        return self._samples.features(self._table.take("image", rows).astype(np.int64), starts)

    def labels(self, rows: Ints) -> Ints:
        """(n,)"""
        return self._table.take("label", rows).astype(np.int64)


class _Rows(Protocol):
    def take(self, name: str, rows: Ints) -> np.ndarray: ...


@dataclass(frozen=True)
class _AsStored:
    """Rows that are stored in the order of their numbers."""

    columns: Columns

    def take(self, name: str, rows: Ints) -> np.ndarray:
        return self.columns[name].take(rows)


def _opened(description: Tree, descriptor: int, num_labels: int) -> _Rows:
    if description["kind"] == "rows":
        return _AsStored(Columns.mapped(description["columns"], descriptor))
    if description["kind"] == "even":
        num_clients, num_steps, sizes, first_step = description["shape"]
        columns = Columns.mapped(description["columns"], descriptor)
        return EvenTable.over(columns, num_clients, num_steps, sizes, first_step)
    inner = _opened(description["table"], descriptor, num_labels)
    assert isinstance(inner, EvenTable)
    return FlippedLabels(inner, description["clients"], num_labels)
