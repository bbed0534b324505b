from __future__ import annotations

import numpy as np
import pytest

from emulator.arrays import Ints
from emulator.errors import ConfigurationError
from traces.partitions import Samples
from traces.partitions.dirichlet import Dirichlet, DirichletSettings, _log_gamma, _whole_requests


def table(labels: Ints, num_clients: int, seed: int = 0, **settings: object) -> Ints:
    """(clients, labels) the samples of each label that each client has."""
    partition = Dirichlet(DirichletSettings.model_validate(settings))
    clients = partition.divide(Samples(labels), num_clients, np.random.default_rng(seed))
    counts = np.zeros((num_clients, labels.max() + 1), dtype=np.int64)
    np.add.at(counts, (clients, labels), 1)
    return counts


def test_clients_that_draw_mixes_have_equal_sizes() -> None:
    labels = np.repeat([0, 1, 2], [50, 30, 23])
    for alpha in (1e-6, 0.1, 1, 1e9):
        counts = table(labels, 10, alpha=alpha)
        assert sorted(counts.sum(axis=1).tolist()) == [10] * 7 + [11] * 3
        assert counts.sum(axis=0).tolist() == [50, 30, 23]


def test_with_hardly_any_concentration_a_client_has_one_label() -> None:
    # Of each label there are samples for two clients exactly, so that the third that wants them gets none.
    counts = table(np.repeat(np.arange(10), 100), 20, alpha=1e-6)
    assert np.sort(counts, axis=1).tolist() == [[0] * 9 + [50]] * 20


def test_the_last_clients_take_what_is_left() -> None:
    # Each client wants 10 samples of one label; as label 0 has 6, a client has to take 4 of label 1, or all.
    counts = table(np.repeat([0, 1], [6, 14]), 2, alpha=1e-6)
    assert sorted(counts.tolist()) in ([[0, 10], [6, 4]],)


def test_the_spread_of_label_mixes_is_that_of_the_dirichlet_distribution() -> None:
    # A client's share of a label has mean p and variance p (1 - p) / (alpha + 1), but for the last clients,
    # who take what is left.
    labels = np.repeat(np.arange(10), 20_000)
    for alpha, within in ((0.1, 0.03), (1.0, 0.06), (9.0, 0.1)):
        share = table(labels, 1000, alpha=alpha) / 200
        assert share.mean(axis=0).tolist() == pytest.approx([0.1] * 10)
        assert share.var() == pytest.approx(0.1 * 0.9 / (alpha + 1), rel=within)


def test_the_prior_of_a_mix_is_the_data() -> None:
    counts = table(np.repeat([0, 1], [20_000, 180_000]), 200, alpha=1e9)
    assert abs(counts - [100, 900]).max() <= 1


@pytest.mark.slow
def test_shares_of_a_class_have_the_mean_and_variance_of_the_dirichlet_distribution() -> None:
    # 500 classes of 1,000 samples are 500 independent draws of 10 shares of mean 1/10 and variance
    # (1/10) (9/10) / (10 alpha + 1).
    labels = np.repeat(np.arange(500), 1000)
    for alpha in (0.1, 0.5, 5.0):
        share = table(labels, 10, per="class", alpha=alpha) / 1000
        variance = 0.09 / (10 * alpha + 1)
        assert share.sum(axis=0).tolist() == pytest.approx([1.0] * 500)
        # The mean of 500 shares is known to its standard error, and 5,000 shares give their variance to 5 %.
        assert abs(share.mean(axis=1) - 0.1).max() < 4 * np.sqrt(variance / 500)
        assert share.var() == pytest.approx(variance, rel=0.15)


def test_with_equal_shares_each_class_is_divided_equally() -> None:
    counts = table(np.repeat([0, 1], [40, 60]), 4, per="class", alpha=1e9)
    assert counts.tolist() == [[10, 15]] * 4


def test_shares_are_drawn_again_until_every_client_has_enough() -> None:
    labels = np.repeat(np.arange(10), 100)
    for seed in range(20):
        sizes = table(labels, 10, seed, per="class", alpha=0.5).sum(axis=1)
        assert sizes.min() >= 10
        assert sizes.sum() == 1000
    # Alike to the first draw that has enough: with any minimum below, the first draw is kept.
    first = table(labels, 10, 3, per="class", alpha=5, min_samples=1)
    assert first.sum(axis=1).min() > 20
    assert first.tolist() == table(labels, 10, 3, per="class", alpha=5, min_samples=20).tolist()


def test_a_minimum_out_of_reach_is_refused_after_100_draws() -> None:
    labels = np.repeat([0, 1], 50)
    with pytest.raises(
        ConfigurationError,
        match=r"min_samples = 10: in 100 draws with alpha = 0\.001 the smallest of 4 clients had 0 of 100 sa",
    ):
        table(labels, 4, per="class", alpha=0.001)
    with pytest.raises(ConfigurationError, match="min_samples = 26: 4 clients cannot each have 26 of 100"):
        table(labels, 4, per="class", min_samples=26)


def test_an_array_of_shares_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("traces.partitions.dirichlet.MAX_CELLS", 19)
    labels = np.repeat([0, 1], 50)
    assert table(labels, 9).sum() == 100
    with pytest.raises(ConfigurationError, match="of 2 classes among 10 clients is larger than the 19"):
        table(labels, 10)


def test_requests_are_rounded_to_either_side_and_are_equal_in_expectation() -> None:
    mix, wanted = [0.25, 0.05, 0.7], 10
    requests = _whole_requests(np.full(10_000, wanted), np.tile(mix, (10_000, 1)), np.random.default_rng(0))
    assert np.unique(requests[:, 0]).tolist() == [2, 3]
    assert np.unique(requests[:, 1]).tolist() == [0, 1]
    assert np.unique(requests.sum(axis=1)).tolist() == [10]
    assert requests.mean(axis=0).tolist() == pytest.approx([2.5, 0.5, 7], abs=4 * 0.5 / 100)


def test_gamma_numbers_have_their_mean_and_small_shapes_do_not_underflow() -> None:
    generator = np.random.default_rng(0)
    for shape in (0.3, 2.0):
        drawn = np.exp(_log_gamma(np.full(100_000, shape), generator))
        assert drawn.mean() == pytest.approx(shape, abs=4 * np.sqrt(shape / 100_000))
        assert drawn.var() == pytest.approx(shape, rel=0.05)
    assert np.isfinite(_log_gamma(np.full(1000, 1e-12), generator)).all()
