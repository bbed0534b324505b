from __future__ import annotations

import numpy as np
import pytest

from emulator.arrays import Ints
from emulator.errors import ConfigurationError
from traces.partitions import Samples
from traces.partitions.sizes import Iid, Lognormal, LognormalSettings, _with_minimum, equal_sizes


def lognormal(samples: int, clients: int, sigma: float, min_samples: int = 1, seed: int = 0) -> Ints:
    """The sizes of the clients."""
    partition = Lognormal(LognormalSettings(sigma=sigma, min_samples=min_samples))
    of_sample = partition.divide(Samples(np.zeros(samples, int)), clients, np.random.default_rng(seed))
    return np.bincount(of_sample)


def test_equal_sizes_differ_by_at_most_one() -> None:
    assert equal_sizes(10, 4).tolist() == [3, 3, 2, 2]
    assert equal_sizes(8, 4).tolist() == [2, 2, 2, 2]


def test_iid_clients_have_the_label_mix_of_all_data() -> None:
    labels = np.repeat([0, 1], [3000, 7000])
    clients = Iid(Iid.Settings()).divide(Samples(labels), 100, np.random.default_rng(0))
    assert np.bincount(clients).tolist() == [100] * 100
    of_label = np.bincount(clients[labels == 0])
    assert of_label.mean() == 30
    # Hypergeometric: 100 draws from 10,000, of which 3,000 are of label 0; the deviation is known to 7 %.
    assert of_label.var() == pytest.approx(100 * 0.3 * 0.7 * 9900 / 9999, rel=0.3)


@pytest.mark.parametrize(
    ("weights", "least", "total", "sizes"),
    [
        ([6, 3, 1], 1, 10, [6, 3, 1]),
        ([6, 3, 1], 1, 11, [7, 3, 1]),  # 6.6, 3.3 and 1.1: the largest remainder has one more
        ([8, 1, 1], 2, 10, [6, 2, 2]),  # the 6 that are left go to the first
        ([10, 3, 1], 3, 14, [8, 3, 3]),  # 10, 3 and 1; then 11 x 10/13 and 11 x 3/13 < 3; then 8
        ([1, 1, 1], 1, 5, [2, 2, 1]),
        ([1000, 1, 1], 4, 12, [4, 4, 4]),
        ([1, 0, 0], 1, 7, [5, 1, 1]),
    ],
)
def test_sizes_are_proportional_but_for_the_minimum(
    weights: list[float], least: int, total: int, sizes: list[int]
) -> None:
    assert _with_minimum(np.array(weights, dtype=float), least, total).tolist() == sizes


def test_logarithms_of_lognormal_sizes_have_the_standard_deviation_sigma() -> None:
    for sigma in (0.3, 1.0):
        sizes = lognormal(1_000_000, 2000, sigma)
        assert sizes.sum() == 1_000_000
        # Of 2,000 normal numbers, the deviation is known to 1.6 %; sizes are hundreds, so rounding is little.
        assert np.log(sizes).std() == pytest.approx(sigma, rel=0.05)


def test_without_spread_lognormal_sizes_are_equal() -> None:
    assert lognormal(10, 4, 0.0).tolist() == [3, 3, 2, 2]


def test_every_client_has_the_minimum_however_wide_the_spread_is() -> None:
    sizes = lognormal(1000, 50, 100.0, min_samples=7)
    assert sizes.min() == 7
    assert sizes.max() == 1000 - 49 * 7  # one client has all the rest


def test_a_minimum_that_the_samples_do_not_suffice_for_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="min_samples = 4: 3 clients cannot each have 4 of 11 samp"):
        lognormal(11, 3, 1.0, min_samples=4)
