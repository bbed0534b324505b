"""Counts of labels in a trace folder: its rows as they are, before a run takes some of them."""

from __future__ import annotations

import numpy as np

from emulator.arrays import Ints
from emulator.errors import DataFileError
from traces.arrivals import SPLITS
from traces.files import ARRIVALS, TraceFolder
from traces.files.windows import Windows
from traces.inspection.observations import Observations, counted

MOST_WINDOWS = 2**20
"""Most windows that are counted, also empty ones."""


def folder_observations(folder: TraceFolder, windows: Windows) -> dict[str, Observations]:
    """Count the rows of a trace folder, those of training and of tests apart if it has a column `split`.

    Args:
        folder: the trace folder.
        windows: the windows of its rows; those that are not kept are left out.

    Returns:
        The counts by split, or as "observed" if the folder leaves the split to be drawn. Clients and windows
        are the same in all of them; a client without a row that is kept has none.

    Raises:
        DataFileError: there are more than `MOST_WINDOWS` windows.
    """
    rows = folder.rows
    first = int(windows.window.min(where=windows.kept, initial=np.iinfo(windows.window.dtype).max))
    last = int(windows.window.max(where=windows.kept, initial=np.iinfo(windows.window.dtype).min))
    if last - first >= MOST_WINDOWS:
        raise DataFileError(
            folder.path / ARRIVALS,
            f"its rows span {last - first + 1} windows; at most {MOST_WINDOWS} are counted (a wider "
            f"--step-width makes fewer)",
        )
    parts = {"observed": windows.kept}
    if rows.split is not None:
        parts = {split: windows.kept & (rows.split == number) for number, split in enumerate(SPLITS)}
    return {
        name: _counted(folder, windows.window, np.flatnonzero(of), first, last) for name, of in parts.items()
    }


def _counted(folder: TraceFolder, window: Ints, chosen: Ints, first: int, last: int) -> Observations:
    rows = folder.rows
    return counted(
        rows.client[chosen].astype(np.int64),
        window[chosen].astype(np.int64) - first,
        rows.label[chosen].astype(np.int64),
        None if rows.count is None else rows.count[chosen].astype(np.float64),
        shape=(len(rows.clients), last - first + 1, len(rows.classes)),
        first_step=first,
        client_names=tuple(map(str, rows.clients)),
        label_names=rows.classes,
    )
