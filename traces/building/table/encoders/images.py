"""A column of images: encoded files in the cells of a table, as Hugging Face's Parquet shards have them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from emulator.arrays import Bools
from emulator.storage.reading.shards import Batch, Shards
from traces.building.bad_rows import BadRows
from traces.building.decoding import BadImageError, Decoder, without_warnings
from traces.building.table.settings import TableSettings

ROWS = 64
"""Images in memory at once."""


class Images:
    """Encodes a column of images: `shape` uint8 each, resized without regard to the aspect ratio.

    The shape is (3, size, size), or (size, size) if grey.
    """

    rows = ROWS

    def __init__(self, shards: Shards, name: str, settings: TableSettings, bad: BadRows) -> None:
        size = settings.size
        self.name = name
        self.shape = (size, size) if settings.grey else (3, size, size)
        self.shown = (name,)
        self.bad = bad
        self.decoder = Decoder(size, settings.grey, upright=settings.upright)
        self.types = {name: shards.kinds[name]}

    def encode(self, batch: Batch, start: int, keep: Bools) -> np.ndarray:
        """Decode the images of a batch.

        Args:
            batch: the rows, of which the first is number `start` of the table.
            start: number of the first row.
            keep: (rows,) which rows are used; others are not decoded.

        Returns:
            (kept rows, *shape) uint8; bad images, if they may be left out, are black.

        Raises:
            DataFileError: an image is missing or damaged.
        """
        column: Any = batch.columns[self.name]
        if pa.types.is_struct(column.type):
            column = column.field("bytes")
        rows = np.flatnonzero(keep)
        images = np.zeros((len(rows), *self.shape), dtype=np.uint8)
        with without_warnings():
            for number, row in enumerate(rows.tolist()):
                content = column[row].as_py()
                try:
                    if not content:
                        raise BadImageError("is missing: the cell has no bytes")
                    images[number] = self.decoder.decode(content)[0]
                except BadImageError as error:
                    is_bad = np.zeros(batch.num_rows, dtype=np.bool_)
                    is_bad[row] = True
                    self.bad.refuse(batch, start, is_bad, partial(_problem, f"{self.name} {error}"))
        return images


def _problem(problem: str, row: int) -> str:
    return problem
