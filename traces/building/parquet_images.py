"""Images that are values of a Parquet column, read in order, a few rows at a time."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from emulator.arrays import Ints
from emulator.errors import DataFileError
from traces.building.pixels import Encoded, FileRows

_BUFFER = 2**20


class ParquetImages(FileRows):
    """The bytes of images in the column `what` of several files.

    Files are not read whole: of a row group, pages are read one after the other.
    """

    in_order = True

    def stream_file(self, file: int, rows: Ints) -> Iterator[Encoded]:
        path = self.root / self.names[file]
        try:
            reader = pq.ParquetFile(path, buffer_size=_BUFFER)
            sizes = [reader.metadata.row_group(group).num_rows for group in range(reader.num_row_groups)]
            starts, wanted = np.cumsum([0, *sizes]), set(rows.tolist())
            for group in np.unique(np.searchsorted(starts, rows, side="right") - 1).tolist():
                row = int(starts[group])
                # One by one: a few bytes may unpack to hundreds of megabytes each.
                for batch in reader.iter_batches(1, [group], [self.what], use_threads=False):
                    for value in batch.column(0):
                        if row in wanted:
                            yield value.as_py() or b""
                        row += 1
        except (pa.ArrowException, OSError, EOFError, zlib.error, ValueError, IndexError) as error:
            reason = " ".join(str(error).split())[:200]
            raise DataFileError(path, f"cannot be read as parquet ({reason})") from error
