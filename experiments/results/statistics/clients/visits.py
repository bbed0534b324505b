"""The visits of a run as numpy columns, and the phases of a visit cut at the instant at which it ended."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import pyarrow as pa

from emulator.arrays import Bools, Floats, Ints

PHASES = ("requests", "download", "compute", "upload")
"""The phases of a visit, in order."""

NO_DEVICE = -1
"""Stands for the device row of a client whose profile is no table."""


@dataclass(frozen=True)
class VisitColumns:
    """The visits of a run, in columns (n,) sorted by round.

    Where a round has one dispatch and one server step, those of a round are sorted by visit.
    Durations of phases are as planned at dispatch, in virtual seconds; `end_s` is when the visit ended.
    """

    round: Ints
    visit: Ints
    client: Ints
    device: Ints
    dispatched_s: Floats
    phases_s: Floats  # (n, phases)
    end_s: Floats
    completed: Bools
    dropped: Bools
    crashed: Bools

    @classmethod
    def from_table(cls, table: pa.Table) -> VisitColumns:
        """The columns of a table with the layout of `visits.parquet`.

        >>> row = {"round": 0, "visit": 0, "client": 7, "device": None, "dispatched_s": 1.0, "end_s": 11.0}
        >>> row |= {"requests_s": 0.0, "download_s": 2.0, "compute_s": 5.0, "upload_s": 3.0}
        >>> row |= {"outcome": "completed", "crashed": False}
        >>> visits = VisitColumns.from_table(pa.Table.from_pylist([row]))
        >>> visits.client.tolist(), visits.device.tolist(), visits.completed.tolist()
        ([7], [-1], [True])
        """
        outcome = table.column("outcome").to_numpy()
        return cls(
            round=_ints(table, "round"),
            visit=_ints(table, "visit"),
            client=_ints(table, "client"),
            device=_ints(table, "device"),
            dispatched_s=_floats(table, "dispatched_s"),
            end_s=_floats(table, "end_s"),
            phases_s=np.stack([_floats(table, f"{phase}_s") for phase in PHASES], axis=1),
            completed=np.equal(outcome, "completed").astype(np.bool_),
            dropped=np.equal(outcome, "dropped").astype(np.bool_),
            crashed=table.column("crashed").to_numpy().astype(np.bool_),
        )

    def __len__(self) -> int:
        """Number of visits."""
        return len(self.visit)

    def take(self, rows: Ints) -> VisitColumns:
        """The given rows, in that order."""
        return VisitColumns(**{column.name: getattr(self, column.name)[rows] for column in fields(self)})

    def of_round(self, number: int) -> VisitColumns:
        """The visits of one round."""
        first, last = np.searchsorted(self.round, [number, number + 1])
        return self.take(np.arange(first, last))


def cut_phases(visits: VisitColumns) -> Floats:
    """(n, phases) virtual seconds that each visit spent in each phase until it ended.

    A phase that had begun when the visit ended counts up to then, a later one not at all. Rows add up to
    `end_s - dispatched_s`: what rounding leaves over is in the upload of completed visits.

    >>> from experiments.results.statistics.clients.visits import VisitColumns
    >>> one, no = np.zeros(1, dtype=int), np.zeros(1, dtype=bool)
    >>> planned_s = np.array([[1.0, 2.0, 5.0, 3.0]])
    >>> visits = VisitColumns(one, one, one, one, np.zeros(1), planned_s, np.array([4.0]), no, ~no, no)
    >>> cut_phases(visits)
    array([[1., 2., 1., 0.]])
    """
    elapsed_s = (visits.end_s - visits.dispatched_s)[:, None]
    begun_s = np.concatenate([np.zeros_like(elapsed_s), visits.phases_s.cumsum(axis=1)[:, :-1]], axis=1)
    spent_s = np.clip(elapsed_s - begun_s, 0.0, visits.phases_s)
    spent_s[visits.completed, -1] = (elapsed_s[:, 0] - spent_s[:, :-1].sum(axis=1))[visits.completed]
    cut_s: Floats = np.maximum(spent_s, 0.0)
    return cut_s


def _ints(table: pa.Table, name: str) -> Ints:
    """A column of whole numbers, `NO_DEVICE` where it is null."""
    # Filled first: in numpy, a column with nulls is of floats, which do not hold every whole number.
    filled: Ints = table.column(name).cast(pa.int64()).fill_null(pa.scalar(NO_DEVICE, pa.int64())).to_numpy()
    return filled


def _floats(table: pa.Table, name: str) -> Floats:
    return table.column(name).to_numpy().astype(np.float64)
