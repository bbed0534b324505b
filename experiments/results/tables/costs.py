"""Costs and counts of events of an arm, per run of one seed, up to the horizon.

`virtual_time_s` and `wall_s` are of whole runs. `reclustering_rounds` is a list of rounds for each seed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from emulator.arrays import Floats
from emulator.messages import BYTES_PER_PARAMETER
from emulator.storage.runlog import RoundRecord
from experiments.results.reading.clusters_in_force import num_clients
from experiments.results.reading.run_directory import ReportedRun
from experiments.results.statistics.absorbed import has_steps
from experiments.results.statistics.comparisons import Columns, Compared, Comparison, Run, once
from experiments.results.statistics.intervals import Estimate, ShareOfSeeds, amount_estimate, share_of_seeds
from experiments.results.statistics.scales import index_scale
from experiments.results.tables.quantities import (
    BYTES,
    SECONDS,
    WALL,
    Quantity,
    any_measured,
    means,
    over_seeds,
    quantity,
    show_happened,
)
from experiments.results.tables.table import InTerminal, Place, Table

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

DISTANCE, UNEVALUATED = "distance of round.client_distance", "if no round was evaluated by the horizon"


@once
def reclustered(run: ReportedRun) -> Columns:
    """The rounds with a global re-clustering."""
    closed_s = [record.closed_s for record in run.records if record.reclustered]
    return {"closed_s": np.array(closed_s, dtype=np.float64)}


@once
def client_distances(run: ReportedRun) -> Columns:
    """The mean client `distance` of the rounds that measure it."""
    found = [
        (record.closed_s, record.mean_client_distance)
        for record in run.records
        if record.mean_client_distance is not None
    ]
    closed_s, distance = np.array(found, dtype=np.float64).reshape(-1, 2).T
    return {"closed_s": closed_s, "distance": distance}


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


def _trained_samples(arm: Comparison, compared: Compared) -> Estimate:
    """The samples trained per client up to the horizon, by the samples of a visit of the arm."""
    per_visit = None if arm.configured is None else arm.configured.samples_per_visit
    found = [(run, trained(run.log)) for run in arm.measured]
    by_the_horizon = [
        int(np.searchsorted(of_log.closed_s, run.horizon.horizon_s, side="right")) for run, of_log in found
    ]
    rounds = zip(found, by_the_horizon, strict=True)
    return amount_estimate([samples_per_client(of_log, number, per_visit) for (_, of_log), number in rounds])


@quantity("rounds", "global re-clusterings")
def global_reclusterings(run: Run) -> float:
    """Rounds that clustered all clients anew."""
    return float(len(run.rounds(reclustered)["closed_s"]))


def _reclustered_seeds(arm: Comparison, compared: Compared) -> ShareOfSeeds | None:
    """The share of the seeds in which all clients were clustered anew; None for an arm without a trigger."""
    if not arm.has_trigger:
        return None
    return share_of_seeds([(global_reclusterings(run) or 0) > 0 for run in arm.measured])


@quantity(DISTANCE, "client distance", index_scale, missing=UNEVALUATED, in_terminal=False)
def mean_client_distance(run: Run) -> float | None:
    """Mean distance between the clients of a cluster, averaged over the evaluated rounds."""
    distances = run.rounds(client_distances)["distance"]
    return float(np.mean(distances)) if len(distances) else None


@quantity(DISTANCE, "at the horizon", index_scale, missing=UNEVALUATED, in_terminal=False)
def final_client_distance(run: Run) -> float | None:
    """The same in the last evaluated round."""
    distances = run.rounds(client_distances)["distance"]
    return float(distances[-1]) if len(distances) else None


@means(
    "models uploaded for training for each completed visit; an upper bound where uploads were cut short or "
    "packets sent again",
    "if no visit completed",
)
@quantity("models", "models trained per visit", index_scale, in_terminal=False)
def models_trained_per_client(run: Run) -> float | None:
    """Models trained and uploaded, per completed visit.

    What a solver sends up besides, or keeps, is allowed for (`solver` of the header). It is exact if no
    packet is lost and every visit completes. None also if the header has no number of parameters.
    """
    completed = sum(len(record.completed) for record in run.records)
    models = float(trained(run.log).models[len(run.records) - 1]) if completed else math.nan
    return models / completed if math.isfinite(models) else None


@means(
    "what an adaptation takes a client, on average over all clients",
    "if the arm has no adaptation, nor a context",
)
@quantity(SECONDS, "adaptation per client", in_terminal=False, only_if=any_measured)
def adaptation_s_per_client(run: Run) -> float | None:
    """The time that a client computes for its adaptation."""
    clients = num_clients(run.log)
    if not run.records or not clients or (total_s := run.records[-1].adaptation_s) is None:
        return None
    return total_s / clients


@means(
    "time between the end of a round and the dispatch of the next one, when no visit is out",
    "if rounds may have several server steps, as visits are out then",
)
@quantity(SECONDS, "waiting for responses", in_terminal=False)
def waiting_for_responses_s(run: Run) -> float | None:
    """Virtual seconds from the end of each round to the dispatch of the next one, when no visit is out.

    The coordinator waits for reports, for responses to client requests, and until enough clients are online.
    The first round counts from its opening.
    """
    if has_steps(run.records):
        return None
    ends = [record.closed_s for record in run.records]
    starts = [record.opened_s for record in run.records[:1]] + ends
    return math.fsum(record.dispatched_s - end for record, end in zip(run.records, starts, strict=False))


@quantity(SECONDS, "virtual time")
def virtual_time_s(run: Run) -> float:
    """When the last round of the whole run closed."""
    return run.log.records[-1].closed_s


@quantity(WALL, "wall time")
def wall_s(run: Run) -> float:
    """How long the whole run took on its machine."""
    return run.log.timing.wall_s


@quantity("rounds", "rounds")
def rounds(run: Run) -> float:
    """Rounds that closed by the horizon."""
    return float(len(run.records))


def _number(record: RoundRecord, name: str) -> float:
    """A number of a round, or the length of one of its lists."""
    value = getattr(record, name)
    return len(value) if isinstance(value, list) else value


def _total(key: str, name: str, meaning: str, unit: str, heading: str = "") -> Quantity:
    """A number that is counted round by round: its sum over the rounds of each run."""

    def of_run(run: Run) -> float:
        return float(sum(_number(record, name) for record in run.records))

    return Quantity(key, over_seeds(of_run, amount_estimate), unit, heading).means(meaning)


def _last(key: str, meaning: str, unit: str, heading: str = "") -> Quantity:
    """A number that is counted from the start of the run: its value in the last round, or 0."""

    def of_run(run: Run) -> float:
        return float(_number(run.records[-1], key)) if run.records else 0.0

    return Quantity(key, over_seeds(of_run, amount_estimate), unit, heading).means(meaning)


def _reclustering_rounds(arm: Comparison, compared: Compared) -> list[list[int]]:
    return [[record.round for record in run.records if record.reclustered] for run in arm.measured]


DOWNLOAD = _last("download_bytes", "downloaded for training", BYTES, "download")
UPLOAD = _last("upload_bytes", "uploaded for training", BYTES, "upload")
CONTROL = _last("control_bytes", "transferred for reports and client requests, both ways", BYTES, "control")
MODELS_SENT = _last("models_sent", "models transferred either way, for training and for scoring", "models")
CLUSTERS = _last("clusters", "clusters that exist at the horizon, also empty ones", "clusters", "clusters")
MOVES = _total("moves", "moved", "how often a client moved to another cluster one by one", "moves", "moves")
DROPOUTS = _total("dropouts", "dropped", "visits that dropped out, crashes among them", "visits", "drop-outs")
STILL_OUT = "visits that were still out when their lane closed or a time limit passed"
ABANDONED = _total("abandoned", "abandoned", STILL_OUT, "visits")
CRASHED = _total("crashed_visits", "crashed", "visits whose device crashed", "visits")
REJECTED = _total("rejected_updates", "rejected", "visits with an update that was not finite", "visits")
NOT_USED = "reports that were not finite, and so not used"
NONFINITE = _total("nonfinite_reports", "nonfinite_reports", NOT_USED, "reports")
TRAINED = Quantity(
    "trained_samples_per_client", _trained_samples, "samples", "samples trained per client"
).means(
    "models uploaded for training x local steps x batch size, and what adaptations train, over all clients",
    "if visits are of epochs, or a schedule may set the local steps or the batch size",
)
TRAINED_IF_KNOWN = TRAINED.if_measured()
RECLUSTERED = (
    Quantity("reclustered_seeds", _reclustered_seeds, "", "re-clustered", show=show_happened)
    .if_measured()
    .means(
        "1 if all clients were clustered anew by the horizon, and 0 if not",
        "of arms without a trigger that may or may not fire",
    )
)

TABLE = Table(
    title="Costs",
    place=Place("why", after_figures=True),
    quantities=(
        *(rounds, global_reclusterings, mean_client_distance, final_client_distance),
        *(
            DOWNLOAD,
            UPLOAD,
            CONTROL,
            MODELS_SENT,
            models_trained_per_client,
            TRAINED,
            adaptation_s_per_client,
        ),
        *(waiting_for_responses_s, CLUSTERS, MOVES, DROPOUTS, ABANDONED, CRASHED, REJECTED, NONFINITE),
        *(virtual_time_s, wall_s, RECLUSTERED, Quantity("reclustering_rounds", _reclustering_rounds)),
    ),
    columns=(
        *(rounds, global_reclusterings, CLUSTERS, MOVES, DROPOUTS, DOWNLOAD, UPLOAD, CONTROL),
        *(mean_client_distance, final_client_distance, models_trained_per_client, TRAINED),
        *(adaptation_s_per_client, waiting_for_responses_s, virtual_time_s, wall_s),
    ),
    note=lambda summary: NOTE,
    in_terminal=InTerminal("cost, mean over seeds", has_intervals=False, in_notebook=True),
    in_many_runs=(TRAINED.noted(TRAINED_SAMPLES),),
)
