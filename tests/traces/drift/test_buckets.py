"""With as many samples as labels, a client has one of each: what it holds shows which buckets it has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from emulator.errors import ConfigurationError
from emulator.seeding import RandomStreams
from tests.traces.tiny import some_images
from traces.arrivals import SPLITS, Arrivals
from traces.draw import StreamSettings
from traces.drift import PopulationContext
from traces.drift.buckets import Buckets, BucketsSettings

CLIENTS = 5
ONE_OF_EACH = {"labels_per_client": 4, "buckets": 2, "samples_per_client": 4}


def population(retain: int = 1, steps: int = 2, static: bool = False, seed: int = 0) -> PopulationContext:
    settings = StreamSettings(
        rounds_per_step=10, retain_rounds=10 * retain, samples_per_step=2, test_samples_per_step=1
    )
    return PopulationContext(settings, CLIENTS, steps, static, RandomStreams(seed))


def drawn(context: PopulationContext, num_labels: int = 6, per_label: int = 8, **settings: Any) -> Arrivals:
    buckets = Buckets(BucketsSettings.model_validate(ONE_OF_EACH | settings))
    return buckets.draw(some_images(num_labels, per_label), context).arrivals()


def labels_at(arrivals: Arrivals, client: int, split: int = 0) -> dict[int, list[int]]:
    """The labels of the client's samples of a split, ascending, by the step at which they arrive."""
    rows = (arrivals.client == client) & (arrivals.split == split)
    steps = np.unique(arrivals.arrival[rows]).tolist()
    return {step: sorted(arrivals.label[rows & (arrivals.arrival == step)].tolist()) for step in steps}


def test_one_bucket_arrives_at_each_step_and_all_together_are_the_clients_labels() -> None:
    arrivals = drawn(population())
    owned = set()
    for client in range(CLIENTS):
        at = labels_at(arrivals, client)
        assert list(at) == [0, 1]
        assert [len(labels) for labels in at.values()] == [2, 2]
        assert len({*at[0], *at[1]}) == 4
        assert labels_at(arrivals, client, split=1) == at
        owned.add((*at[0], *at[1]))
    assert len(owned) > 1


@pytest.mark.parametrize(
    ("after", "at_start", "arrive"),
    [
        ("none", 1, {0: 0, 1: 1}),
        ("repeat", 1, {0: 0, 1: 1, 2: 0, 3: 1}),
        ("repeat", 2, {-1: 0, 0: 1, 1: 0, 2: 1, 3: 0}),
    ],
)
def test_after_the_last_bucket_none_arrives_or_they_arrive_again_in_their_order(
    after: str, at_start: int, arrive: dict[int, int]
) -> None:
    retain = 3 if after == "none" else 2
    first = list(labels_at(drawn(population()), 3).values())  # the buckets of client 3, in their order
    at = labels_at(drawn(population(retain, steps=4), after=after, at_start=at_start), 3)
    assert at == {step: first[bucket] for step, bucket in arrive.items()}


def test_a_bucket_that_arrives_again_has_the_same_images_and_noise() -> None:
    arrivals = drawn(population(steps=4), after="repeat", samples_per_client=20)
    for name in ("label", "image", "noise_start"):
        column = getattr(arrivals, name)
        assert column[arrivals.arrival == 0].tolist() == column[arrivals.arrival == 2].tolist()


def test_labels_are_cut_into_buckets_that_differ_by_at_most_one() -> None:
    arrivals = drawn(population(steps=3), labels_per_client=5, buckets=3, samples_per_client=5)
    for client in range(CLIENTS):
        assert sorted(map(len, labels_at(arrivals, client).values())) == [1, 2, 2]


def test_a_client_owns_its_samples_some_of_each_label_and_half_as_many_for_tests() -> None:
    arrivals = drawn(population(), samples_per_client=21, per_label=80)
    uneven = 0
    for client in range(CLIENTS):
        train, test = (
            np.bincount(arrivals.label[(arrivals.client == client) & (arrivals.split == split)], minlength=6)
            for split in range(len(SPLITS))
        )
        assert train.sum() == 21
        assert (train > 0).sum() == 4
        assert test.tolist() == [-(-count // 2) for count in train.tolist()]
        uneven += train.max() > 10
    assert uneven  # Dirichlet(0.5): some client has half of its samples of one label


def test_without_a_number_of_samples_a_client_owns_a_steps_for_each_bucket() -> None:
    arrivals = drawn(population(), samples_per_client=None)  # two buckets of two
    assert np.bincount(arrivals.client[arrivals.split == 0]).tolist() == [4] * CLIENTS


def test_a_client_has_no_image_twice_while_there_are_enough_and_images_show_their_labels() -> None:
    arrivals = drawn(population(), num_labels=4, per_label=40, samples_per_client=20)
    images = some_images(4, 40)
    assert images.labels[arrivals.image].tolist() == arrivals.label.tolist()
    for split, pool in enumerate((images.train, images.test)):
        of_split = arrivals.split == split
        assert set(arrivals.image[of_split].tolist()) <= set(pool.tolist())
        for client in range(CLIENTS):
            image = arrivals.image[of_split & (arrivals.client == client)]
            assert len(np.unique(image)) == len(image)


def test_a_shorter_run_is_the_beginning_of_a_longer_one() -> None:
    short, long = (drawn(population(steps=steps), after="repeat") for steps in (2, 6))
    begin = np.flatnonzero(long.arrival < 2)
    for name in ("client", "split", "arrival", "label", "image", "noise_start"):
        assert getattr(short, name).tolist() == getattr(long, name)[begin].tolist()


def test_static_data_has_all_buckets_from_the_start() -> None:
    arrivals = drawn(population(steps=9, static=True), at_start=2)
    assert np.unique(arrivals.arrival).tolist() == [-1, 0]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"labels_per_client": 2, "buckets": 3}, "buckets = 3: must be at most labels_per_client = 2"),
        ({"at_start": 3}, "at_start = 3: must be at most buckets = 2"),
    ],
)
def test_more_buckets_than_there_are_is_refused(settings: dict[str, int], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        BucketsSettings.model_validate(ONE_OF_EACH | settings)


@pytest.mark.parametrize(
    ("settings", "context", "says"),
    [
        ({"labels_per_client": 7}, population(), "labels_per_client = 7: the images have 6 labels"),
        (
            {"samples_per_client": 3},
            population(),
            "samples_per_client = 3: must be at least labels_per_client",
        ),
        ({"at_start": 2}, population(retain=1), "at_start = 2: clients keep the buckets of .* = 1 steps"),
        (
            {"after": "repeat"},
            population(retain=3),
            "buckets = 2: a bucket would arrive again while it is kept",
        ),
        ({}, population(retain=2, steps=4), "the last of 2 buckets expires in round 30, from which"),
        ({}, population(static=True), "static = true nothing arrives after the start: at_start = 1 must be"),
        ({"at_start": 2, "after": "repeat"}, population(static=True), "and after 'none'"),
        ({"samples_per_client": 10**8}, population(), "lower trace.drift.samples_per_client, trace.clients"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(
    settings: dict[str, Any], context: PopulationContext, says: str
) -> None:
    with pytest.raises(ConfigurationError, match=says) as caught:
        drawn(context, **settings)
    assert "\n" not in str(caught.value)


def test_buckets_last_until_the_last_one_expires() -> None:
    arrivals = drawn(population(retain=2, steps=3))
    assert arrivals.arrival.max() == 1  # kept for two steps, of which the second is the last of the run


@pytest.mark.parametrize(
    ("settings", "steps_with_onsets"),
    [
        ({"buckets": 2}, [1]),
        ({"buckets": 4}, [1, 2, 3]),
        ({"buckets": 4, "at_start": 3}, [1]),
        ({"buckets": 2, "after": "repeat"}, [1, 2, 3]),
        ({"buckets": 1, "after": "repeat"}, []),
    ],
)
def test_every_client_has_an_onset_with_each_bucket_of_other_labels(
    settings: dict[str, Any], steps_with_onsets: list[int]
) -> None:
    retain = 1 if settings.get("after") == "repeat" else 4
    buckets = Buckets(BucketsSettings.model_validate(ONE_OF_EACH | settings))
    context, images = population(retain, steps=4), some_images(6, 8)
    table, onsets = buckets.draw_with_onsets(images, context)
    assert np.array_equal(table.arrivals().image, buckets.draw(images, context).arrivals().image)
    assert onsets.step.tolist() == np.repeat(steps_with_onsets, CLIENTS).tolist()
    assert onsets.client.tolist() == list(range(CLIENTS)) * len(steps_with_onsets)
    at = labels_at(table.arrivals(), client=2)
    assert [step for step in range(1, 4) if step in at and at[step] != at[step - 1]] == steps_with_onsets


def test_the_bucket_of_the_step_after_the_run_is_no_onset() -> None:
    arrivals = StreamSettings(rounds_per_step=1, retain_rounds=1, test_on="next")
    context = PopulationContext(arrivals, CLIENTS, 3, False, RandomStreams(0))  # two data steps, and the next
    buckets = Buckets(BucketsSettings(labels_per_client=3, buckets=3, after="repeat"))
    onsets = buckets.draw_with_onsets(some_images(6, 8), context)[1]
    assert onsets.step.tolist() == [1] * CLIENTS
