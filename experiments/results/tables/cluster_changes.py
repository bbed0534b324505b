"""What changes of clusters do to the clients of an arm: the price of re-clusterings, and what fewer save.

Computed from logs and timings up to the horizon. Knows nothing of how the table is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from emulator.storage.runlog import RoundRecord
from experiments.results.statistics.clusters_in_force import clusters_in_force
from experiments.results.statistics.horizon import Horizon
from experiments.results.statistics.intervals import (
    Estimate,
    Gain,
    amount_estimate,
    gain_estimate,
    mean_estimate,
    share_estimate,
)
from experiments.results.tables.accuracy_tables import Comparison


@dataclass(frozen=True)
class ClusterChangeRow:
    """How an arm's clients changed cluster, per run, and the accuracy lost as data arrived.

    `clustering_wall_s` is wall time of whole runs; everything else is up to the horizon. Losses are positive
    where accuracy fell; `accuracy_lost_difference_pp` is the loss of the arm minus that of the reference arm,
    and None for the reference arm itself.
    """

    arm: str
    changed_cluster: Estimate  # share of clients, as in `changed_cluster` below
    accuracy_lost_pp: Estimate  # mean of `accuracy_losses_pp`
    accuracy_lost_difference_pp: Gain | None
    largest_loss_pp: Estimate  # largest of `accuracy_losses_pp`
    models_replaced: Estimate  # number of clients, as in `models_replaced` below
    clustering_wall_s: Estimate


def cluster_change_rows(compared: Sequence[Comparison], horizon: Horizon) -> list[ClusterChangeRow]:
    """A row for each comparison, in the same order."""
    num_gains = max(1, len(compared) - 1)
    rows = []
    for arm in compared:
        by_run = [horizon.records(run) for run in arm.runs]
        losses = [accuracy_losses_pp(records) for records in by_run]
        lost = [_mean(of_run) for of_run in losses]
        difference = None
        if not arm.is_reference:
            reference = [_mean(accuracy_losses_pp(horizon.records(item.run))) for item in arm.reference]
            difference = gain_estimate(lost, reference, comparisons=num_gains)
        rows.append(
            ClusterChangeRow(
                arm=arm.arm,
                changed_cluster=share_estimate([changed_cluster(records) for records in by_run]),
                accuracy_lost_pp=mean_estimate(lost),
                accuracy_lost_difference_pp=difference,
                largest_loss_pp=mean_estimate([max(of_run, default=None) for of_run in losses]),
                models_replaced=amount_estimate([models_replaced(records) for records in by_run]),
                clustering_wall_s=amount_estimate([run.timing.cluster_s for run in arm.runs]),
            )
        )
    return rows


def are_worth_a_table(
    rows: Sequence[ClusterChangeRow], compared: Sequence[Comparison], horizon: Horizon
) -> bool:
    """Whether more than one arm had several clusters, and a client of any arm changed cluster."""
    clustered = sum(
        any(len(record.clusters) > 1 for run in arm.runs for record in horizon.records(run))
        for arm in compared
    )
    return clustered > 1 and any(share for row in rows for share in row.changed_cluster.per_seed)


def changed_cluster(records: Sequence[RoundRecord]) -> float | None:
    """The share of all clients whose cluster label is another one at the end of a data step than before it.

    All are those in a cluster at both instants: a client that begins or ceases to hold data has not changed
    cluster. The share is averaged over the data steps after the first; the last one may be cut off by the
    horizon. None if there is no such step or client, or if the log has no clusters. Labels follow the largest
    overlap through re-clusterings, so a cluster that is only rebuilt is no change. A client that leaves its
    cluster and returns within one step has not changed either.
    """
    last = {
        record.step: of_round for record, of_round in zip(records, clusters_in_force(records), strict=True)
    }
    by_step = [last[step] for step in sorted(last)]
    shares = []
    for before, after in pairwise(by_step):
        if before is not None and after is not None:
            both = (before >= 0) & (after >= 0)
            if both.any():
                shares.append(float(np.mean(before[both] != after[both])))
    return _mean(shares)


def accuracy_losses_pp(records: Sequence[RoundRecord]) -> list[float]:
    """The accuracy lost as data arrived, in percentage points; negative where accuracy rose.

    That is the accuracy of the last evaluation before a data step minus that of the first evaluation in it or
    after it. Data steps between the same two evaluations are one loss.
    """
    evaluated = [(record.step, record.accuracy) for record in records if record.accuracy is not None]
    return [
        100.0 * (before - after)
        for (earlier, before), (later, after) in pairwise(evaluated)
        if earlier != later
    ]


def models_replaced(records: Sequence[RoundRecord]) -> float | None:
    """How often a client's model was replaced by an assignment, summed over clients and rounds.

    A client that moves gets another model. A global re-clustering counts for all clients in a cluster: it
    mixes models, so that each of them needs a new one. None if a log with a re-clustering has no clusters.
    """
    total = 0
    for record, members in zip(records, clusters_in_force(records), strict=True):
        total += record.moved
        if record.reclustered:
            if members is None:
                return None
            total += int(np.count_nonzero(members >= 0))
    return float(total)


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None
