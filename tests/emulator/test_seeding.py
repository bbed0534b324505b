from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.arrays import Ints
from emulator.seeding import RandomStreams, generators


def drawn(seed: int, purpose: str, *key: int) -> list[float]:
    return RandomStreams(seed).generator(purpose, *key).random(8).tolist()


def test_a_key_names_the_same_numbers_for_ever() -> None:
    expected = [0.4166526846956641, 0.31853921570341337]
    assert drawn(7, "batches", 3, 1)[:2] == expected


def test_seed_purpose_and_every_part_of_the_key_each_make_another_stream() -> None:
    streams = [
        drawn(0, "data"),
        drawn(1, "data"),
        drawn(0, "noise"),
        drawn(0, "data", 0),
        drawn(0, "data", 1),
        drawn(0, "data", 0, 1),
        drawn(0, "data", 1, 0),
        drawn(0, "data", 0, 0),
    ]
    assert len({tuple(stream) for stream in streams}) == len(streams)


@pytest.mark.slow
@given(st.permutations(list(range(6))))
def test_the_order_in_which_streams_are_read_changes_none_of_them(order: list[int]) -> None:
    streams = RandomStreams(3)
    read = {client: streams.generator("batches", client).random() for client in order}
    assert read == {client: drawn(3, "batches", client)[0] for client in range(6)}


def test_every_call_starts_its_stream_anew() -> None:
    streams = RandomStreams(3)
    streams.generator("selection", 1).random(100)
    assert streams.generator("selection", 1).random(8).tolist() == drawn(3, "selection", 1)


def test_no_global_generator_is_read_or_seeded() -> None:
    def global_state() -> str:
        return repr((np.random.get_state(legacy=False), random.getstate()))  # noqa: NPY002

    first, before = drawn(5, "data", 1), global_state()
    assert drawn(5, "data", 1) == first
    assert global_state() == before
    np.random.random()  # noqa: NPY002
    assert drawn(5, "data", 1) == first


KEY = st.integers(0, 2**32 - 1)


@pytest.mark.slow
@given(
    seed=st.one_of(st.integers(0, 5), st.integers(0, 2**200)),
    fixed=st.lists(KEY, max_size=2),
    varying=st.lists(st.tuples(KEY, KEY), max_size=4),
    purpose=st.sampled_from(["batches", "data", ""]),
)
def test_streams_named_together_are_those_named_one_by_one(
    seed: int, fixed: list[int], varying: list[tuple[int, int]], purpose: str
) -> None:
    streams = RandomStreams(seed)
    columns: list[Ints] = [np.array([key[part] for key in varying], dtype=np.int64) for part in range(2)]
    together = [rng.random(5).tolist() for rng in generators(streams.keys(purpose, *fixed, *columns))]
    assert together == [streams.generator(purpose, *fixed, *key).random(5).tolist() for key in varying]


def test_a_generator_of_many_begins_anew_whatever_the_last_one_left() -> None:
    """Half of a 64-bit number, which numpy keeps for the next 32-bit draw, must not carry over."""
    streams = RandomStreams(3)
    for client, rng in enumerate(generators(streams.keys("batches", 1, np.arange(4)))):
        alone = streams.generator("batches", 1, client)
        for draw in (5, 1, 3):
            assert np.array_equal(rng.integers(0, 9, draw, np.uint32), alone.integers(0, 9, draw, np.uint32))
        assert np.array_equal(rng.permutation(17), alone.permutation(17))


@pytest.mark.parametrize("key", [-1, 2**32])
def test_a_key_that_does_not_fit_is_refused(key: int) -> None:
    with pytest.raises(ValueError, match=rf"from 0 to {key}|from {key} to 0"):
        RandomStreams(0).keys("batches", np.array([0, key]))
