from __future__ import annotations

import numpy as np

from experiments.results.figures.over_rounds import single


def test_numbers_that_single_precision_does_not_hold_are_drawn_at_its_end():
    drawn = single(np.array([0.1, np.nan, 1e100, -1e100]))
    assert drawn.dtype == np.float32
    assert drawn[0] == np.float32(0.1)
    assert np.isnan(drawn[1])
    assert drawn[2:].tolist() == [np.float32(3e38), np.float32(-3e38)]
