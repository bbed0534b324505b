from __future__ import annotations

import numpy as np
import pytest

from executor.sharing import share


def test_the_heaviest_piece_goes_first_and_to_the_rank_with_least() -> None:
    assert share(np.array([1, 9, 5, 4]), 2).tolist() == [0, 0, 1, 1]


def test_of_equals_the_lowest_piece_goes_first_and_to_the_lowest_rank() -> None:
    assert share(np.array([2, 2, 2, 2]), 3).tolist() == [0, 1, 2, 0]


@pytest.mark.parametrize(("pieces", "size"), [(0, 2), (1, 3), (40, 1), (40, 7)])
def test_every_piece_has_a_rank_and_no_rank_much_more_than_another(pieces: int, size: int) -> None:
    weights = np.random.default_rng(pieces).integers(1, 100, pieces)
    owner = share(weights, size)
    assert owner.shape == (pieces,)
    loads = np.bincount(owner, weights, minlength=size)
    assert loads.sum() == weights.sum()
    assert loads.max() - loads.min() <= weights.max(initial=0)
