"""Who takes part: the completed visits of each client, and how unequally they are spread over the fleet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from emulator.arrays import NO_IDS, Floats, Ints
from emulator.errors import InputError
from experiments.results.reading.clusters_in_force import num_clients
from experiments.results.reading.run_directory import ReportedRun
from experiments.results.statistics.comparisons import Run, once


@dataclass(frozen=True)
class CompletedVisits:
    """The completed visits of a run, in the order of its rounds.

    NOTE: `clients` has four bytes a visit, since tables of many runs keep those of every run.

    Attributes:
        closed_s: (n,) when each round closed, ascending.
        ends: (n + 1,) how many visits were completed before each round, and in all.
        clients: (visits,) the client of each, 32 bits.
        num_clients: The number of clients of the run; 0 if its log does not tell it.
    """

    closed_s: Floats
    ends: Ints
    clients: Ints
    num_clients: int

    def by_client(self, horizon_s: float) -> Ints:
        """(N,) how many visits each client completed in the rounds that closed by the horizon."""
        rounds = np.searchsorted(self.closed_s, horizon_s, side="right")
        return np.bincount(self.clients[: self.ends[rounds]], minlength=self.num_clients).astype(np.int64)


@once
def completed_visits(run: ReportedRun) -> CompletedVisits:
    """The completed visits of a run, from its log.

    Raises InputError if the log has a client that the run does not have.
    """
    completed, count = [record.completed for record in run.records], num_clients(run)
    clients = ids_of(run, completed, count) if count else NO_IDS
    return CompletedVisits(
        np.array([record.closed_s for record in run.records], dtype=np.float64),
        np.cumsum([0, *(len(ids) if count else 0 for ids in completed)], dtype=np.int64),
        clients.astype(np.int32),
        count,
    )


def visits_by_client(run: Run) -> Ints:
    """(N,) how many visits each client completed by the horizon; empty if N is not known."""
    return completed_visits(run.log).by_client(run.horizon.horizon_s)


def ids_of(run: ReportedRun, by_round: Sequence[Sequence[int]], count: int) -> Ints:
    """The clients in these lists, one after the other; InputError if one is not among the `count`."""
    ids = np.concatenate([NO_IDS, *(np.array(clients, dtype=np.int64) for clients in by_round)])
    outside = ids[(ids < 0) | (ids >= count)]
    if len(outside):
        raise InputError(
            f"arm {run.arm!r}, seed {run.seed}: its log is damaged, client {outside[0]} is not one of the "
            f"{count}"
        )
    return ids


def share_without(visits: Ints) -> float | None:
    """The share of the clients without a visit (N,); None without clients.

    >>> share_without(np.array([3, 0, 1, 0])), share_without(np.array([], dtype=int))
    (0.5, None)
    """
    return float(np.mean(visits == 0)) if len(visits) else None


def share_of_busiest_tenth(visits: Ints) -> float | None:
    """The share of the visits (N,) that are of the ceil(N / 10) clients with most; None without visits.

    Which of several clients with as many belong to them does not change it.

    >>> share_of_busiest_tenth(np.array([3, 0, 1, 0])), share_of_busiest_tenth(np.full(20, 7))
    (0.75, 0.1)
    """
    total, count = int(visits.sum()), -(-len(visits) // 10)
    return int(np.sort(visits)[-count:].sum()) / total if total else None


def effective_number(visits: Ints) -> float | None:
    """The inverse Simpson index of visits (N,), 1 / sum p^2 with the share p of each client; None without.

    It is k if k clients have equally many and the others none (E. H. Simpson, Measurement of Diversity,
    Nature 163, 1949; M. O. Hill, Diversity and Evenness, Ecology 54, 1973, as N_2). If each visit is of a
    client drawn by lot, v of them for each client on average, it is about N v / (v + 1).

    >>> effective_number(np.array([3, 0, 1, 0])), effective_number(np.array([2, 2, 2, 0]))
    (1.6, 3.0)
    """
    total = int(visits.sum())
    return total**2 / int(visits @ visits) if total else None
