"""Images that are values of a Parquet column, read in order, a few rows at a time."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from emulator.arrays import Ints
from emulator.errors import DataFileError
from traces.building.pixels import Encoded, Pixels

_BUFFER = 2**20


class ParquetImages(Pixels):
    """The bytes of images in one column of several files: image i is the i-th row of all files.

    Files are not read whole: of a row group, pages are read one after the other.
    """

    in_order = True

    def __init__(self, root: Path, names: Sequence[str], rows: Ints, column: str) -> None:
        """The files `names` below `root`, with `rows` (files,) rows each, and the column with the images."""
        self.root = root
        self.names = names
        self.starts = np.concatenate(([0], np.cumsum(rows)))
        self.column = column

    def stream(self, images: Ints) -> Iterator[Encoded]:
        file = np.searchsorted(self.starts, images, side="right") - 1
        for number in np.unique(file).tolist():
            yield from self._stream_file(number, images[file == number] - self.starts[number])

    def name(self, image: int) -> str:
        file = int(np.searchsorted(self.starts, image, side="right")) - 1
        return f"{self.root / self.names[file]}, row {image - int(self.starts[file]) + 1}"

    def identity(self) -> Iterator[bytes]:
        yield self.column.encode()
        for name, start in zip(self.names, self.starts.tolist(), strict=False):
            yield f"{name}\0{start}\0".encode("utf-8", "surrogateescape")

    def _stream_file(self, number: int, rows: Ints) -> Iterator[Encoded]:
        """The images in the rows (k,), ascending, of one file."""
        path = self.root / self.names[number]
        try:
            reader = pq.ParquetFile(path, buffer_size=_BUFFER)
            sizes = [reader.metadata.row_group(group).num_rows for group in range(reader.num_row_groups)]
            ends = np.cumsum(sizes)
            groups = np.unique(np.searchsorted(ends, rows, side="right")).tolist()
            for group in groups:
                first = int(ends[group]) - sizes[group]
                # One by one: a few bytes may unpack to hundreds of megabytes each.
                for batch in reader.iter_batches(
                    batch_size=1, row_groups=[group], columns=[self.column], use_threads=False
                ):
                    [values] = batch.columns
                    wanted = rows[(rows >= first) & (rows < first + len(values))]
                    for row in wanted.tolist():
                        yield values[row - first].as_py() or b""
                    first += len(values)
        except (pa.ArrowException, OSError, EOFError, zlib.error, ValueError, IndexError) as error:
            reason = " ".join(str(error).split())[:200]
            raise DataFileError(path, f"cannot be read as parquet ({reason})") from error
