"""The clients whose visits closed rounds, and how slow their devices are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from emulator.arrays import Floats
from emulator.errors import InputError
from experiments.results.statistics.clients.visits import VisitColumns
from experiments.results.statistics.waiting import NOBODY, Waiting


@dataclass(frozen=True)
class Closer:
    """A client of one seed that closed rounds.

    `slowness` is the median of all clients of that seed divided by the client's own speed, so that 2 is half
    as fast as the median device: of computing, of downloading and of uploading; NaN if it was not recorded.
    """

    seed: int
    client: int
    device: int
    rounds: int
    share: float  # of the rounds of this seed
    waited_s: float  # virtual seconds from dispatch to the end, summed over these rounds
    slowness: Sequence[float]


def closers(seed: int, waited: Waiting, visits: VisitColumns, clients: pa.Table | None) -> list[Closer]:
    """The clients that closed rounds of a run, those that closed most rounds first, then by client.

    Args:
        seed: The seed of the run.
        waited: What its rounds waited for, as of these visits.
        visits: Its visits.
        clients: The table with the layout of `clients.parquet`; None if it was not recorded.

    Raises:
        InputError: A visit is of a client that is not in the table.
    """
    rows = waited.closing[waited.closing != NOBODY]
    ids, first, inverse = np.unique(visits.client[rows], return_index=True, return_inverse=True)
    rounds = np.bincount(inverse, minlength=len(ids))
    out_s = visits.end_s[rows] - visits.dispatched_s[rows]
    waited_s = np.bincount(inverse, weights=out_s, minlength=len(ids))
    if clients is not None and len(ids) and not (ids[0] >= 0 and ids[-1] < len(clients)):
        unknown = ids[0] if ids[0] < 0 else ids[-1]
        raise InputError(f"a visit is of client {unknown}, and {len(clients)} clients are recorded")
    slowness = np.full((len(ids), 3), np.nan) if clients is None else slowness_of(clients)[ids]
    return [
        Closer(
            seed=seed,
            client=int(ids[row]),
            device=int(visits.device[rows[first[row]]]),
            rounds=int(rounds[row]),
            share=float(rounds[row] / len(waited.round)),
            waited_s=float(waited_s[row]),
            slowness=slowness[row].tolist(),
        )
        for row in np.lexsort((ids, -rounds))
    ]


def slowness_of(clients: pa.Table) -> Floats:
    """(N, 3) how many times slower than the median client each one computes, downloads and uploads.

    >>> speeds = {"seconds_per_sample": [1.0, 2.0, 8.0], "download_bytes_per_s": [10.0, 5.0, 1.0]}
    >>> slowness_of(pa.table({**speeds, "upload_bytes_per_s": [2.0, 2.0, 2.0]})).tolist()
    [[0.5, 0.5, 1.0], [1.0, 1.0, 1.0], [4.0, 5.0, 1.0]]
    """
    seconds = np.asarray(clients.column("seconds_per_sample"), dtype=np.float64)
    columns = [seconds / np.median(seconds)]
    for name in ("download_bytes_per_s", "upload_bytes_per_s"):
        bytes_per_s = np.asarray(clients.column(name), dtype=np.float64)
        columns.append(np.median(bytes_per_s) / bytes_per_s)
    return np.stack(columns, axis=1)


def most_often(rows: Sequence[Closer], most: int) -> list[Closer]:
    """The `most` clients that closed most rounds; of equals, the one waited for longest, then by seed.

    Clients that closed a single round are left out: of many clients, some one has to.
    """
    again = [row for row in rows if row.rounds > 1]
    return sorted(again, key=lambda row: (-row.rounds, -row.waited_s, row.seed, row.client))[:most]
