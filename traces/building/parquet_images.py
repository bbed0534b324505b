"""Images that are values of a Parquet column, read in order, a few rows at a time."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from emulator.arrays import Ints
from emulator.storage.parquet_columns import damage_in_one_line
from emulator.storage.reading.parquet_file import parquet_batches
from traces.building.pixels import Encoded, FileRows


class ParquetImages(FileRows):
    """The bytes of images in the column `what` of several files."""

    in_order = True

    def stream_file(self, file: int, rows: Ints) -> Iterator[Encoded]:
        path, wanted = self.root / self.names[file], set(rows.tolist())
        with damage_in_one_line(path):
            # One by one: a few bytes may unpack to hundreds of megabytes each.
            for batch in parquet_batches(path, {self.what: pa.binary()}, 1, int(rows[0])):
                if batch.first in wanted:
                    [image] = batch.columns[self.what].to_pylist()
                    yield image or b""
