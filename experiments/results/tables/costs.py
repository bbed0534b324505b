"""Costs and counts of events of an arm, per run of one seed, up to the horizon.

Amounts of data are in bytes, times in virtual seconds. Quantities that need more words than their names:

* `virtual_time_s` and `wall_s` are of whole runs; `wall_s` is wall time.
* `clusters` is the number of clusters at the horizon, empty ones included.
* `mean_client_distance` is averaged over the rounds that measure it; `final_client_distance` is that of the
  last of these rounds.
* `models_trained_per_client` is the number of models trained and uploaded, per completed visit; what a solver
  sends up besides, or keeps, is allowed for (`solver` of the header). It is exact
  if no packet is lost and every visit completes, and an upper bound otherwise: packets that are sent again
  count, and so do uploads that a drop-out or an abandonment cut short.
* `trained_samples_per_client` is models uploaded for training x local steps x batch size of the arm x the
  gradients that a step takes, plus the samples that an adaptation trained on, in whole samples, divided by
  the number of all clients. Packets that were sent again count, and so do uploads that were cut short, as far
  as they came. Not counted are visits that ended before their upload, although they may have trained, and
  what clients train on request (FlexCFL):
  it is no bound of what was trained, in either direction. None if the log does not have the size of a model,
  or a schedule may set local steps or batch size.
* `adaptation_s_per_client` is the time that a client computes for its adaptation, on average over all
  clients; None without an adaptation.
* `waiting_for_responses_s` is the time from the end of a round to the dispatch of the next one, in which no
  visit is out: the coordinator waits for reports, for responses to client requests, and until enough clients
  are online. None where rounds may have several server steps, as visits are out meanwhile.
* `reclustering_rounds` is a list of rounds for each seed.
* `reclustered_seeds` is the share of seeds with such a round, of arms with a trigger that may not fire.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from emulator.arrays import Floats
from emulator.messages import BYTES_PER_PARAMETER
from emulator.storage.runlog import RoundRecord
from experiments.results.reading.clusters_in_force import num_clients
from experiments.results.reading.run_directory import ReportedRun
from experiments.results.statistics.absorbed import has_steps
from experiments.results.statistics.comparisons import Compared, Comparison, Run, once
from experiments.results.statistics.intervals import (
    Estimate,
    ShareOfSeeds,
    amount_estimate,
    share_of_seeds,
)
from experiments.results.statistics.scales import bytes_scale, count_scale, index_scale, time_scale
from experiments.results.tables.table import (
    Column,
    Happened,
    InManyRuns,
    InTerminal,
    OfRun,
    Place,
    Quantity,
    Table,
    any_measured,
    over_seeds,
)

TRAINED_SAMPLES = (
    "Samples trained per client count models uploaded (also those cut short, or with packets sent again) x "
    "local steps x batch size x gradients of a step, and what adaptations train, over all clients; not "
    "visits that ended before it, nor training on request."
)

NOTE = (
    "Per run of one seed, up to the horizon; virtual time and wall time are those of whole runs. Download "
    "and upload are training traffic; control is reports and client requests with the models that they "
    "need, both ways. Wall time is longer if runs share the machine (--jobs). Clusters are those that "
    "exist at the horizon, also empty ones: what splits, merges and re-clusterings have left. Moves are "
    "clients that changed their cluster one by one. Models trained per visit are what clients uploaded for "
    "training, in models, per completed visit; packets that were sent again and uploads that were cut "
    "short count too, so that it is an upper bound where there were any. Waiting for responses is the "
    "virtual time in which no visit was out: rounds waited for reports, for responses to requests, and "
    "until enough clients were online; n/a where rounds may have several server steps, as visits are out "
    f"meanwhile. {TRAINED_SAMPLES}"
)

RECLUSTERED = Happened("reclustered_seeds", "re-clustered", index_scale, only_if=any_measured)
RECLUSTERINGS = Column("global_reclusterings", "global re-clusterings", count_scale)
CLIENT_DISTANCE = Column("mean_client_distance", "client distance", index_scale, in_terminal=False)
TRAINED = Column("trained_samples_per_client", "samples trained per client", count_scale)
TRAINED_IF_KNOWN = replace(TRAINED, only_if=any_measured)


@once
def reclustered_s(run: ReportedRun) -> Floats:
    """(k,) the virtual times at which the rounds with a global re-clustering closed, ascending."""
    return np.array([record.closed_s for record in run.records if record.reclustered], dtype=np.float64)


@once
def client_distances(run: ReportedRun) -> Floats:
    """(n, 2) when each round with a measurement closed, in virtual seconds, and its mean client distance."""
    found = [
        (record.closed_s, record.mean_client_distance)
        for record in run.records
        if record.mean_client_distance is not None
    ]
    return np.array(found, dtype=np.float64).reshape(-1, 2)


@dataclass(frozen=True)
class Trained:
    """What a run has trained by the end of each round: (n,) arrays, and the number of clients.

    Attributes:
        closed_s: Virtual time at which the round closed, ascending.
        models: Models trained and uploaded; NaN if the size of a model was not logged.
        gradients: The gradients that a local step took: so often was a sample trained on.
        adaptation_samples: Samples that all clients together have trained on for an adaptation.
        num_clients: The number of clients; 0 if the log does not have it.
    """

    closed_s: Floats
    models: Floats
    adaptation_samples: Floats
    num_clients: int
    gradients: int


@once
def trained(run: ReportedRun) -> Trained:
    """What the run has trained, from its log."""
    num_parameters: int | None = run.header.get("num_parameters")
    solver = run.header.get("solver", {"uploads": 1.0, "gradients": 1})
    model_bytes = math.nan
    if num_parameters is not None:
        model_bytes = float(BYTES_PER_PARAMETER * num_parameters) * solver["uploads"]
    return Trained(
        np.array([record.closed_s for record in run.records], dtype=np.float64),
        np.array([record.upload_bytes for record in run.records], dtype=np.float64) / model_bytes,
        np.array([record.adaptation_samples or 0.0 for record in run.records], dtype=np.float64),
        num_clients(run),
        solver["gradients"],
    )


def _trained_samples_per_client(arm: Comparison, compared: Compared) -> Estimate:
    per_visit = None if arm.configured is None else arm.configured.samples_per_visit
    return amount_estimate([_samples_per_client(run, per_visit) for run in arm.measured])


def _samples_per_client(run: Run, per_visit: float | None) -> float | None:
    """The samples trained per client up to the horizon, with so many per model and visit; None if unknown."""
    found = trained(run.log)
    rounds = int(np.searchsorted(found.closed_s, run.horizon.horizon_s, side="right"))
    return samples_per_client(found, rounds, per_visit)


def samples_per_client(found: Trained, rounds: int, per_visit: float | None) -> float | None:
    """The samples trained per client in the first so many rounds of a run; None if unknown.

    `per_visit` is how many a visit trains a model on. The sum over clients is a whole number: a part of an
    upload counts as so many samples, rounded.
    """
    if not found.num_clients:
        return None
    if not rounds:
        return 0.0
    models, adapted = found.models[rounds - 1], found.adaptation_samples[rounds - 1]
    per_model = math.nan if per_visit is None else per_visit * found.gradients
    federated = 0.0 if models == 0 else models * per_model
    samples = float(federated + adapted)
    return round(samples) / found.num_clients if math.isfinite(samples) else None


def _adaptation_s_per_client(run: Run) -> float | None:
    clients = num_clients(run.log)
    if not run.records or not clients or (total_s := run.records[-1].adaptation_s) is None:
        return None
    return total_s / clients


def global_reclusterings(run: Run) -> float:
    """The number of global re-clusterings up to the horizon."""
    return float(np.count_nonzero(reclustered_s(run.log) <= run.horizon.horizon_s))


def reclustered_seeds(arm: Comparison, compared: Compared) -> ShareOfSeeds | None:
    """The share of the seeds in which all clients were clustered anew; None for an arm without a trigger."""
    if not arm.has_trigger:
        return None
    return share_of_seeds([global_reclusterings(run) > 0 for run in arm.measured])


def mean_client_distance(run: Run) -> float | None:
    """The mean client distance, averaged over the rounds up to the horizon that have it; None without."""
    distances = _client_distances(run)
    return float(np.mean(distances)) if len(distances) else None


def _final_client_distance(run: Run) -> float | None:
    distances = _client_distances(run)
    return float(distances[-1]) if len(distances) else None


def _client_distances(run: Run) -> Floats:
    closed_s, distances = client_distances(run.log).T
    found: Floats = distances[closed_s <= run.horizon.horizon_s]
    return found


def _models_trained_per_client(run: Run) -> float | None:
    """Models uploaded for training per completed visit.

    None if no visit completed, or if the header of the log does not have the number of parameters.
    """
    completed = sum(len(record.completed) for record in run.records)
    models = float(trained(run.log).models[len(run.records) - 1]) if completed else math.nan
    return models / completed if math.isfinite(models) else None


def _waiting_s(run: Run) -> float | None:
    """The virtual seconds from the end of each round to the dispatch of the next one, when no visit is out.

    The first round counts from its opening. None if visits may be out then.
    """
    if has_steps(run.records):
        return None
    ends = [record.closed_s for record in run.records]
    starts = [record.opened_s for record in run.records[:1]] + ends
    return math.fsum(record.dispatched_s - end for record, end in zip(run.records, starts, strict=False))


def _amount(of_run: OfRun) -> Quantity:
    return over_seeds(of_run, amount_estimate)


def _total(of_round: Callable[[RoundRecord], int]) -> Quantity:
    """A number that is counted round by round: its sum over the rounds of each run."""
    return _amount(lambda run: float(sum(map(of_round, run.records))))


def _last(of_round: Callable[[RoundRecord], float]) -> Quantity:
    """A number that is counted from the start of the run: its value in the last round, or 0."""
    return _amount(lambda run: of_round(run.records[-1]) if run.records else 0.0)


def _reclustering_rounds(run: Run) -> list[int]:
    return [record.round for record in run.records if record.reclustered]


TABLE = Table(
    title="Costs",
    place=Place("why", after_figures=True),
    quantities={
        "rounds": _total(lambda record: 1),
        "global_reclusterings": _amount(global_reclusterings),
        "mean_client_distance": _amount(mean_client_distance),
        "final_client_distance": _amount(_final_client_distance),
        "download_bytes": _last(lambda record: record.download_bytes),
        "upload_bytes": _last(lambda record: record.upload_bytes),
        "control_bytes": _last(lambda record: record.control_bytes),
        "models_sent": _last(lambda record: record.models_sent),
        "models_trained_per_client": _amount(_models_trained_per_client),
        "trained_samples_per_client": _trained_samples_per_client,
        "adaptation_s_per_client": _amount(_adaptation_s_per_client),
        "waiting_for_responses_s": _amount(_waiting_s),
        "clusters": _last(lambda record: float(len(record.clusters))),
        "moves": _total(lambda record: record.moved),
        "dropouts": _total(lambda record: len(record.dropped)),
        "abandoned": _total(lambda record: record.abandoned),
        "crashed_visits": _total(lambda record: len(record.crashed)),
        "rejected_updates": _total(lambda record: len(record.rejected)),
        "nonfinite_reports": _total(lambda record: record.nonfinite_reports),
        "virtual_time_s": _amount(lambda run: run.log.records[-1].closed_s),
        "wall_s": _amount(lambda run: run.log.timing.wall_s),
        "reclustered_seeds": reclustered_seeds,
        "reclustering_rounds": lambda arm, _: list(map(_reclustering_rounds, arm.measured)),
    },
    columns=(
        Column("rounds", "rounds", count_scale),
        RECLUSTERINGS,
        Column("clusters", "clusters", count_scale),
        Column("moves", "moves", count_scale),
        Column("dropouts", "drop-outs", count_scale),
        Column("download_bytes", "download", bytes_scale),
        Column("upload_bytes", "upload", bytes_scale),
        Column("control_bytes", "control", bytes_scale),
        CLIENT_DISTANCE,
        Column("final_client_distance", "at the horizon", index_scale, in_terminal=False),
        Column("models_trained_per_client", "models trained per visit", index_scale, in_terminal=False),
        TRAINED,
        Column(
            "adaptation_s_per_client",
            "adaptation per client",
            time_scale,
            in_terminal=False,
            only_if=any_measured,
        ),
        Column("waiting_for_responses_s", "waiting for responses", time_scale, in_terminal=False),
        Column("virtual_time_s", "virtual time", time_scale),
        Column("wall_s", "wall time", time_scale),
    ),
    note=lambda summary: NOTE,
    in_terminal=InTerminal("cost, mean over seeds", has_intervals=False, in_notebook=True),
    in_many_runs=InManyRuns(
        keys=("trained_samples_per_client",),
        columns=(TRAINED,),
        notes={"trained_samples_per_client": TRAINED_SAMPLES},
    ),
)
