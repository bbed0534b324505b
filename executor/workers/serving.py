"""A worker's side: do one job after the other, on what it was told before, until nobody asks any more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from emulator.arrays import Floats, Floats32, weighted_sums
from emulator.messages import ArrayUpdates
from emulator.state_tree import Tree
from executor.executor import LocalExecutor
from executor.workers import failures
from executor.workers.channel import Channel, LostError
from executor.workers.packing import unpacked_plan, unpacked_ranges, unpacked_tasks

SetUp = Callable[[Tree, int], LocalExecutor]
"""What a context of the slot `executor` describes, and its number, as an executor."""


def serve(channel: Channel, set_up: SetUp) -> bool:
    """Answer every message, with an error where there is one, until the other side says that it has no more;
    False when it is gone before."""
    worker = Serving(set_up)
    try:
        while (message := channel.receive())["kind"] != "end":
            try:
                answer = {"answer": worker.do(message)}
            except Exception as error:  # whatever it is, the coordinator raises it
                answer = failures.as_answer(error)
            channel.send(answer)
    except LostError:
        return False
    return True


class Serving:
    """What a worker holds: an executor, models, and the updates of the wave it last trained for."""

    def __init__(self, set_up: SetUp) -> None:
        self._set_up = set_up
        self._executor: LocalExecutor | None = None
        self._models: Floats32 = np.zeros((0, 0), dtype=np.float32)
        self._wave = -1
        self._kept: dict[int, Floats32] = {}  # the updates of each group

    def do(self, message: Tree) -> Tree:
        """The answer to a message: take in its contexts, and do its job."""
        for context in message["contexts"]:
            if context["slot"] == "executor":
                self._executor, self._kept = None, {}  # let go of before the next one is there
                self._executor = self._set_up(context["body"], context["number"])
            elif context["slot"] == "models":
                self._models = context["body"]
            else:
                raise ValueError(f"a context of the slot {context['slot']!r}")
        jobs: dict[str, Callable[[Tree], Tree]] = {
            "train": self._train,
            "collect": self._collect,
            "evaluate": self._evaluate,
            "score": self._score,
            "echo": _echo,
        }
        return jobs[message["kind"]](message["body"])

    @property
    def _own(self) -> LocalExecutor:
        assert self._executor is not None
        return self._executor

    def _train(self, body: Tree) -> Tree:
        """Train groups of tasks, each as a wave of its own: the same cohort as in the wave they are of."""
        if body["wave"] != self._wave:
            self._wave, self._kept = body["wave"], {}
        tasks, start = unpacked_tasks(body["tasks"])
        halved = self._own.halved_cohorts
        parts = _parts(body["sizes"])
        found: list[ArrayUpdates] = [None] * len(parts)  # type: ignore[list-item]

        def train(place: int) -> None:
            rows = parts[place]
            found[place] = self._own.train(tasks.take(rows), self._models, start[rows])

        self._own.side_by_side(train, range(len(parts)))
        for group, updates in zip(body["groups"], found, strict=True):
            self._kept[group] = updates.delta
        return {
            "loss": np.concatenate([updates.metrics["loss"] for updates in found]),
            "finite": np.concatenate([updates.finite for updates in found]),
            "state": {
                name: np.concatenate([updates.state[name] for updates in found]) for name in self._own.state
            },
            "halved": self._own.halved_cohorts - halved,
            "sums": {group: summed(weights, self._kept[group]) for group, weights in body["weights"].items()},
        }

    def _collect(self, body: Tree) -> Tree:
        """Of each group what is asked of its updates; those that are not here are trained first."""
        for again in body["again"]:
            self._train(again)
        assert body["wave"] == self._wave
        kept = [self._kept[group] for group in body["groups"]]
        if body["what"] == "sums":
            return [summed(weights, rows) for weights, rows in zip(body["weights"], kept, strict=True)]
        if body["what"] == "norms":
            return [_as_updates(rows).norms() for rows in kept]
        return kept

    def _evaluate(self, body: Tree) -> Tree:
        plan, samples = unpacked_plan(body["plan"]), unpacked_ranges(body["samples"])
        accuracy, loss = np.empty(len(plan.models)), np.empty(len(plan.models))

        def evaluate(rows: np.ndarray) -> None:
            found = self._own.evaluate(self._models, plan.take(rows), samples.take(rows))
            accuracy[rows], loss[rows] = found.accuracy, found.loss

        self._own.side_by_side(evaluate, _parts(body["sizes"]))
        return {"accuracy": accuracy, "loss": loss}

    def _score(self, body: Tree) -> Tree:
        samples, metrics = unpacked_ranges(body["samples"]), frozenset(body["metrics"])
        parts = _parts(body["sizes"])
        found: list[Any] = [None] * len(parts)

        def score(place: int) -> None:
            found[place] = self._own.score(self._models, samples.take(parts[place]), metrics)

        self._own.side_by_side(score, range(len(parts)))
        return {name: np.concatenate([getattr(scores, name) for scores in found]) for name in body["metrics"]}


def summed(weights: Floats, rows: Floats32) -> Floats | Floats32:
    """What stands for `weights` (k, n) times `rows` (n, P): the sums (k, P), or the rows that count, where
    these are fewer bytes; `unfolded` makes the sums of either."""
    counts = np.flatnonzero(weights.any(axis=0))
    sums_bytes, rows_bytes = 8 * len(weights), 4 * len(counts)
    return rows[counts] if rows_bytes <= sums_bytes else weighted_sums(weights, rows)


def unfolded(found: Floats | Floats32, weights: Floats) -> Floats:
    """(k, P) the sums, whichever way `summed` put them."""
    if found.dtype == np.float64:
        return cast(Floats, found)
    return weighted_sums(weights[:, weights.any(axis=0)], cast(Floats32, found))


def _echo(body: Tree) -> Tree:
    """For whoever measures what a message costs."""
    return body


def _as_updates(rows: Floats32) -> ArrayUpdates:
    none = np.zeros(len(rows), dtype=np.int64)
    return ArrayUpdates(none, none, none, none, rows)


def _parts(sizes: Sequence[int]) -> list[np.ndarray]:
    """Stretches of so many rows that follow one another."""
    ends = np.cumsum(sizes)
    return [np.arange(end - size, end) for size, end in zip(sizes, ends, strict=True)]
