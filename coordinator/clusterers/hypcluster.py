"""HypCluster: of a fixed number of models, every participant trains the one with the lowest loss.

Mansour et al. 2020. It is IFCA by loss, on all samples that a client holds, and from the first round on.
"""

from __future__ import annotations

from pydantic import Field

from coordinator.assignment import Assignment
from coordinator.clusterers.base import Clusterer
from coordinator.clusterers.best_model import moved_to_best, own_initialisations, refuse_too_many
from coordinator.view import RunFacts, View
from emulator.numbers import ModelCount
from emulator.plugins import Settings


class HypClusterSettings(Settings):
    """Number of models."""

    num_models: ModelCount = Field(
        2, description="models, each with an initialisation of its own", examples=[4]
    )


class HypCluster(Clusterer):
    """In every round each participant moves to the model of lowest loss on the samples that it holds.

    Ties go to the lowest row. A client belongs to the model that it chose last, at first to model 0; one that
    joins, to the largest cluster. The published mean over samples is that of aggregator `fedavg`.

    Source: Mansour, Mohri, Ro and Suresh 2020, HypCluster.

    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> from coordinator.view import ScoreResponse
    >>> from emulator.messages import Scores
    >>> scores = Scores(counts=np.array([10, 10]), loss=np.array([[4.0, 9.0], [8.0, 3.0]]))
    >>> view = SimpleNamespace(
    ...     participants=np.array([0, 1]),
    ...     model_ids=np.array([0, 1]),
    ...     members=np.zeros((2, 1), dtype=np.int64),
    ...     score=lambda clients, *request: ScoreResponse(clients, scores),
    ... )
    >>> HypCluster(HypClusterSettings()).on_participants(view).members.ravel().tolist()
    [0, 1]
    """

    Settings = HypClusterSettings
    settings: HypClusterSettings

    @property
    def fixed_clusters(self) -> int:
        return self.settings.num_models

    @property
    def watches_data(self) -> bool:
        return False

    def check_run(self, run: RunFacts) -> None:
        refuse_too_many(self.settings.num_models, run)

    def on_data(self, view: View) -> Assignment | None:
        return own_initialisations(self.settings.num_models, view) if view.assignment is None else None

    def on_participants(self, view: View) -> Assignment | None:
        return moved_to_best(view.participants, view, "held", "loss")
