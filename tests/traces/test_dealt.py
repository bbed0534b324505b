from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from emulator.arrays import Floats, Ints
from emulator.errors import InputError
from emulator.seeding import RandomStreams
from tests.traces.tiny import some_images
from traces.arrivals import Arrivals
from traces.dealt import dealt_table
from traces.held_out import is_test
from traces.images import ImageSet

# Two groups, three windows, two labels; the second group is not observed in window 1.
COUNTS = np.array([[[7, 0], [1, 2], [0, 4]], [[3, 3], [0, 0], [5, 1]]])


def dealt(counts: Any = COUNTS, seed: int = 0, images: ImageSet | None = None, **settings: Any) -> Arrivals:
    settings = {"clients_per_group": 2, "test_share": 0.25, "retain_steps": 1, **settings}
    return dealt_table(
        images or some_images(2), np.array(counts), streams=RandomStreams(seed), **settings
    ).arrivals()


def counted(rows: Arrivals, clients_per_group: int) -> Ints:
    """(groups, windows, labels) the samples of both splits, counted again."""
    window = rows.arrival - rows.arrival.min()
    counts = np.zeros_like(COUNTS)
    np.add.at(counts, (rows.client // clients_per_group, window, rows.label), 1)
    return counts


@pytest.mark.parametrize("clients_per_group", [1, 2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_every_observation_is_a_sample_of_one_client_of_its_group(clients_per_group: int, seed: int) -> None:
    rows = dealt(seed=seed, clients_per_group=clients_per_group)
    assert counted(rows, clients_per_group).tolist() == COUNTS.tolist()


def test_the_clients_of_a_group_receive_equally_many_in_a_window_or_one_more() -> None:
    rows = dealt([[[7, 4]], [[6, 6]]], clients_per_group=3)
    sizes = np.bincount(rows.client, minlength=6)
    assert sorted(sizes[:3].tolist()) == [3, 4, 4]
    assert sizes[3:].tolist() == [4, 4, 4]
    # Who receives less, and which labels, is drawn.
    draws = [dealt([[[7, 4]]], seed, clients_per_group=3) for seed in range(20)]
    assert {int(np.bincount(rows.client, minlength=3).argmin()) for rows in draws} == {0, 1, 2}
    assert len({np.bincount(rows.client[rows.label == 0], minlength=3).tobytes() for rows in draws}) > 3


def test_a_window_that_clients_own_from_the_start_arrives_before_step_0() -> None:
    assert np.unique(dealt(retain_steps=2).arrival).tolist() == [-1, 0, 1]


def test_the_last_step_is_that_of_the_last_window_even_if_nobody_was_observed_in_it() -> None:
    counts = np.array([[[4, 4], [4, 4], [0, 0]]])
    settings: dict[str, Any] = {"clients_per_group": 1, "test_share": 0.5, "retain_steps": 1}
    assert dealt_table(some_images(2), counts, streams=RandomStreams(0), **settings).last_step == 2


@pytest.mark.parametrize("share", [0.1, 0.2, 0.5, 0.75])
@pytest.mark.parametrize("seed", range(3))
def test_any_stretch_of_a_clients_label_has_its_share_of_test_samples(share: float, seed: int) -> None:
    rows = dealt([[[40, 1], [17, 0], [3, 2], [25, 1]]], seed, clients_per_group=1, test_share=share)
    in_time = rows.arrival[rows.label == 0].argsort(kind="stable")
    tested = rows.split[rows.label == 0][in_time]
    windows = np.array([40, 17, 3, 25])
    per_window = np.add.reduceat(tested, np.cumsum(windows) - windows)
    # Of n in a row, n * share rounded up or down; in all windows together too.
    assert (np.abs(per_window - windows * share) < 1).all()
    assert abs(int(tested.sum()) - 85 * share) < 1


def test_a_rare_label_is_a_test_sample_as_often_as_a_frequent_one() -> None:
    start: Floats = np.random.default_rng(0).random(20_000)
    once = is_test(np.zeros(20_000, dtype=np.int64), start, 0.2)
    assert abs(once.mean() - 0.2) < 4 * np.sqrt(0.2 * 0.8 / 20_000)


def test_samples_have_images_of_their_label_and_split() -> None:
    images = some_images(2, per_label=6)
    rows = dealt([[[60, 60]]], images=images)
    assert np.array_equal(images.labels[rows.image], rows.label)
    for split, pool in ((0, images.train), (1, images.test)):
        assert set(rows.image[rows.split == split].tolist()) <= set(pool.tolist())


def test_a_shorter_trace_is_the_beginning_of_a_longer_one() -> None:
    long, short = dealt(COUNTS), dealt(COUNTS[:, :2])
    beginning = long.take(np.flatnonzero(long.arrival < 2))
    for name, column in vars(short).items():
        assert getattr(beginning, name).tolist() == column.tolist(), name


def test_an_observed_label_without_images_is_refused() -> None:
    full = some_images(2)
    images = ImageSet(
        full.pixels, full.scale, full.labels, 2, full.train, full.test[full.labels[full.test] != 1]
    )
    with pytest.raises(InputError, match="label 1 is drawn, but the test images have none of it"):
        dealt([[[0, 40]]], images=images)
