"""What holds for every partition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from emulator.arrays import Ints
from emulator.errors import ConfigurationError
from emulator.plugins import NoSettings
from traces.partitions import PARTITIONS, Partition, Samples
from traces.partitions.base import dealt, shuffled_by_label

SETTINGS: list[tuple[str, dict[str, Any]]] = [
    ("column", {"column": "camera"}),
    ("dirichlet", {"alpha": 0.1}),
    ("dirichlet", {"alpha": 1.0, "per": "class", "min_samples": 1}),
    ("iid", {}),
    ("lognormal", {"sigma": 2}),
    ("quarters", {}),
    ("shards", {}),
]


def partition(kind: str, **settings: Any) -> Partition:
    part = PARTITIONS.find(kind)
    return part(part.Settings.model_validate(settings))


def divided(kind: str, labels: Ints, num_clients: int | None, seed: int = 0, **settings: Any) -> Ints:
    return partition(kind, **settings).divide(Samples(labels), num_clients, np.random.default_rng(seed))


def counts(clients: Ints, labels: Ints) -> Ints:
    """(clients, labels) the samples of each label that each client has."""
    table = np.zeros((clients.max() + 1, labels.max() + 1), dtype=np.int64)
    np.add.at(table, (clients, labels), 1)
    return table


def test_partitions_go_by_name() -> None:
    assert PARTITIONS.names() == ["column", "dirichlet", "iid", "lognormal", "quarters", "shards"]


@pytest.mark.parametrize(("kind", "settings"), SETTINGS)
@pytest.mark.parametrize("num_labels", [2, 3, 10])
def test_every_sample_has_one_client_and_every_client_some_samples(
    kind: str, settings: dict[str, Any], num_labels: int
) -> None:
    generator = np.random.default_rng(num_labels)
    labels = np.concatenate([np.arange(num_labels), generator.integers(num_labels, size=397)])
    num_clients = 2 * num_labels
    samples = Samples(labels, {"camera": np.arange(len(labels)) % num_clients})
    for seed in range(5):
        clients = partition(kind, **settings).divide(samples, num_clients, np.random.default_rng(seed))
        assert clients.shape == labels.shape
        assert np.unique(clients).tolist() == list(range(num_clients))


@pytest.mark.parametrize(("kind", "settings"), [item for item in SETTINGS if item[0] != "column"])
def test_a_seed_names_one_partition(kind: str, settings: dict[str, Any]) -> None:
    labels = np.arange(300) % 5
    first, same, other = (divided(kind, labels, 10, seed, **settings) for seed in (1, 1, 2))
    assert first.tolist() == same.tolist() != other.tolist()


@pytest.mark.parametrize("kind", ["dirichlet", "iid", "lognormal", "shards"])
def test_more_clients_than_samples_are_refused(kind: str) -> None:
    with pytest.raises(ConfigurationError, match="8 clients cannot each have one of 7 samples; lower cl"):
        divided(kind, np.arange(7) % 2, 8)
    with pytest.raises(ConfigurationError, match="must be given a number of clients"):
        divided(kind, np.arange(7) % 2, None)


def test_a_client_without_samples_is_refused_and_named() -> None:
    class Favouring(Partition):
        """Client 2 has all samples."""

        Settings = NoSettings

        def assign(self, samples: Samples, num_clients: int, generator: np.random.Generator) -> Ints:
            return np.full(len(samples), 2)

    with pytest.raises(ConfigurationError, match=r"client 0 has no samples \(3 of 4 clients have none of "):
        Favouring(NoSettings()).divide(Samples(np.zeros(9, np.int64)), 4, np.random.default_rng(0))


def test_samples_are_shuffled_within_their_label_only() -> None:
    labels = np.array([2, 0, 1, 0, 2, 0])
    orders = {tuple(shuffled_by_label(labels, np.random.default_rng(seed)).tolist()) for seed in range(100)}
    assert {tuple(labels[list(order)].tolist()) for order in orders} == {(0, 0, 0, 1, 2, 2)}
    assert len(orders) == 6 * 2


def test_runs_of_an_order_go_to_their_owners() -> None:
    clients = dealt(np.array([4, 2, 0, 1, 3]), owners=np.array([1, 0, 1]), sizes=np.array([2, 2, 1]))
    assert clients.tolist() == [0, 0, 1, 1, 1]


@pytest.mark.parametrize(
    ("kind", "settings", "says"),
    [
        ("dirichlet", {"alpha": 0}, "alpha"),
        ("dirichlet", {"min_samples": 5}, "min_samples = 5: with per = 'client' all clients have equally"),
        ("lognormal", {"sigma": -1}, "sigma"),
        ("quarters", {"sizes": [1, 2, 3]}, "sizes"),
        ("shards", {"shards_per_client": 0}, "shards_per_client"),
        ("iid", {"alpha": 1}, "unknown key 'alpha'"),
        ("column", {}, "column"),
    ],
)
def test_settings_that_make_no_sense_are_refused(kind: str, settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        partition(kind, **settings)
