from __future__ import annotations

import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.seeding import RandomStreams


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


@settings(deadline=None)
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
