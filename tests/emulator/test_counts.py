import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.counts import largest_remainder
from tests.fakes import ints


def test_nothing_is_shared_over_no_lanes():
    assert largest_remainder(5, ints()).tolist() == []


@pytest.mark.slow
@given(st.integers(0, 200), st.lists(st.integers(0, 500), min_size=1, max_size=12))
def test_quotas_sum_to_the_total_and_are_within_one_of_proportion(total, sizes):
    columns = np.array(sizes)
    shares = largest_remainder(total, columns)
    if columns.sum() == 0:
        assert not shares.any()
        return
    assert shares.sum() == total
    exact = total * columns / columns.sum()
    assert (np.abs(shares - exact) < 1 + 1e-9).all()
    assert not shares[columns == 0].any()
    if total <= columns.sum():
        assert (shares <= columns).all()
    # No lane gets its extra visit before one with a larger remainder.
    remainder = total * columns % columns.sum()
    extra = shares > total * columns // columns.sum()
    assert remainder[extra].min(initial=1 << 40) >= remainder[~extra].max(initial=0)
