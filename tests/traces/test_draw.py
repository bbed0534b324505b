from __future__ import annotations

import hashlib
import math
import tracemalloc
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from emulator.errors import ConfigurationError, InputError, RunError
from emulator.seeding import RandomStreams
from tests.traces.tiny import some_images
from traces.arrivals import DTYPES, SPLITS, Arrivals, num_noise_starts
from traces.draw import MAX_SAMPLES, StreamSettings, draw_trace, num_windows, refuse_oversize
from traces.images import ImageSet
from traces.tables.base import CHUNK_ROWS
from traces.tables.columns import MAPPED_FROM_BYTES
from traces.trace import Trace, TraceStream

SETTINGS = StreamSettings(rounds_per_step=5, retain_rounds=15, samples_per_step=20, test_samples_per_step=10)


def drawn(
    shares: object,
    seed: int = 0,
    settings: StreamSettings = SETTINGS,
    images: ImageSet | None = None,
    scratch: Path | None = None,
) -> Trace:
    images = images or some_images(3)
    by_client = np.array(shares, dtype=np.float64)  # (clients, windows, labels)
    return draw_trace(
        images,
        by_client.swapaxes(0, 1),
        num_clients=len(by_client),
        num_windows=by_client.shape[1],
        settings=settings,
        streams=RandomStreams(seed),
        scratch=scratch,
    )


def uniform(clients: int, windows: int) -> np.ndarray:
    return np.full((clients, windows, 3), 1 / 3)


@pytest.mark.parametrize(
    ("retain_rounds", "rounds_per_step", "steps"), [(50, 10, 5), (25, 10, 3), (3, 10, 1), (10, 10, 1)]
)
def test_retention_is_whole_steps_rounded_up(retain_rounds: int, rounds_per_step: int, steps: int) -> None:
    settings = StreamSettings(retain_rounds=retain_rounds, rounds_per_step=rounds_per_step)
    assert settings.retain_steps == steps


@pytest.mark.parametrize(("rounds", "steps"), [(1, 1), (5, 1), (6, 2), (250, 50)])
def test_a_run_needs_a_window_for_each_step_and_those_owned_from_the_start(rounds: int, steps: int) -> None:
    assert SETTINGS.num_steps(rounds) == steps
    assert num_windows(SETTINGS, rounds) == steps + 2


def test_every_client_receives_its_number_of_samples_in_every_window() -> None:
    trace = drawn(uniform(4, 6))
    table = trace.columns()
    assert len(trace) == 4 * 6 * 30
    for split, size in ((0, 20), (1, 10)):
        for client in range(4):
            arrival = table.arrival[(table.client == client) & (table.split == split)]
            assert np.bincount(arrival + 2).tolist() == [size] * 6  # windows arrive at steps -2 .. 3


def test_at_every_step_of_a_run_a_client_holds_what_it_retains() -> None:
    rounds = 17
    trace = drawn(uniform(2, num_windows(SETTINGS, rounds)))
    for round_ in range(rounds):
        step = round_ // SETTINGS.rounds_per_step
        assert trace.held(np.arange(2), "train", step).counts().tolist() == [60, 60]
        assert trace.held(np.arange(2), "test", step).counts().tolist() == [30, 30]


def test_labels_follow_their_window_and_client_and_a_share_of_zero_is_never_drawn() -> None:
    shares = [[[1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 0, 1], [0, 0, 1], [1, 0, 0]]]
    trace = drawn(shares)
    table = trace.columns()
    for client, by_window in enumerate(shares):
        for window, share in enumerate(by_window):
            rows = (table.client == client) & (table.arrival == window - 2)
            assert set(table.label[rows].tolist()) == {share.index(1)}


def test_labels_are_drawn_in_their_shares() -> None:
    settings = StreamSettings(retain_rounds=10, samples_per_step=40_000, test_samples_per_step=40_000)
    trace = drawn([[[0.6, 0.3, 0.1]]], settings=settings)
    table = trace.columns()
    for split in (0, 1):
        shares = np.bincount(table.label[table.split == split], minlength=3) / 40_000
        # four standard deviations of a share
        assert np.abs(shares - [0.6, 0.3, 0.1]).max() < 4 * np.sqrt(0.25 / 40_000)


def test_an_image_has_the_label_it_was_drawn_for_and_never_stands_on_both_sides() -> None:
    images = some_images(3, per_label=6)
    trace = drawn(uniform(5, 3), images=images)
    table = trace.columns()
    assert np.array_equal(images.labels[table.image], table.label)
    for split, pool in ((0, images.train), (1, images.test)):
        # a thousand draws of nine images: all nine, and no other
        assert set(table.image[table.split == split].tolist()) == set(pool.tolist())
    assert not set(images.train.tolist()) & set(images.test.tolist())


def test_the_same_seed_draws_the_same_trace_and_another_seed_another_one() -> None:
    shares = uniform(3, 3)
    digests = [drawn(shares, seed).digest() for seed in (0, 0, 1)]
    assert digests[0] == digests[1] != digests[2]


def test_how_many_test_samples_are_drawn_changes_no_training_sample() -> None:
    more = SETTINGS.model_copy(update={"test_samples_per_step": 11})
    few, many = (drawn(uniform(2, 3), settings=settings) for settings in (SETTINGS, more))
    few_train, many_train = (table.image[table.split == 0] for table in (few.columns(), many.columns()))
    assert few_train.tolist() == many_train.tolist()


def test_a_label_without_images_is_refused_only_where_it_is_drawn() -> None:
    full = some_images(3)
    images = ImageSet(
        full.pixels, full.scale, full.labels, 3, full.train, full.test[full.labels[full.test] != 2]
    )
    drawn([[[0.5, 0.5, 0.0]] * 3], images=images)
    with pytest.raises(InputError, match="label 2 is drawn, but the test images have none of it"):
        drawn([[[0.0, 0.0, 1.0]] * 3], images=images)


def window_shares(*windows: list[list[float]], num_windows: int = 2) -> Trace:
    """A trace of two clients, three labels and these windows of shares."""
    return draw_trace(
        some_images(3),
        map(np.array, windows),
        num_clients=2,
        num_windows=num_windows,
        settings=SETTINGS,
        streams=RandomStreams(0),
    )


EVEN = [[0.5, 0.5, 0.0]] * 2


@pytest.mark.parametrize(
    ("window", "complaint"),
    [
        ([[0.5, 0.4, 0.0], EVEN[0]], r"shares of client 0 in window 1 sum to 0\.9, the smallest is 0; must"),
        ([EVEN[0], [1.5, -0.5, 0.0]], r"client 1 in window 1 sum to 1, the smallest is -0\.5"),
        ([EVEN[0], [math.nan, 0.5, 0.5]], "client 1 in window 1 sum to nan"),
        ([[1.0]], r"window 1 have shape \(1, 1\); must be \(clients, labels\) = \(2, 3\)"),
        ([[0.25] * 4] * 2, r"window 1 have shape \(2, 4\)"),
    ],
)
def test_numbers_that_are_no_shares_are_refused(window: list[list[float]], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        window_shares(EVEN, window)


def test_shares_of_too_few_windows_are_refused() -> None:
    with pytest.raises(InputError, match="shares of 3 windows; must be of 4"):
        window_shares(EVEN, EVEN, EVEN, num_windows=4)


def test_shares_of_too_many_windows_are_refused_though_they_have_no_end() -> None:
    with pytest.raises(InputError, match="shares of more than 2 windows; must be of 2"):
        draw_trace(
            some_images(3),
            repeat(np.array(EVEN)),
            num_clients=2,
            num_windows=2,
            settings=SETTINGS,
            streams=RandomStreams(0),
        )


def test_shares_may_be_lists() -> None:
    even = draw_trace(
        some_images(3),
        [EVEN, EVEN],  # type: ignore[list-item]
        num_clients=2,
        num_windows=2,
        settings=SETTINGS,
        streams=RandomStreams(0),
    )
    assert len(even) == len(window_shares(EVEN, EVEN))


def test_a_trace_that_nobody_could_hold_is_refused_with_its_three_factors() -> None:
    absurd = StreamSettings(samples_per_step=10**9)
    with pytest.raises(ConfigurationError, match=r"200 clients x 54 steps of data x 1000000010 samples are"):
        refuse_oversize(absurd, 200, 54)
    just = StreamSettings(samples_per_step=15, test_samples_per_step=1)
    refuse_oversize(just, MAX_SAMPLES // 16, 1)
    with pytest.raises(ConfigurationError, match=r"lower samples_per_step, clients or round\.rounds"):
        refuse_oversize(just, MAX_SAMPLES // 16 + 1, 1)


def test_a_shorter_run_is_the_beginning_of_a_longer_one() -> None:
    everyone = np.arange(4)
    short, long = (drawn(uniform(4, windows)) for windows in (5, 8))
    for split in ("train", "test"):
        held = [trace.held(everyone, split, step=2) for trace in (short, long)]
        rows = [np.concatenate([ranges.rows(client) for client in range(4)]) for ranges in held]
        np.testing.assert_array_equal(short.labels(rows[0]), long.labels(rows[1]))
        np.testing.assert_array_equal(short.features(rows[0]), long.features(rows[1]))


def plainly_drawn(
    images: ImageSet, shares: np.ndarray, settings: StreamSettings, streams: RandomStreams
) -> Arrivals:
    """The reference: every window of a split drawn at once, all rows in memory, sorted.

    `shares` (clients, windows, num_labels).
    """
    parts = []
    for split, size in enumerate((settings.samples_per_step, settings.test_samples_per_step)):
        pool, start = images.by_label(SPLITS[split])
        for window in range(shares.shape[1]):
            generator = streams.generator("data", split, window)
            counts = generator.multinomial(size, shares[:, window])
            client, label = np.divmod(np.repeat(np.arange(counts.size), counts.ravel()), counts.shape[1])
            number = (generator.random(len(label)) * np.diff(start)[label]).astype(np.int64)
            noise_start = generator.integers(0, num_noise_starts(images), size=len(label), dtype=np.int32)
            arrival = np.full(len(label), window - settings.retain_steps + 1)
            parts.append(
                (client, np.full(len(label), split), arrival, label, pool[start[label] + number], noise_start)
            )
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.lexsort((columns[2], columns[1], columns[0]))
    return Arrivals(
        *(column[order].astype(dtype) for column, dtype in zip(columns, DTYPES.values(), strict=True))
    )


@pytest.mark.parametrize("chunk_rows", [7, CHUNK_ROWS])
@pytest.mark.parametrize("mapped_from", [1, MAPPED_FROM_BYTES])
def test_drawn_in_chunks_and_in_place_a_trace_has_the_bits_it_would_have_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, chunk_rows: int, mapped_from: int
) -> None:
    shares = np.random.default_rng(1).dirichlet([0.5] * 3, size=(11, 5))
    expected = plainly_drawn(some_images(3), shares, SETTINGS, RandomStreams(2))
    monkeypatch.setattr("traces.draw.CHUNK_ROWS", chunk_rows)
    monkeypatch.setattr("traces.trace.CHUNK_ROWS", chunk_rows)
    monkeypatch.setattr("traces.tables.columns.MAPPED_FROM_BYTES", mapped_from)
    trace = drawn(shares, seed=2, scratch=tmp_path)
    for name in DTYPES:
        assert np.array_equal(getattr(trace.columns(), name), getattr(expected, name))
    # The digest in the manifest: every column whole, the images in use, and the trace's arguments.
    state = hashlib.sha256()
    for name in DTYPES:
        state.update(getattr(expected, name).tobytes())
    state.update(some_images(3).features(np.unique(expected.image)).tobytes())
    state.update(repr((11, 3, 5, 0.0)).encode())
    assert trace.digest() == state.hexdigest()


@pytest.mark.slow
def test_the_memory_of_a_mapped_trace_does_not_grow_with_its_length(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("traces.tables.columns.MAPPED_FROM_BYTES", 1)
    monkeypatch.setattr("traces.trace.NOISE_NUMBERS", 2**10)
    settings = StreamSettings(rounds_per_step=1, retain_rounds=4, samples_per_step=3, test_samples_per_step=2)
    clients = 5000

    def peak_bytes(windows: int) -> int:
        tracemalloc.start()
        trace = draw_trace(
            some_images(3),
            (np.full((clients, 3), 1 / 3) for _ in range(windows)),
            num_clients=clients,
            num_windows=windows,
            settings=settings,
            streams=RandomStreams(0),
            scratch=tmp_path,
        )
        stream = TraceStream(trace)
        for round_ in range(windows - 3):
            stream.advance_to_round(round_)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert len(trace) == clients * windows * 5
        return peak

    peak_bytes(5)  # to import and cache what is needed
    short, long = peak_bytes(5), peak_bytes(20)
    assert long - short < 0.05 * short  # in memory, the columns of 15 windows would take twice `short`


def test_a_disk_without_room_is_refused_before_anything_is_drawn(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def never() -> Iterator[np.ndarray]:
        raise AssertionError("shares were drawn")
        yield

    monkeypatch.setattr("traces.tables.columns.MAPPED_FROM_BYTES", 1)
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=0))
    with pytest.raises(RunError, match=f"no room in {tmp_path} .* or lower trace.samples_per_step"):
        draw_trace(
            some_images(3),
            never(),
            num_clients=2,
            num_windows=3,
            settings=SETTINGS,
            streams=RandomStreams(0),
            scratch=tmp_path,
        )
