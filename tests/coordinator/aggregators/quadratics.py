"""Four clients with quadratic losses of unequal curvature, and streams in which one comes and goes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coordinator.assignment import Assignment
from emulator.arrays import Floats
from tests.fakes import FakeStream

CURVATURE = np.array([1.0, 2.0, 0.5, 3.0])

LEAVES = FakeStream(np.ones((2, 4, 1)), 100, holding=[[True] * 4, [True] * 3 + [False]])
RETURNS = FakeStream(np.ones((3, 4, 1)), 50, holding=[[True] * 4, [True] * 3 + [False], [True] * 4])


def optimum(minimum: Floats, clients: Sequence[int]) -> float:
    """Where the sum of the clients' slopes is 0, each of which has its own `minimum` (4,)."""
    curvature, own = CURVATURE[list(clients)], minimum[list(clients)]
    return float((curvature * own).sum() / curvature.sum())


def moves(members: Sequence[int]) -> Assignment:
    return Assignment.moved(np.array(members), 2)
