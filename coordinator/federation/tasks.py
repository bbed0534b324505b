"""The settings of the tasks of (client, model) pairs, and the work of their visits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coordinator.federation.method import RoundSettings
from coordinator.schedules import Schedule
from coordinator.view import View
from emulator.arrays import Bools, Floats, Ints
from emulator.counts import epoch_steps
from emulator.latency import LatencyModel, Phases
from emulator.messages import BYTES_PER_PARAMETER, SampleRanges, SolverFacts, Work


def task_settings(
    settings: RoundSettings,
    schedules: Sequence[Schedule],
    client: Ints,
    row: Ints,
    samples: SampleRanges,
    views: Sequence[View],
    solver: SolverFacts,
) -> dict[str, Floats]:
    """The settings of n tasks, as columns (n,) by name: the round's, or what a schedule decides.

    `client` (n,) and `row` (n,), a row of the bank, are the pair of each task, and `samples` those that it
    trains on; `views` holds the view of each schedule, which observes it first. Of the numbers that rules of
    the `solver` read, tasks have those that a schedule decides; if the solver stops, they have
    `local_epochs`, the most.
    """
    zeros = np.zeros(len(client))
    base = {
        "learning_rate": zeros + settings.learning_rate,
        "local_steps": zeros + settings.local_steps,
        "batch_size": zeros + settings.batch_size,
    }
    if settings.local_epochs is not None:
        num_samples = samples.counts()
        base["local_steps"] = settings.steps_of(num_samples).astype(np.float64)
    for schedule in schedules:
        for name in sorted(schedule.sets - base.keys()):
            base[name] = zeros + solver.settings.get(name, np.nan)
    decided: dict[str, Floats] = {}
    for schedule, view in zip(schedules, views, strict=True):
        schedule.observe(view)
        decided.update(schedule.task_settings(client, row, base, view))
    if settings.local_epochs is not None:
        if "batch_size" in decided and "local_steps" not in decided:
            in_epoch = epoch_steps(num_samples, decided["batch_size"])
            decided["local_steps"] = (settings.local_epochs * in_epoch).astype(np.float64)
        if solver.stops:
            decided["local_epochs"] = zeros + settings.local_epochs
    return base | decided


def relative_samples(client: Ints, view: View) -> Floats:
    """(n,) the training samples that each `client` (n,) holds, over their mean over all that hold some."""
    mean = float(view.held(np.flatnonzero(view.holding)).counts().mean())
    return view.held(client).counts() / mean


@dataclass(frozen=True)
class TaskCosts:
    """What a task costs by its solver: bytes, and how often it trains on a sample."""

    model_bytes: float  # of a model as it is sent, without what stays with the client
    broadcast_bytes: float  # sent along with each model
    upload_bytes: float
    gradients: int  # of each step

    @classmethod
    def of(cls, solver: SolverFacts, num_parameters: int) -> TaskCosts:
        """The costs with this solver of a model of `num_parameters` numbers."""
        sent, alone = num_parameters - solver.unsent, num_parameters - solver.statistics
        along, besides = len(solver.receives) * alone, solver.uploads * alone
        return cls(
            model_bytes=float(BYTES_PER_PARAMETER * sent),
            broadcast_bytes=float(BYTES_PER_PARAMETER * along),
            upload_bytes=float(BYTES_PER_PARAMETER * (sent + besides)),
            gradients=solver.gradients,
        )


def expected_phases(
    ids: Ints, models: Floats, samples: Floats, costs: TaskCosts, latency: LatencyModel
) -> Phases:
    """The phases of a visit to each client of `ids` (n,) that trains so many `models` (n,).

    Each model is trained on `samples` (n,), counted once for each use. Requests and predictions are left out.
    """
    downloads = models * (costs.model_bytes + costs.broadcast_bytes)
    trained = models * samples * costs.gradients
    work = Work(downloads, models * costs.upload_bytes, np.zeros(len(ids)), trained)
    return latency.phases(ids, work)


def visit_work(
    visit: Ints,
    trained: Floats,
    predicted: Floats | None,
    downloaded: Bools,
    num_visits: int,
    costs: TaskCosts,
) -> Work:
    """The transfer and training of each visit, summed over its tasks.

    `visit` (n,) is the visit of each task, in [0, num_visits). A task's steps train on `trained` (n,) samples
    in all, each counted once for each use; `predicted` (n,) samples are predicted besides, None: none.
    `downloaded` (n,) marks the tasks whose model the client holds already, and does not download again. The
    columns of the result are of shape (num_visits,).
    """

    def total(amount: Floats) -> Floats:
        return np.bincount(visit, weights=amount, minlength=num_visits).astype(np.float64)

    numbers = total(np.ones(len(visit)))
    downloads = costs.model_bytes * total((~downloaded).astype(np.float64))
    if costs.broadcast_bytes > 0:
        downloads += costs.broadcast_bytes * numbers
    samples = total(trained)
    return Work(
        download_bytes=downloads,
        upload_bytes=costs.upload_bytes * numbers,
        forward_samples=np.zeros(num_visits) if predicted is None else total(predicted),
        trained_samples=samples if costs.gradients == 1 else costs.gradients * samples,
    )
