"""A column of images: encoded files in the cells of a table, as Hugging Face's Parquet shards have them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from emulator.arrays import Bools
from emulator.storage.reading.shards import Batch, Shards
from traces.building import rules
from traces.building.bad_rows import BadRows
from traces.building.decoding import BadImageError, Decoder
from traces.building.sums import ByteSums
from traces.building.table.encoders.encoding import BYTES, Encoder
from traces.building.table.settings import TableSettings

ROWS = 64
"""Images in memory at once."""


class Images(Encoder):
    """Encodes a column of images: `shape` uint8 each, resized without regard to the aspect ratio.

    The shape is (3, size, size), or (size, size) if grey.
    """

    rows = ROWS
    dtype = BYTES

    def __init__(self, shards: Shards, name: str, settings: TableSettings, bad: BadRows) -> None:
        size = settings.size
        self.name = name
        self.shape = (size, size) if settings.grey else (3, size, size)
        self.shown = (name,)
        self.bad = bad
        self.decoder = Decoder(size, settings.grey, upright=settings.upright)
        self.types = {name: shards.kinds[name]}

    def encode(self, batch: Batch, start: int, keep: Bools) -> np.ndarray:
        """Decode the images of a batch, (kept rows, *shape) uint8; bad ones are black."""
        column: Any = batch.columns[self.name]
        if pa.types.is_struct(column.type):
            column = column.field("bytes")
        rows = np.flatnonzero(keep)
        images = np.zeros((len(rows), *self.shape), dtype=np.uint8)
        for number, row in enumerate(rows.tolist()):
            content = column[row].as_py()
            try:
                if not content:
                    raise BadImageError("is missing: the cell has no bytes")
                images[number] = self.decoder.decode(content)[0]
            except BadImageError as error:
                is_bad = np.arange(batch.num_rows) == row
                cells = rules.Cells(name=self.name, is_bad=is_bad, problem=str(error))
                rules.keep(rules.IMAGES, cells, self.bad, batch, start)
        return images

    def finish(self, path: Path, sums: ByteSums, root: Path) -> tuple[np.ndarray, np.ndarray]:
        """The mean and the deviation of each channel, divided twice, which rounds otherwise than a scale."""
        count = max(sums.count, 1)
        mean = np.array([value / count for value in sums.sums])
        both = zip(sums.sums, sums.squares, strict=True)
        variance = np.array([(count * square - value**2) / count**2 for value, square in both])
        return mean / 255, np.where(variance > 0, np.sqrt(variance), 255.0) / 255
