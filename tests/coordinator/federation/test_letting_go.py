"""The executor knows the weights of updates beforehand, and lets these go, exactly if no part reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from coordinator.aggregators.fedavg import MODELS_AT_ONCE
from coordinator.aggregators.fedbuff import FedBuff, FedBuffSettings
from coordinator.aggregators.median import Median
from coordinator.aggregators.trimmed_mean import TrimmedMean, TrimmedMeanSettings
from coordinator.clusterers import Clusterer
from coordinator.clusterers.auxo import Auxo, AuxoSettings
from coordinator.clusterers.cfl import Cfl, CflSettings
from coordinator.clusterers.fielding import Fielding, FieldingSettings
from coordinator.pacing.buffered import Buffered, BufferedSettings
from coordinator.selectors.random import Random
from emulator.arrays import Floats, Floats32, Ints
from emulator.messages import ArrayUpdates, SummedUpdates, TrainTasks
from tests.fakes import NOTHING, FakeClusterer, FakeExecutor, Population, StoppingExecutor, fresh


class Telling(FakeExecutor):
    """Records what it is told of the weights, and lets updates go where it knows them, if it `lets_go`."""

    def __init__(self, *targets: Any, lets_go: bool = True) -> None:
        super().__init__(*targets)
        self.lets_go = lets_go
        self.told: list[Floats | None] = []

    def train(
        self, tasks: TrainTasks, models: Floats32, start: Ints, weights: Floats | None = None
    ) -> ArrayUpdates:
        self.told.append(weights)
        updates = super().train(tasks, models, start)
        if weights is None or not self.lets_go:
            return updates
        columns = {**vars(updates), "delta": updates.delta[:, :0]}
        known, place = (weights, updates.weighted_sum(weights)), np.arange(len(tasks))
        return SummedUpdates(**columns, place=place, size=len(tasks), known=known)


class OwnSelector(Random):
    """A part of one's own."""


class OwnThatDoesNot(OwnSelector):
    reads_updates = False


class Clusters(FakeClusterer):
    reads_updates = False


def a_cluster_each(number: int) -> Clusterer:
    return Clusters({0: fresh(range(number))})


def is_told(executor: Telling, **method: Any) -> bool:
    """Whether the executor knows the weights in every wave; otherwise it must in none."""
    Population(executor, rounds=2, **method).play()
    told = {weights is not None for weights in executor.told}
    assert len(executor.told) >= 2
    assert len(told) == 1
    return told.pop()


TARGETS = [1.0, 2.0, 4.0]


def test_the_weights_are_those_of_the_aggregator_a_row_for_each_model() -> None:
    executor = Telling(TARGETS)
    assert is_told(executor, clusterer=Clusters({0: fresh([0, 1, 1])}))
    for weights, wave in zip(executor.told, executor.waves, strict=True):
        assert weights is not None
        in_second = wave.client > 0
        assert weights.tolist() == [(~in_second).tolist(), (in_second / 2).tolist()]


@pytest.mark.parametrize(
    "method",
    [
        dict[str, Any],
        lambda: {"clusterer": Fielding(FieldingSettings())},
        lambda: {"selector": OwnThatDoesNot(NOTHING)},
        lambda: {
            "aggregator": FedBuff(FedBuffSettings()),
            "pacing": lambda cohort: Buffered(BufferedSettings(buffer=2), cohort),
        },
        lambda: {"clusterer": Clusters({0: fresh([0, 1, 1])})},
    ],
)
def test_where_no_part_reads_them_updates_are_let_go_and_the_models_are_the_same(
    method: Callable[[], dict[str, Any]],
) -> None:
    played = [
        Population(Telling(TARGETS, lets_go=lets_go), rounds=3, **method()).play()
        for lets_go in (True, False)
    ]
    assert played[0].models == played[1].models
    assert played[0].records == played[1].records
    assert is_told(Telling(TARGETS), **method())


@pytest.mark.parametrize(
    "method",
    [
        {"selector": OwnSelector(NOTHING)},
        {"clusterer": Cfl(CflSettings())},
        {"clusterer": Auxo(AuxoSettings())},
        {"clusterer": FakeClusterer({0: fresh([0, 0, 0])})},
        {"aggregator": TrimmedMean(TrimmedMeanSettings())},
        {"aggregator": Median(NOTHING)},
        {"accuracies": frozenset({"trained"})},
    ],
    ids=["of one's own", "cfl", "auxo", "a clusterer of one's own", "trimmed mean", "median", "trained"],
)
def test_where_a_part_reads_them_none_is_let_go(method: dict[str, Any]) -> None:
    assert not is_told(Telling(TARGETS), **method)


@pytest.mark.parametrize(("number", "told"), [(MODELS_AT_ONCE, True), (MODELS_AT_ONCE + 1, False)])
def test_of_more_models_than_are_added_up_at_once_none_is_let_go(number: int, told: bool) -> None:
    assert is_told(Telling(np.zeros(number)), clusterer=a_cluster_each(number)) == told


class TellingOfStops(Telling, StoppingExecutor):
    """Whose clients stop after one epoch."""


def test_updates_that_are_trained_at_dispatch_are_kept_until_they_are_absorbed() -> None:
    assert not is_told(TellingOfStops(TARGETS, [1, 1, 1], [1, 1, 1]), local_epochs=2)
