"""All objectives keep their contract, and it finds what breaks it."""

from __future__ import annotations

from functools import partial

import pytest
from torch import Tensor

from executor.objectives import OBJECTIVES
from executor.objectives.labels import Labels
from experiments.contracts import check_objective
from tests.executor.fakes import objective

SETTINGS = {"squared_error": {"tolerance": 0.5}, "absolute_error": {"tolerance": 0.5}}


@pytest.mark.parametrize("kind", OBJECTIVES.names())
def test_ours_keep_it(kind: str) -> None:
    check_objective(partial(objective, kind, **SETTINGS.get(kind, {})))


class OfBatch(Labels):
    def losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return super().losses(outputs - outputs.mean(), targets) * outputs.mean().abs()


class Doubled(Labels):
    def hits(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return 2 * super().hits(outputs, targets)


class Mean(Labels):
    def losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return self.loss(outputs, targets)


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        (OfBatch, "depend on the others"),
        (Doubled, r"hits must be in \[0, 1\]"),
        (Mean, "losses must have shape"),
    ],
)
def test_what_breaks_it_is_found(kind: type[Labels], problem: str) -> None:
    with pytest.raises(AssertionError, match=problem):
        check_objective(lambda: kind(kind.Settings()))
