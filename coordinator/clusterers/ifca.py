"""IFCA: of a fixed number of models, every client chooses the one that does best on its own samples.

Ghosh et al. 2020, and the forms that FedDrift compares with: with memory `claimed` (IFCA; IFCA(T) when
clients choose once per data step) or with a window of one data step (IFCA-W).
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from coordinator.assignment import Assignment
from coordinator.clusterers.base import Clusterer
from coordinator.clusterers.best_model import moved_to_best, own_initialisations
from coordinator.view import View
from emulator.numbers import ModelCount
from emulator.plugins import Settings


class IfcaSettings(Settings):
    """Number of models, and when and by which metric a client chooses."""

    num_models: ModelCount = Field(
        2, description="models, each with an initialisation of its own", examples=[4]
    )
    choose: Literal["round", "step"] = Field(
        "round",
        description="participants choose in every round, or clients when their data changes (IFCA(T))",
    )
    metric: Literal["accuracy", "loss"] = Field(
        "accuracy", description="choose by accuracy (FedDrift's form), or by loss, as published"
    )
    first: Literal["together", "choose"] = Field(
        "together",
        description="at first all clients are on model 0 (for the first round or data step: FedDrift's "
        "synthetic sets), or choose at once",
    )


class Ifca(Clusterer):
    """Each client that chooses moves to the model that does best on its newest arrivals.

    Ties go to the lowest row. A client that does not choose, is offline, or has no samples to score stays
    where it was; one that joins begins in the largest cluster.

    Source: Ghosh, Chung, Yin and Ramchandran 2020, and the forms that FedDrift (AISTATS 2023) compares with.

    Client 1 gets 8 of its 10 samples right with model 1, and only 3 with model 0:

    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> from coordinator.view import ScoreResponse
    >>> from emulator.messages import Scores
    >>> scores = Scores(counts=np.array([10, 10]), correct=np.array([[9.0, 4.0], [3.0, 8.0]]))
    >>> view = SimpleNamespace(
    ...     round=1,
    ...     participants=np.array([0, 1]),
    ...     model_ids=np.array([0, 1]),
    ...     members=np.zeros((2, 1), dtype=np.int64),
    ...     score=lambda clients, *request: ScoreResponse(clients, scores),
    ... )
    >>> Ifca(IfcaSettings()).on_participants(view).members.ravel().tolist()
    [0, 1]
    """

    Settings = IfcaSettings
    settings: IfcaSettings

    @property
    def fixed_clusters(self) -> int:
        return self.settings.num_models

    def on_data(self, view: View) -> Assignment | None:
        if view.assignment is None:
            return own_initialisations(self.settings.num_models, view)
        if self.settings.choose == "step" and len(view.changed) > 0:
            return moved_to_best(view.changed, view, "arrived", self.settings.metric)
        return None

    def on_participants(self, view: View) -> Assignment | None:
        by_round = self.settings.choose == "round"
        # In round 0 this is the first call at which there are models to choose from, whatever `choose` is.
        chooses = by_round if view.round > 0 else self.settings.first == "choose"
        return moved_to_best(view.participants, view, "arrived", self.settings.metric) if chooses else None
