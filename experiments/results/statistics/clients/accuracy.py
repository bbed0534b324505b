"""The accuracy of each client of a run at the horizon, where `round.log_client_accuracy` logs it.

Defines the figures of one run and of a pair of runs; knows nothing of intervals, tables or pages.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from emulator.arrays import Floats, Ints
from emulator.errors import InputError
from experiments.results.reading.clusters_in_force import num_clients
from experiments.results.reading.run_directory import ReportedRun

DECILES = tuple(tenth / 10 for tenth in range(1, 10))
"""The shares of clients whose accuracy is at or below a decile."""


@dataclass(frozen=True)
class ClientAccuracy:
    """One evaluation of a run, client by client; all arrays have shape (n,), in ascending order of ids.

    Attributes:
        clients: The ids of the clients that were scored.
        accuracy: The accuracy of each on its own test samples. Clients without test samples, or without a
            model, are left out.
        clusters: The cluster label of each at the end of that round, -1 if it is in none; None if the log
            does not give it.
        labels: The label of which each held most training samples, -1 if it held none; None if the
            log does not give it.
        left_out: How many of the clients to be scored had no test samples or no model.
    """

    clients: Ints
    accuracy: Floats
    clusters: Ints | None
    labels: Ints | None
    left_out: int

    def quantiles(self, shares: Floats) -> Floats:
        """The quantiles of the accuracies at `shares`, as `numpy.quantile` has them (linear)."""
        quantiles: Floats = np.quantile(self.accuracy, shares)
        return quantiles

    @cached_property
    def mean(self) -> float:
        """The mean over clients of this evaluation, not smoothed."""
        return float(np.sort(self.accuracy).mean())  # sorted: the sum does not depend on the order of clients

    @cached_property
    def worst_tenth(self) -> float:
        """The mean accuracy of the tenth of clients with the lowest one: of ceil(n / 10), so at least one.

        Which of several clients with the same accuracy belong to the tenth does not change the mean.
        """
        count = -(-len(self.accuracy) // 10)
        return float(np.sort(self.accuracy)[:count].mean())

    def gains_over(self, reference: ClientAccuracy) -> Floats:
        """The accuracy of each client minus that in `reference`, of the clients that both have scored."""
        _, ours, theirs = np.intersect1d(
            self.clients, reference.clients, assume_unique=True, return_indices=True
        )
        gains: Floats = self.accuracy[ours] - reference.accuracy[theirs]
        return gains


@dataclass(frozen=True)
class WorseOff:
    """How clients are better or worse off than under the reference arm, client by client in one seed.

    `worse`, `better` and `equal` are shares that add up to 1; `mean_loss` is the mean loss of accuracy of the
    clients that are worse off, positive; None if there are none.
    """

    worse: float
    better: float
    equal: float
    mean_loss: float | None


def worse_off(gains: Floats) -> WorseOff | None:
    """The shares of clients that lose, gain, and keep their accuracy; None without clients.

    >>> worse_off(np.array([-0.5, 0.0, 0.25, -0.25]))
    WorseOff(worse=0.5, better=0.25, equal=0.25, mean_loss=0.375)
    """
    if not len(gains):
        return None
    losses = -np.sort(gains[gains < 0])
    worse, better = len(losses) / len(gains), float(np.count_nonzero(gains > 0)) / len(gains)
    equal = float(np.count_nonzero(gains == 0)) / len(gains)
    return WorseOff(worse, better, equal, float(losses.mean()) if len(losses) else None)


def at_the_horizon(run: ReportedRun, horizon_s: float) -> ClientAccuracy | None:
    """The last evaluation at or before the horizon; None if there is none with logged accuracies.

    Raises InputError if the log is damaged.
    """
    return next(iter(_last_evaluations(run, horizon_s, 1)), None)


def gains_since_the_evaluation_before(run: ReportedRun, horizon_s: float) -> Floats | None:
    """How the accuracy of each client changed between the last two evaluations by the horizon.

    None if there are no two. Nothing tells two arms apart here: this is how much the accuracy of one client
    changes from one evaluation to the next within one arm.
    """
    last = _last_evaluations(run, horizon_s, 2)
    return last[0].gains_over(last[1]) if len(last) == 2 else None


def _last_evaluations(run: ReportedRun, horizon_s: float, most: int) -> list[ClientAccuracy]:
    """At most `most` evaluations by the horizon that scored a client, the last one first."""
    found: list[ClientAccuracy] = []
    for position in range(len(run.records) - 1, -1, -1):
        record = run.records[position]
        if len(found) == most:
            break
        if record.client_accuracy is None or record.closed_s > horizon_s:
            continue
        accuracy = record.client_accuracy.astype(np.float64)
        ids = run.header.get("scored_clients")
        clients = np.arange(len(accuracy)) if ids is None else np.asarray(ids, dtype=np.int64)
        if len(clients) != len(accuracy):
            raise InputError(
                f"arm {run.arm!r}, seed {run.seed}: its log is damaged, client_accuracy is of "
                f"{len(accuracy)} clients, scored_clients of {len(clients)}"
            )
        scored = np.isfinite(accuracy)
        if not scored.any():
            continue
        members, labels = _members_at(run, position), record.client_label
        if 0 < (count := num_clients(run)) <= clients.max():
            raise InputError(
                f"arm {run.arm!r}, seed {run.seed}: its log is damaged, client {clients.max()} is scored, "
                f"and there are {count}"
            )
        found.append(
            ClientAccuracy(
                clients[scored],
                accuracy[scored],
                None if members is None else members[clients[scored]].astype(np.int64),
                None if labels is None else np.asarray(labels)[scored].astype(np.int64),
                int(np.count_nonzero(~scored)),
            )
        )
    return found


def _members_at(run: ReportedRun, position: int) -> Ints | None:
    """The cluster of each client at the end of the round of that position; None before the first known."""
    earlier = run.records[position::-1]
    return next((record.members for record in earlier if record.members is not None), None)
