"""Clients choose the model that does best on their own samples: what IFCA and HypCluster share."""

from __future__ import annotations

from typing import Literal

import numpy as np

from coordinator.assignment import Assignment
from coordinator.view import RunFacts, Samples, View
from emulator.arrays import Ints
from emulator.errors import ConfigurationError


def refuse_too_many(num_models: int, run: RunFacts) -> None:
    """ConfigurationError if there are more models than clients."""
    if num_models > run.num_clients:
        raise ConfigurationError(
            f"clusterer.num_models = {num_models}: must be at most {run.num_clients}, the number of clients"
        )


def own_initialisations(num_models: int, view: View) -> Assignment:
    """The first assignment: `num_models` models, each with an initialisation of its own; all are on model 0.

    All clients are in one lane, since participants are selected before they choose.
    """
    starts = np.stack([view.initial(number) for number in range(num_models)])
    together = np.zeros(view.num_clients, dtype=np.int64)
    return Assignment.fresh(together, num_models, starts, lanes=together)


def moved_to_best(
    clients: Ints, view: View, samples: Samples, metric: Literal["accuracy", "loss"]
) -> Assignment | None:
    """Move each of `clients` (n,) to the model that does best by `metric` on its own `samples`.

    Ties go to the lowest row; a model whose loss is NaN counts as the worst. A client that is offline or has
    no samples to score stays where it is. Returns None if no client moves.
    """
    by_loss = metric == "loss"
    num_models = len(view.model_ids)
    response = view.score(
        clients, np.arange(num_models), samples, frozenset({"loss" if by_loss else "correct"})
    )
    scores = response.scores.loss if by_loss else response.scores.correct
    assert scores is not None
    # A model that diverged has no loss.
    best = np.where(np.isnan(scores), np.inf, scores).argmin(axis=1) if by_loss else scores.argmax(axis=1)
    before = view.members[:, 0]
    members = before.copy()
    scored = response.scores.counts > 0
    members[response.clients[scored]] = best[scored]
    if np.array_equal(members, before):
        return None
    return Assignment.moved(members, num_models, lanes=np.zeros_like(members))
