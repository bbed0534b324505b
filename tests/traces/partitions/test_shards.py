from __future__ import annotations

import numpy as np
import pytest

from emulator.arrays import Ints
from emulator.errors import ConfigurationError
from traces.partitions import Partition, Samples
from traces.partitions.shards import Quarters, QuartersSettings, Shards, ShardsSettings


def table(partition: Partition, labels: Ints, num_clients: int, seed: int = 0) -> Ints:
    """(clients, labels) the samples of each label that each client has."""
    clients = partition.divide(Samples(labels), num_clients, np.random.default_rng(seed))
    counts = np.zeros((num_clients, labels.max() + 1), dtype=np.int64)
    np.add.at(counts, (clients, labels), 1)
    return counts


def shards(per_client: int) -> Partition:
    return Shards(ShardsSettings(shards_per_client=per_client))


def quarters(*sizes: int) -> Partition:
    return Quarters(QuartersSettings.model_validate({"sizes": sizes} if sizes else {}))


def test_mnist_in_shards_is_as_published() -> None:
    # 100 clients with two of 200 shards of 300 images, which do not straddle labels of 6,000.
    counts = table(shards(2), np.random.default_rng(1).permutation(np.repeat(np.arange(10), 6000)), 100)
    assert {tuple(sorted(row[row > 0].tolist())) for row in counts} == {(300, 300), (600,)}
    assert counts.sum(axis=0).tolist() == [6000] * 10


def test_a_shard_may_straddle_labels_and_sizes_differ_by_at_most_one_per_shard() -> None:
    counts = table(shards(1), np.array([0, 0, 0, 1, 1, 1, 1]), 3)
    # Shards of 3, 2 and 2 in order of label: they are 000, 11 and 11.
    assert sorted(counts.tolist()) == [[0, 2], [0, 2], [3, 0]]
    counts = table(shards(1), np.array([0, 0, 1, 1, 1, 1, 1]), 3)
    assert sorted(counts.tolist()) == [[0, 2], [0, 2], [2, 1]]


def test_every_client_is_dealt_equally_many_shards() -> None:
    counts = table(shards(5), np.arange(60), 4)  # 20 shards of 3 labels
    assert counts.sum(axis=1).tolist() == [15] * 4
    for row in counts:
        by_shard = row.reshape(20, 3).sum(axis=1)
        assert sorted(by_shard.tolist()) == [0] * 15 + [3] * 5


def test_more_shards_than_samples_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="shards_per_client = 3: 4 clients with 3 shards each need"):
        table(shards(3), np.zeros(11, int), 4)


@pytest.mark.parametrize(
    ("per_class", "sizes", "parts"),
    [
        (6000, (), [1000, 1375, 1625, 2000]),  # Fashion-MNIST's training images: 1/6, 11/48, 13/48, 1/3
        (7000, (), [1167, 1604, 1896, 2333]),  # all of them: cut at 1166.7, 2770.8 and 4666.7
        (5000, (1500, 2250, 2750, 3500), [750, 1125, 1375, 1750]),  # CIFAR-10's training images
    ],
)
def test_quarters_have_the_published_proportions(
    per_class: int, sizes: tuple[int, ...], parts: list[int]
) -> None:
    counts = table(quarters(*sizes), np.repeat(np.arange(10), per_class), 20)
    for of_label in counts.T:
        assert sorted(of_label[of_label > 0].tolist()) == parts
    assert (counts > 0).sum(axis=1).tolist() == [2] * 20


@pytest.mark.parametrize("num_labels", [2, 3, 47])
def test_two_parts_of_a_client_are_always_of_different_classes(num_labels: int) -> None:
    labels = np.repeat(np.arange(num_labels), 48)
    layouts = set()
    for seed in range(10):
        counts = table(quarters(), labels, 2 * num_labels, seed)
        assert (counts > 0).sum(axis=1).tolist() == [2] * (2 * num_labels)
        assert {tuple(sorted(row[row > 0].tolist())) for row in counts.T} == {(8, 11, 13, 16)}
        layouts.add(counts.tobytes())
    assert len(layouts) > 1


def test_quarters_count_the_labels_that_there_are() -> None:
    counts = table(quarters(), np.repeat([0, 5, 9], 48), 6)
    assert counts.sum(axis=0).nonzero()[0].tolist() == [0, 5, 9]


@pytest.mark.parametrize(
    ("labels", "clients", "says"),
    [
        (np.repeat(np.arange(10), 9), 21, "clients = 21: must be 20, as quarters cuts each of 10 classes in"),
        (np.repeat(np.arange(5), 9), 20, "clients = 20: must be 10, as quarters cuts each of 5 classes into"),
        (np.zeros(9, int), 2, "parts of two classes, and all samples are of one"),
        (np.array([0, 1]), 2, "clients = 2: must be 4"),
    ],
)
def test_clients_that_do_not_fit_the_quarters_are_refused(labels: Ints, clients: int, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        table(quarters(), labels, clients)
