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
from traces.partitions.population import PartitionedImages, arrival_steps, follow


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


def drawn(
    kind: str, clients: int, seed: int = 0, starts_with: tuple[float, float] | None = None, **settings: Any
) -> Arrivals:
    part = PARTITIONS.find(kind)
    population = PartitionedImages(part(part.Settings.model_validate(settings)), starts_with)
    context = PopulationContext(StreamSettings(), clients, 5, starts_with is None, RandomStreams(seed))
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


# -- a partition that arrives -------------------------------------------------------------------------------


def arriving(sizes: list[int], shares: list[float], last_step: int, seed: int = 0) -> list[list[int]]:
    """[client][step] the images that arrive, if clients own so many."""
    clients = np.random.default_rng(9).permutation(np.repeat(np.arange(len(sizes)), sizes))
    steps = arrival_steps(clients, np.array(shares), last_step, 0, RandomStreams(seed))
    counts = np.zeros((len(sizes), last_step + 1), dtype=np.int64)
    np.add.at(counts, (clients, steps), 1)
    return counts.tolist()


def test_the_rest_of_a_clients_images_arrives_in_equal_parts() -> None:
    """Of 20, 10, 7 and 5 images 8, 1, 7 and 1 are there at the start; of the second's other 9, 9k/4 + u/4."""
    drawn = [arriving([20, 10, 7, 5], [0.4, 0.1, 1.0, 0.2], 4, seed) for seed in range(40)]
    for first, _, third, last in drawn:
        assert (first, third, last) == ([8, 3, 3, 3, 3], [7, 0, 0, 0, 0], [1, 1, 1, 1, 1])
    assert sorted({tuple(second) for _, second, _, _ in drawn}) == [
        (1, 2, 2, 2, 3),
        (1, 2, 2, 3, 2),
        (1, 2, 3, 2, 2),
        (1, 3, 2, 2, 2),
    ]


def test_a_client_with_fewer_images_than_steps_receives_them_spread_over_the_run() -> None:
    drawn = {tuple(arriving([3], [0.1], 6, seed)[0]) for seed in range(40)}
    assert drawn == {(1, 1, 0, 0, 1, 0, 0), (1, 0, 1, 0, 0, 1, 0), (1, 0, 0, 1, 0, 0, 1)}


def test_a_client_starts_with_its_share_rounded_but_at_least_one_image_and_at_most_all() -> None:
    counts = arriving([10, 10, 10, 1, 1], [0.01, 0.26, 0.96, 0.01, 1.0], 1)
    assert [client[0] for client in counts] == [1, 3, 10, 1, 1]


def test_a_longer_run_changes_neither_the_start_nor_the_order() -> None:
    clients, shares = np.arange(300) % 7, np.linspace(0.1, 0.5, 7)
    short, long = (arrival_steps(clients, shares, steps, 0, RandomStreams(4)) for steps in (3, 30))
    assert ((short == 0) == (long == 0)).all()
    for client in range(7):
        of_client = clients == client
        assert (np.diff(short[of_client][np.argsort(long[of_client], kind="stable")]) >= 0).all()


def test_images_arrive_in_an_order_of_each_client_and_split() -> None:
    """Two clients and two splits of equally many images: no two have the same order."""
    clients, shares = np.repeat([0, 1], 50), np.array([0.1, 0.1])
    orders = [
        arrival_steps(clients, shares, 45, split, RandomStreams(0))[clients == client].tolist()
        for split in (0, 1)
        for client in (0, 1)
    ]
    assert len({tuple(order) for order in orders}) == 4
    assert all(sorted(order) == sorted([*[0] * 5, *range(1, 46)]) for order in orders)


def test_all_images_at_the_start_are_those_of_a_partition_that_does_not_arrive() -> None:
    whole, arrived = drawn("shards", 15), drawn("shards", 15, starts_with=(1.0, 1.0))
    assert arrived.arrival.tolist() == [0] * 240
    for name in ("client", "split", "label", "image", "noise_start"):
        assert getattr(arrived, name).tolist() == getattr(whole, name).tolist()
