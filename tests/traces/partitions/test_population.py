from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from emulator.arrays import Ints
from emulator.errors import ConfigurationError, InputError
from emulator.seeding import RandomStreams
from tests.traces.tiny import some_images
from traces.arrivals import Arrivals
from traces.draw import StreamSettings
from traces.drift import PopulationContext
from traces.partitions import PARTITIONS
from traces.partitions.population import PartitionedImages, follow


def followed(cells: list[list[int]], tests: list[int], seed: int = 0) -> list[list[int]]:
    """[client][label] the test images, if clients have the training images of `cells` [client][label]."""
    sizes = np.array(cells)
    client, label = (index.ravel() for index in np.indices(sizes.shape))
    clients, train = np.repeat(client, sizes.ravel()), np.repeat(label, sizes.ravel())
    test = np.repeat(np.arange(len(tests)), tests)
    order = np.random.default_rng(9).permutation(len(train))
    of_test = follow(clients[order], train[order], test, len(cells), np.random.default_rng(seed))
    counts = np.zeros((len(cells), len(tests)), dtype=np.int64)
    np.add.at(counts, (of_test, test), 1)
    assert counts.sum(axis=0).tolist() == tests
    return counts.tolist()


def drawn(kind: str, clients: int, seed: int = 0, **settings: Any) -> Arrivals:
    part = PARTITIONS.find(kind)
    population = PartitionedImages(part(part.Settings.model_validate(settings)))
    context = PopulationContext(StreamSettings(), clients, 5, True, RandomStreams(seed))
    return population.draw(some_images(6, 40), context).arrivals()


@pytest.mark.parametrize("seed", range(5))
def test_test_images_are_in_proportion_to_training_images(seed: int) -> None:
    assert followed([[30], [20], [10]], [6], seed) == [[3], [2], [1]]
    assert followed([[30, 0], [20, 0], [0, 10]], [10, 3], seed) == [[6, 0], [4, 0], [0, 3]]
    assert followed([[20, 20]] * 3, [12, 12], seed) == [[4, 4]] * 3


def test_a_client_is_tested_on_its_mix_up_to_rounding() -> None:
    cells = np.random.default_rng(0).integers(0, 60, size=(8, 5)) * np.arange(1, 6)
    tests = cells.sum(axis=0) // 4
    quota = cells * tests / cells.sum(axis=0)
    for seed in range(5):
        counts = np.array(followed(cells.tolist(), tests.tolist(), seed))
        assert abs(counts - quota).max() < 3
        assert abs(counts.sum(axis=1) - quota.sum(axis=1)).max() < 3


def test_a_small_client_has_a_test_image_though_its_part_is_less_than_one() -> None:
    cells = [[90, 0], [90, 0], [1, 1], [0, 1]]
    for seed in range(5):
        counts = np.array(followed(cells, [3, 2], seed))
        assert counts.sum(axis=1).min() == 1
        assert (counts[np.array(cells) == 0] == 0).all()


def test_with_more_test_than_training_images_all_are_followed_equally_often_or_once_more() -> None:
    assert followed([[2], [1]], [6]) == [[4], [2]]
    assert followed([[2], [1]], [7]) == [[4], [3]]  # the first image of the smaller client comes first


def test_clients_that_would_have_no_test_image_are_refused() -> None:
    with pytest.raises(
        ConfigurationError,
        match=r"client \d has no test image of its labels \(1 of 3 clients have none; there are 6 test",
    ):
        followed([[5, 0], [5, 0], [0, 5]], [1, 5])


def test_a_label_that_only_tests_have_is_refused() -> None:
    with pytest.raises(InputError, match="label 2 has test images, but no training images"):
        followed([[3, 3], [3, 3]], [2, 2, 1])


@pytest.mark.parametrize(
    ("kind", "clients", "settings"),
    [
        ("dirichlet", 8, {"alpha": 0.3}),
        ("dirichlet", 4, {"per": "class"}),
        ("iid", 20, {}),
        ("lognormal", 10, {}),
        ("quarters", 12, {}),
        ("shards", 15, {}),
    ],
)
def test_every_image_belongs_to_one_client_in_its_split_with_its_label(
    kind: str, clients: int, settings: dict[str, Any]
) -> None:
    arrivals, images = drawn(kind, clients, **settings), some_images(6, 40)
    assert sorted(arrivals.image.tolist()) == list(range(240))
    assert images.labels[arrivals.image].tolist() == arrivals.label.tolist()
    assert np.isin(arrivals.image[arrivals.split == 1], images.test).all()
    assert np.isin(arrivals.image[arrivals.split == 0], images.train).all()
    assert np.unique(arrivals.arrival).tolist() == [0]
    table = held(arrivals, clients)
    assert (table.sum(axis=2) > 0).all()
    assert (table[1][table[0] == 0] == 0).all()  # nobody is tested on a label that it does not train on


def held(arrivals: Arrivals, clients: int) -> Ints:
    """(2, clients, 6) the samples of each split, client and label."""
    counts = np.zeros((2, clients, 6), dtype=np.int64)
    np.add.at(counts, (arrivals.split, arrivals.client, arrivals.label), 1)
    return counts


def test_a_seed_draws_one_population() -> None:
    first, same, other = (drawn("dirichlet", 8, seed, alpha=0.3) for seed in (1, 1, 2))
    for name in ("client", "image", "noise_start"):
        assert getattr(first, name).tolist() == getattr(same, name).tolist()
    assert first.image.tolist() != other.image.tolist()
