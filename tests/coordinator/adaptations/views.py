"""Views of adaptations by hand: clients of linear models, whose training is set by the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from coordinator.adaptations import ClientView
from coordinator.adaptations.base import Held, Trained
from emulator.arrays import Floats32, Ints
from emulator.messages import InferencePlan


def refused(*arguments: object, **keywords: object) -> NoReturn:
    raise AssertionError("this adaptation must not ask for that")


def a_view(counts: npt.ArrayLike = ((1, 0),), models: npt.ArrayLike = ((0.0,),), **facts: Any) -> ClientView:
    """A view of clients with `counts` (n, L) of labels, and `models` (M, P), of which the first serves."""
    of_labels = np.array(counts, dtype=np.float64)
    clients = np.arange(len(of_labels))
    whole: dict[str, Any] = {
        "clients": clients,
        "plan": InferencePlan.alike(np.zeros((len(clients), 1), dtype=np.int64)),
        "models": np.array(models, dtype=np.float32),
        "num_labels": of_labels.shape[1],
        "step": 0,
        "rounds": 1,
        "new_data": np.ones(len(clients), dtype=bool),
        "evaluated": True,
        "local_steps": 1_000,
        "batch_size": 10,
        "steps_per_client": 2.0,
        "num_samples": of_labels.sum(axis=1).astype(np.int64),
        "scored": clients,
        "label_counts": lambda: of_labels,
        "reported_shares": refused,
        "log_probabilities": refused,
        "losses": refused,
        "held": refused,
        "train": refused,
        "initial": lambda number: np.full(1, number, dtype=np.float32),
    }
    view = ClientView(**{"samples": refused, **whole, **facts})
    return replace(view, samples=lambda steps: np.full(len(clients), 1.0) * steps * view.batch_size)


def holding(*clients: tuple[npt.ArrayLike, Sequence[int]], at_once: int = 2) -> Callable[[], Iterator[Held]]:
    """The `held` of a view whose clients have these features and labels; so many clients `at_once`."""

    def held() -> Iterator[Held]:
        for first in range(0, len(clients), at_once):
            some = clients[first : first + at_once]
            yield Held(
                rows=first + np.arange(len(some)),
                features=np.concatenate([np.array(features, dtype=np.float32) for features, _ in some]),
                labels=np.concatenate([np.array(labels) for _, labels in some]),
                owner=np.repeat(np.arange(len(some)), [len(labels) for _, labels in some]),
            )

    return held


class Training:
    """Local training that adds 1 for each step, and what it was asked for."""

    def __init__(self) -> None:
        self.steps: list[list[int]] = []
        self.rates: list[float | None] = []
        self.states: list[Mapping[str, Floats32] | None] = []
        self.taken: list[list[int] | None] = []

    def __call__(
        self,
        models: Floats32,
        start: Ints,
        steps: Ints,
        learning_rate: float | None = None,
        state: Mapping[str, Floats32] | None = None,
        taken: Ints | None = None,
    ) -> Trained:
        self.taken.append(None if taken is None else taken.tolist())
        self.steps.append(steps.tolist())
        self.rates.append(learning_rate)
        self.states.append(None if state is None else {name: rows.copy() for name, rows in state.items()})
        before = np.zeros((len(start), 1), dtype=np.float32) if state is None else state["moment"]
        taken = steps[:, None].astype(np.float32)
        return Trained(models[start] + taken, {"moment": before + taken})
