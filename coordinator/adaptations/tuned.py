"""A copy of the served model that each client trains for itself."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field

from coordinator.adaptations.base import Adaptation, ClientView, Served
from emulator.messages import InferencePlan, Work
from emulator.numbers import Factor, LocalSteps
from emulator.plugins import Settings


class TunedSettings(Settings):
    """How long, and how fast, the copy is trained."""

    local_steps: LocalSteps = Field(
        5, description="steps of the copy, one batch of training.batch_size each", examples=[10]
    )
    learning_rate: Factor | None = Field(
        None, description="learning rate of these steps; training.learning_rate, if omitted"
    )


class Tuned(Adaptation):
    """Before it serves, a copy of the model is trained on what its client holds; it is dropped afterwards.

    Fine-tuning, the usual first rival of personalised federated learning. The solver of the arm takes the
    steps, and starts without state. A client is charged one tuning per data step; each evaluation tunes the
    model of its round.

    Source: ours.

    Two clients of one model, which three steps move to 3 and 6:

    >>> from types import SimpleNamespace
    >>> from coordinator.adaptations.base import Trained
    >>> view = SimpleNamespace(
    ...     clients=np.array([0, 1]),
    ...     models=np.zeros((1, 1)),
    ...     plan=InferencePlan.alike(np.zeros((2, 1), dtype=int)),
    ...     train=lambda models, start, steps, rate: Trained(models[start] + [[1], [2]] * steps[:, None], {}),
    ... )
    >>> served = Tuned(TunedSettings(local_steps=3)).adapt(view)
    >>> served.models.tolist(), served.plan.models.tolist()
    ([[3.0], [6.0]], [[0], [1]])
    """

    Settings = TunedSettings
    settings: TunedSettings
    serves_one: ClassVar[bool] = True

    def adapt(self, view: ClientView) -> Served:
        steps = np.full(len(view.clients), self.settings.local_steps)
        tuned = view.train(view.models, view.plan.first(), steps, self.settings.learning_rate)
        return Served(tuned.models, InferencePlan.own(len(view.clients)))

    def work(self, view: ClientView) -> Work | None:
        if not view.new_data:
            return None
        steps = np.full(len(view.clients), self.settings.local_steps)
        return Work.of(len(view.clients), trained_samples=view.samples(steps))
