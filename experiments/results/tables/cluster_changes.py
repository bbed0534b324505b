"""Effects of changes of clusters on the clients of an arm, per run: the price of re-clusterings.

`clustering_wall_s` is wall time of whole runs; everything else is up to the horizon. Losses are positive
where accuracy fell; `accuracy_lost_difference_pp` is the loss of the arm minus that of the reference arm, and
None for the reference arm itself. Dips have the other sign, as Fielding's figures do: `reclustering_dip_pp`
is negative where accuracy fell after global re-clusterings (`dips_pp`), averaged over those of a run, and
over the seeds that have one; `reclustering_dip_difference_pp` is that minus the dip of the reference arm in
the same rounds, over those that are counted in both. Re-clusterings come with drift, which lowers accuracy by
itself, and the lowest of ten evaluations is below the mean of ten even if nothing happens. The difference is
without both only as far as the reference arm has as much of either: it should be the same arm without
re-clusterings, and not one model. `changed_cluster` is a share of clients, `models_replaced` a number of
clients.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from emulator.storage.runlog import RoundRecord
from experiments.results.reading.clusters_in_force import clusters_in_force
from experiments.results.statistics.comparisons import Run
from experiments.results.statistics.intervals import Estimate, mean_estimate
from experiments.results.statistics.summary import Summary
from experiments.results.tables.quantities import (
    IS_REFERENCE,
    POINTS,
    SHARE,
    WALL,
    Quantity,
    any_measured,
    beside_reference,
    gain,
    means,
    over_seeds,
    quantity,
)
from experiments.results.tables.table import InTerminal, Place, Table

DIP_EVALUATIONS = 10

NOTE = (
    "A re-clustering by itself costs no byte and no virtual second in this emulator: this table shows what "
    "fewer of them buy. Clients that change cluster: the share of all clients whose cluster at the end of a "
    "data step is another one than before the step, averaged over the data steps after the first; through a "
    "re-clustering, clusters are matched by the largest overlap. Accuracy lost is the accuracy at the last "
    "evaluation before a data step minus that at the first one in it or after it, averaged over data steps; "
    "the largest loss is the largest of them in a run. Models replaced counts clients whose model was "
    "replaced by an assignment: each client that moved, and all clients at every global re-clustering, since "
    "models are mixed and each client needs a new one. Clustering is wall time of the coordinator over whole "
    "runs."
)


DIP_NOTE = (
    " Dip after re-clustering is the lowest of the next ten evaluations minus the last one before a global "
    "re-clustering (negative: a dip), averaged over those that have all eleven, and over the seeds with such "
    "a one; its difference is from the reference arm's in the same rounds."
)


def says_something(summary: Summary) -> bool:
    """Whether more than one arm had several clusters, and a client of any arm changed cluster."""
    clustered = sum(
        any(len(record.clusters) > 1 for run in arm.measured for record in run.records)
        for arm in summary.rows
    )
    return clustered > 1 and any(share for row in summary.rows for share in row["changed_cluster"].per_seed)


def share_that_changes(records: Sequence[RoundRecord]) -> float | None:
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


def dips_pp(records: Sequence[RoundRecord], rounds: Sequence[int]) -> list[float | None]:
    """The dip after each of `rounds`, in percentage points; negative where accuracy fell.

    That is the lowest of the next ten evaluations minus the last before. The last before is that of an
    earlier round; the next ten begin with the round itself, as models are mixed when it opens, and evaluated
    when it has trained them. Another re-clustering within the ten does not cut them short, so that dips are
    of equally many evaluations however often a rule clusters; a low that two windows share counts in both.
    None if there is no evaluation before, or fewer than ten from the round on: the lowest of fewer would be
    higher.
    """
    evaluated = [(record.round, record.accuracy) for record in records if record.accuracy is not None]
    numbers, accuracies = [number for number, _ in evaluated], [accuracy for _, accuracy in evaluated]
    dips: list[float | None] = []
    for round_ in rounds:
        first = bisect_left(numbers, round_)
        after = accuracies[first : first + DIP_EVALUATIONS]
        counts = first > 0 and len(after) == DIP_EVALUATIONS
        dips.append(100.0 * (min(after) - accuracies[first - 1]) if counts else None)
    return dips


def mean_dip_pp(run: Run) -> float | None:
    """The mean dip after the global re-clusterings of a run; None if none of them counts."""
    return _mean([dip for dip in dips_pp(run.records, _reclusterings(run)) if dip is not None])


def mean_dip_difference_pp(run: Run, base: Run) -> float | None:
    """The mean over the re-clusterings of `run` of its dip minus that of `base` in the same round.

    Rounds and not virtual times are the same, since data arrive by rounds.
    """
    rounds = _reclusterings(run)
    pairs = zip(dips_pp(run.records, rounds), dips_pp(base.records, rounds), strict=True)
    return _mean([dip - other for dip, other in pairs if dip is not None and other is not None])


def _reclusterings(run: Run) -> list[int]:
    return [record.round for record in run.records if record.reclustered]


def num_replaced(records: Sequence[RoundRecord]) -> float | None:
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


def _estimate_of_dips(per_seed: Sequence[float | None]) -> Estimate:
    """As `mean_estimate`, over the seeds that have a dip: one that was never clustered anew has none."""
    found = mean_estimate([value for value in per_seed if value is not None])
    return replace(found, per_seed=list(per_seed))


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


@means(
    "share of clients whose cluster at the end of a data step is another one than before it, averaged over "
    "the data steps after the first",
    "if there is no second data step by the horizon",
)
@quantity(SHARE, "clients that change cluster per step")
def changed_cluster(run: Run) -> float | None:
    """The share of clients whose cluster is another one than before a data step."""
    return share_that_changes(run.records)


@quantity("clients", "models replaced")
def models_replaced(run: Run) -> float | None:
    """How often a client's model was replaced: at each of its moves, and at each global re-clustering."""
    return num_replaced(run.records)


@quantity(POINTS, "accuracy lost", missing="if no data step lies between two evaluations")
def accuracy_lost_pp(run: Run) -> float | None:
    """Accuracy before a data step minus that after it, averaged over data steps."""
    return _mean(accuracy_losses_pp(run.records))


@quantity(POINTS, "largest loss", missing="as `accuracy_lost_pp`")
def largest_loss_pp(run: Run) -> float | None:
    """The largest of these losses."""
    return max(accuracy_losses_pp(run.records), default=None)


@quantity(WALL, "clustering")
def clustering_wall_s(run: Run) -> float:
    """Time that the coordinator clustered in the whole run."""
    return run.log.timing.cluster_s


def _note(summary: Summary) -> str:
    difference = f" Difference is accuracy lost minus that of {summary.reference_arm}, paired by seed."
    has_dips = any_measured([row["reclustering_dip_pp"] for row in summary.rows])
    return f"{NOTE}{difference if len(summary.rows) > 1 else ''}{DIP_NOTE if has_dips else ''}"


LOST_DIFFERENCE = gain(accuracy_lost_pp, "accuracy_lost_difference_pp", "difference", 1.0).means(
    "that minus the one of the reference arm", f"{IS_REFERENCE}, and as `accuracy_lost_pp`"
)
DIP = (
    Quantity(
        "reclustering_dip_pp", over_seeds(mean_dip_pp, _estimate_of_dips), POINTS, "dip after re-clustering"
    )
    .if_measured(in_terminal=False)
    .means(
        "lowest of the next ten evaluations minus the last one before a global re-clustering, negative where "
        "accuracy fell, averaged over re-clusterings",
        "if no re-clustering has an evaluation before and ten after it",
    )
)
_DIFFERENCES = beside_reference(mean_dip_difference_pp, _estimate_of_dips)
DIP_DIFFERENCE = (
    Quantity("reclustering_dip_difference_pp", _DIFFERENCES, POINTS, "difference of dips")
    .if_measured(in_terminal=False)
    .means(
        "that minus the one of the reference arm in the same rounds",
        f"{IS_REFERENCE}, and as `reclustering_dip_pp`",
    )
)
QUANTITIES = (
    *(changed_cluster, accuracy_lost_pp, LOST_DIFFERENCE, largest_loss_pp),
    *(DIP, DIP_DIFFERENCE, models_replaced, clustering_wall_s),
)

TABLE = Table(
    title="Changes of clusters",
    place=Place("why", after_figures=True, id="cluster-changes"),
    quantities=QUANTITIES,
    columns=QUANTITIES,
    says_something=says_something,
    note=_note,
    in_terminal=InTerminal("changes of clusters"),
)
