import numpy as np
import pytest

from coordinator.aggregators.trimmed_mean import TrimmedMean, TrimmedMeanSettings
from tests.coordinator.aggregators.arrived import arrived, zero_models


def moved(delta, trim: float, **more) -> list[list[float]]:
    updates = arrived(delta, **more)
    part = TrimmedMean(TrimmedMeanSettings(trim=trim))
    return part.aggregate(updates, zero_models(1, updates.delta.shape[1])).tolist()


@pytest.mark.parametrize(
    ("trim", "centre"),
    [
        (0, 20.5),  # (1 + 2 + 3 + 4 - 8 + 121) / 6
        (0.1, 20.5),  # 0.6 of an update at each end: none
        (0.17, 2.5),  # (1 + 2 + 3 + 4) / 4
        (0.34, 2.5),  # (2 + 3) / 2
        (0.49, 2.5),
    ],
)
def test_the_share_is_left_out_at_each_end_rounded_down(trim, centre):
    assert moved([4, 1, -8, 3, 121, 2], trim) == [[centre]]


def test_a_share_is_the_decimal_it_is_written_as():
    # 0.29 x 100 is 28.999... in binary; 29 are left out at each end.
    delta = [-1e6] * 29 + [1.0] * 42 + [1e6] * 29
    assert moved(delta, 0.29) == [[1]]


def test_each_parameter_leaves_out_its_own():
    assert moved([[1, 9], [2, -50], [60, 7], [3, 8]], 0.25) == [[2.5, 7.5]]


def test_the_order_of_the_rows_changes_no_bit():
    delta = np.random.default_rng(0).normal(size=(20, 30))
    assert moved(delta, 0.1) == moved(delta[::-1], 0.1)


def test_samples_are_no_weights_but_an_update_without_samples_is_left_out():
    assert moved([1, 2, 3, 90], 0, num_samples=[1000, 1, 1, 0]) == [[2]]


def test_half_of_all_cannot_be_left_out():
    with pytest.raises(ValueError, match=r"less than 0\.5"):
        TrimmedMeanSettings(trim=0.5)
