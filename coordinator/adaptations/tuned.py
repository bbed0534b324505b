"""A copy of the served model that each client trains for itself."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from coordinator.adaptations.base import Adaptation, ClientView, Served
from emulator.arrays import Bools, Floats32
from emulator.messages import InferencePlan, Work
from emulator.numbers import Factor, LocalSteps
from emulator.plugins import Settings


class TunedSettings(Settings):
    """How long, how fast, and how often the copy is trained."""

    local_steps: LocalSteps = Field(
        5, description="steps of the copy, one batch of training.batch_size each", examples=[10]
    )
    learning_rate: Factor | None = Field(
        None, description="learning rate of these steps; training.learning_rate, if omitted"
    )
    again: Literal["evaluation", "data"] = Field(
        "evaluation",
        description="when a copy is trained anew: evaluation: at each one, and dropped afterwards; data: at "
        "the first one after the client's data changed, and kept until they change again",
    )


class Tuned(Adaptation):
    """Before it serves, a copy of the model is trained on what its client holds.

    Fine-tuning, the usual first rival of personalised federated learning. The solver of the arm takes the
    steps, and starts without state. By default each evaluation tunes the model of its round, and a client
    that holds training samples, scored or not, is charged one tuning for each: what is charged grows with
    the number of evaluations (`round.evaluate_every`). With `again = "data"` it is charged one tuning
    whenever its data change. Its copy is of the model that served it at the first evaluation after that, and
    is kept until they change again, also when another model serves the client meanwhile.

    State: (S, P) the copies of the scored clients, and (S,) who has one; only with `again = "data"`.

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
    state_fields = ("_copies", "_has_copy")

    def __init__(self, settings: TunedSettings) -> None:
        super().__init__(settings)
        self.keeps_models = settings.again == "data"
        self._copies: Floats32 | None = None
        self._has_copy: Bools = np.zeros(0, dtype=bool)

    def adapt(self, view: ClientView) -> Served:
        models = self._kept(view) if self.keeps_models else self._tuned(view)
        return Served(models, InferencePlan.own(len(view.clients)))

    def work(self, view: ClientView) -> Work | None:
        again = view.new_data if self.keeps_models else np.full(len(view.clients), view.evaluated)
        if not again.any():
            return None
        steps = np.where(again, self.settings.local_steps, 0)
        return Work.of(len(view.clients), trained_samples=view.samples(steps))

    def data_changes(self, view: ClientView) -> None:
        if self._copies is not None:
            self._has_copy[np.searchsorted(view.scored, view.clients)] = False

    def _kept(self, view: ClientView) -> Floats32:
        """(n, P) the copies of the view's clients, made now for those without one of their present data."""
        if self._copies is None:
            self._copies = np.zeros((len(view.scored), view.models.shape[1]), dtype=view.models.dtype)
            self._has_copy = np.zeros(len(view.scored), dtype=bool)
        rows = np.searchsorted(view.scored, view.clients)
        without = ~self._has_copy[rows]
        if without.any():
            self._copies[rows[without]] = self._tuned(view, without)[without]
            self._has_copy[rows] = True
        return self._copies[rows]

    def _tuned(self, view: ClientView, some: Bools | bool = True) -> Floats32:
        """(n, P) the models that serve the view's clients, tuned by `some` (n,) of these, or by all."""
        steps = np.full(len(view.clients), self.settings.local_steps) * some
        return view.train(view.models, view.plan.first(), steps, self.settings.learning_rate).models
