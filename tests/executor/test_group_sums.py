from __future__ import annotations

import numpy as np
import pytest

from executor.group_sums import GroupWeights, sent_rows, summed, unfolded


@pytest.mark.parametrize("counted", [0, 1, 3, 6])
def test_sums_or_rows_are_sent_whichever_are_less(counted: int) -> None:
    rows = np.random.default_rng(1).standard_normal((6, 40)).astype(np.float32)
    weights = np.zeros((2, 6))
    weights[:, :counted] = 0.25
    sent = summed(weights, rows)
    assert sent.shape == ((counted if counted <= 4 else 2), 40)
    assert len(sent) == sent_rows(weights)
    whole = np.zeros((2, 40))
    for row in range(counted):
        whole += 0.25 * rows[row].astype(np.float64)
    assert unfolded(sent, weights).tolist() == whole.tolist()


def test_a_group_without_weights_sends_nothing() -> None:
    groups = [np.array([0, 2]), np.array([1]), np.array([3])]
    weights = GroupWeights.over(np.array([[1.0, 0.0, 2.0, 0.0], [0.0, 0.0, 0.5, 3.0]]), groups)
    assert weights.among([0, 1, 2]) == [0, 2]
    assert [models.tolist() for models in weights.models] == [[0, 1], [], [1]]
    packed = {0: np.array([[1, 2], [10, 20]], dtype=np.float32), 2: np.array([[1, 1]], dtype=np.float32)}
    assert weights.total(packed, 2).tolist() == [[21.0, 42.0], [8.0, 13.0]]
