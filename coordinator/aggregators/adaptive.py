"""Base of adaptive aggregators: the coordinator's optimiser, whose moments follow the models."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, ValidationInfo, field_validator

from coordinator.aggregators.base import Aggregator
from coordinator.aggregators.fedavg import mean_weights, means
from coordinator.assignment import Assignment
from coordinator.view import View
from emulator.arrays import Bools, Floats, Floats32, Ints, weighted_sums
from emulator.messages import Updates
from emulator.numbers import Factor, Number, PositiveFactor, ShareBelowOne
from emulator.plugins import Settings


class AdaptiveSettings(Settings):
    """The coordinator's step, and what becomes of its moments when models change."""

    learning_rate: PositiveFactor = Field(
        0.01, description="of the coordinator: about the largest change of a parameter in one step"
    )
    beta1: ShareBelowOne = Field(0.9, description="share of the first moment that a step keeps")
    tau: Annotated[float, Number(gt=0, le=1e6)] = Field(
        1e-3, description="added to the root of the second moment: bounds the step where updates are small"
    )
    initial_v: Factor | None = Field(
        None, validate_default=True, description="second moment of a new model; without it, tau squared"
    )
    weighting: Literal["samples", "uniform"] = Field(
        "samples", description="of the mean update: by the samples a client holds, or equal"
    )
    moments: Literal["reset", "averaged"] = Field(
        "reset",
        description="those of a model mixed of others: start anew, or are mixed alike; a copy keeps its own",
    )

    @field_validator("initial_v")
    @classmethod
    def _square_of_tau(cls, value: float | None, info: ValidationInfo) -> float | None:
        return info.data["tau"] ** 2 if value is None and "tau" in info.data else value


class Adaptive(Aggregator):
    """Moves each parameter by its first moment over the root of its second moment.

    With D the weighted mean of the updates of a model, as in `fedavg`, and squares, roots and quotients for
    each parameter by itself:

    m = beta1 m + (1 - beta1) D; v by `second_moment`; model += learning_rate m / (sqrt(v) + tau).

    m starts at 0 and v at `initial_v`; there is no correction for this bias. A parameter that is not trained
    has D = 0, and so m = 0 and no step. A model that no client with samples has sent an update of makes no
    step, and its moments do not decay: m would move it on without any news. State, once a model has made a
    step: both moments of every model, (M, P). In double precision, since the square of a large update is no
    float32.

    Reddi, Charles, Zaheer, Garrett, Rush, Konecny, Kumar and McMahan, "Adaptive Federated Optimization", ICLR
    2021, algorithm 2: there of one model. Here an assignment may change models: one that is a plain copy of
    another gets a copy of its moments; any other starts anew, or, with `moments = "averaged"`, has the mean
    of its sources' by the weights of the mixing matrix, in which a model from outside the bank is new.
    """

    settings: AdaptiveSettings
    state_fields: tuple[str, ...] = ("_first", "_second")

    def __init__(self, settings: AdaptiveSettings) -> None:
        super().__init__(settings)
        self._first: Floats | None = None
        self._second: Floats | None = None

    @abstractmethod
    def second_moment(self, second: Floats, squares: Floats) -> Floats:
        """(k, P) the new second moments of k models, from the present ones and D squared, both (k, P)."""

    def denominators(self, steps: Bools, squares: Floats, before: Floats, second: Floats) -> Floats:
        """(k, P) by what the first moments of k models are divided; `steps` (M,) marks the k among all.

        `squares` (k, P) are of D, `before` and `second` (k, P) the second moments before and after.
        """
        return np.sqrt(second) + self.settings.tau

    def models_changed(self, assignment: Assignment) -> None:
        """The moments follow the models."""
        if self._first is not None and self._second is not None:
            averages = self.settings.moments == "averaged"
            self._first = mixed(self._first, assignment.mixing, 0.0, averages)
            second = mixed(self._second, assignment.mixing, self._initial, averages)
            self._second = np.maximum(second, 0)  # weights of a mixing matrix may be negative

    def weights(self, model: Ints, num_samples: Ints, view: View) -> Floats:
        return mean_weights(model, num_samples, view.model_ids, self.settings.weighting)

    def aggregate(self, updates: Updates, view: View) -> Floats32:
        mean = means(updates, view, self.settings.weighting)
        if self._first is None or self._second is None:
            self._first, self._second = np.zeros_like(mean), np.full_like(mean, self._initial)
        steps = np.isin(view.model_ids, updates.model[updates.num_samples > 0])
        settings = self.settings
        first = settings.beta1 * self._first[steps] + (1 - settings.beta1) * mean[steps]
        squares, before = np.square(mean[steps]), self._second[steps]
        second = self.second_moment(before, squares)
        models = view.models.copy()
        divisors = self.denominators(steps, squares, before, second)
        moved = models[steps] + settings.learning_rate * first / divisors
        models[steps] = moved.astype(np.float32)
        self._first[steps], self._second[steps] = first, second
        return models

    @property
    def _initial(self) -> float:
        """The second moment of a new model."""
        assert self.settings.initial_v is not None  # its validator sets it
        return self.settings.initial_v


def adam_moment(second: Floats, squares: Floats, beta2: float) -> Floats:
    """(k, P) Adam's new second moments, of the present ones and D squared."""
    return beta2 * second + (1 - beta2) * squares


def yogi_moment(second: Floats, squares: Floats, beta2: float) -> Floats:
    """(k, P) Yogi's new second moments, of the present ones and D squared."""
    return second - (1 - beta2) * squares * np.sign(second - squares)


def mixed(moments: Floats, mixing: Floats, initial: float, averages: bool) -> Floats:
    """The moments of the new models.

    A copy of one old model has the moments of that model.

    Args:
        moments: (M_old, P) those of the old models.
        mixing: (M_new, M_old + E) the new models as weighted means, `Assignment.mixing`.
        initial: the moments of each of the E models from outside the bank, and of a new model.
        averages: whether a mixed model has the mean of the moments of its sources, instead of new ones.

    Returns:
        Array of shape (M_new, P).

    A copy of the old model 0, and a merger of both:

    >>> moments, mixing = np.array([[4.0, 8.0], [2.0, 0.0]]), np.array([[1.0, 0.0], [0.5, 0.5]])
    >>> mixed(moments, mixing, 0.1, averages=False)
    array([[4. , 8. ],
           [0.1, 0.1]])
    >>> mixed(moments, mixing, 0.1, averages=True)
    array([[4., 8.],
           [3., 4.]])
    """
    fresh = np.full((mixing.shape[1] - len(moments), moments.shape[1]), initial)
    new = weighted_sums(mixing, np.concatenate([moments, fresh]))
    if not averages:
        of_one = np.count_nonzero(mixing, axis=1) == 1
        copies = of_one & (mixing[:, : len(moments)] == 1).any(axis=1)
        new[~copies] = initial
    return new
