"""Both tables against sorted rows that are scanned, in memory and mapped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.seeding import RandomStreams
from tests.traces.tiny import some_images
from traces.arrivals import DTYPES, SPLITS, Arrivals
from traces.tables.base import Table
from traces.tables.even import EvenTable
from traces.tables.sorted import SortedTable
from traces.trace import Trace, TraceStream

IMAGES = some_images(3)


@dataclass(frozen=True)
class Sizes:
    """The sizes of an even table."""

    clients: int
    steps: int
    split: tuple[int, int]
    first_step: int


@contextmanager
def mapped_from(num_bytes: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("traces.tables.columns.MAPPED_FROM_BYTES", num_bytes)
        yield


@contextmanager
def chunks_of(rows: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module in ("tables.even", "tables.sorted", "trace"):
            patch.setattr(f"traces.{module}.CHUNK_ROWS", rows)
        yield


def in_order(arrivals: Arrivals) -> Arrivals:
    """The reference: all rows in memory, sorted."""
    order = np.lexsort((arrivals.arrival, arrivals.split, arrivals.client))
    return Arrivals(**{name: getattr(arrivals, name)[order] for name in DTYPES})


def random_arrivals(client: np.ndarray, split: np.ndarray, arrival: np.ndarray, seed: int) -> Arrivals:
    """Rows of these clients, splits and arrivals, with random labels, images and noise."""
    generator = np.random.default_rng(seed)
    n = len(client)
    return Arrivals(
        client.astype(np.int32),
        split.astype(np.int8),
        arrival.astype(np.int32),
        generator.integers(0, 3, n).astype(np.int16),
        generator.integers(0, 12, n).astype(np.int32),
        generator.integers(0, 1000, n).astype(np.int32),
    )


def check(table: Table, expected: Arrivals, num_clients: int) -> None:
    """Check that every query of `table` equals a scan of the sorted rows."""
    assert len(table) == len(expected.client)
    everyone, rows = np.arange(num_clients), np.arange(len(table))
    for name in DTYPES:
        column = table.column(name, 0, num_clients)
        assert column.dtype == DTYPES[name]
        assert np.array_equal(column, getattr(expected, name))
        for first, last in ((0, 1), (1, num_clients)):
            of = (expected.client >= first) & (expected.client < last)
            assert np.array_equal(table.column(name, first, last), getattr(expected, name)[of])
    for name in ("label", "image", "noise_start"):
        assert np.array_equal(table.take(name, rows[::-1]), getattr(expected, name)[::-1])
        assert np.array_equal(np.sort(table.stored(name)), np.sort(getattr(expected, name)))
    for split in range(len(SPLITS)):
        for since, until in ((-9, 20), (-1, 1), (0, 1), (1, 4), (2, 2), (3, 1), (7, 30)):
            starts, stops = table.ranges(everyone[::-1], split, since, until)
            for client, start, stop in zip(everyone[::-1], starts, stops, strict=True):
                of = (expected.client == client) & (expected.split == split)
                of &= (expected.arrival >= since) & (expected.arrival < until)
                assert np.arange(start, stop).tolist() == np.flatnonzero(of).tolist()
        since_each = np.arange(num_clients) - 1
        starts, stops = table.ranges(everyone, split, since_each, 3)
        for client in everyone.tolist():
            of = (expected.client == client) & (expected.split == split)
            each = of & (expected.arrival >= since_each[client]) & (expected.arrival < 3)
            assert np.arange(starts[client], stops[client]).tolist() == np.flatnonzero(each).tolist()
    assert np.array_equal(table.arrival(np.arange(len(table))), expected.arrival)
    for step in range(table.first_step, table.last_step + 1):
        of = (expected.split == 0) & (expected.arrival == step)
        chunks = list(table.trained_at(step))
        client = np.concatenate([client for client, _ in chunks]) if chunks else np.zeros(0)
        label = np.concatenate([label for _, label in chunks]) if chunks else np.zeros(0)
        assert np.array_equal(client, expected.client[of])
        assert np.array_equal(label, expected.label[of])


sizes = st.builds(
    Sizes,
    clients=st.integers(1, 5),
    steps=st.integers(1, 6),
    split=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    first_step=st.integers(-2, 0),
)


def even(of: Sizes, arrivals: Arrivals, scratch: Path | None) -> EvenTable:
    """`arrivals`, which must be even, written block by block."""
    table = EvenTable(IMAGES, of.clients, of.steps, of.split, of.first_step, scratch)
    rows = in_order(arrivals)
    for split in range(len(SPLITS)):
        for window in range(of.steps):
            here = (rows.split == split) & (rows.arrival == of.first_step + window)
            block = table.block(split, window)
            for name in block._fields:
                getattr(block, name)[:] = getattr(rows, name)[here]
    table.seal()
    return table


def even_arrivals(of: Sizes, seed: int) -> Arrivals:
    shape = (of.clients, of.steps)
    cells = [np.repeat(np.indices(shape).reshape(2, -1), size, axis=1) for size in of.split]
    client, window = np.concatenate(cells, axis=1)
    split = np.repeat([0, 1], [cell.shape[1] for cell in cells])
    shuffled = np.random.default_rng(seed).permutation(len(client))
    return random_arrivals(client[shuffled], split[shuffled], of.first_step + window[shuffled], seed)


@given(sizes, st.integers(0, 99), st.sampled_from([1, 2**26]), st.sampled_from([1, 3, 2**18]))
def test_an_even_table_equals_its_sorted_rows(of: Sizes, seed: int, mapped: int, chunk: int) -> None:
    arrivals = even_arrivals(of, seed)
    with mapped_from(mapped), chunks_of(chunk):
        check(even(of, arrivals, None), in_order(arrivals), of.clients)


@given(
    st.integers(1, 5),
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 1), st.integers(-3, 9)), max_size=40),
    st.sampled_from([1, 2**26]),
    st.sampled_from([1, 3, 2**18]),
)
def test_a_sorted_table_equals_its_sorted_rows_also_where_nothing_arrives(
    num_clients: int, rows: list[tuple[int, int, int]], mapped: int, chunk: int
) -> None:
    client, split, arrival = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    arrivals = random_arrivals(client % num_clients, split, arrival, seed=len(rows))
    with mapped_from(mapped), chunks_of(chunk):
        check(SortedTable(arrivals, num_clients, None), in_order(arrivals), num_clients)


@settings(max_examples=8)
@given(sizes, st.integers(1, 3), st.lists(st.integers(1, 5), max_size=5), st.sampled_from([1, 2**18]))
def test_a_trace_is_the_same_whichever_table_it_is_laid_out_in(
    of: Sizes, retain: int, jumps: list[int], chunk: int
) -> None:
    if of.first_step + of.steps <= 0 or of.first_step <= -retain:
        retain = of.steps + 3  # so that every client has data at the start
    arrivals = even_arrivals(of, seed=7)

    def trace(table: Table) -> Trace:
        return Trace(
            IMAGES,
            table,
            retain_steps=retain,
            rounds_per_step=1,
            noise=0.5,
            generator=RandomStreams(0).generator("noise"),
        )

    with mapped_from(1), chunks_of(chunk):
        even_trace = trace(even(of, arrivals, None))
    sorted_trace = trace(SortedTable(arrivals, of.clients, None))
    with chunks_of(chunk):
        assert even_trace.digest() == sorted_trace.digest()
    rows, everyone = np.arange(len(even_trace)), np.arange(of.clients)
    assert np.array_equal(even_trace.features(rows), sorted_trace.features(rows))
    streams = TraceStream(even_trace), TraceStream(sorted_trace)
    for round_ in np.cumsum([0, *jumps]).tolist():
        changed = [stream.advance_to_round(round_).tolist() for stream in streams]
        assert changed[0] == changed[1]
        assert np.array_equal(*(stream.label_histograms(everyone) for stream in streams))


def test_counts_are_held_in_the_smallest_integers_that_do_and_never_run_over() -> None:
    # 200 samples of label 1 arrive at each of steps 0 to 3 and are held for two: 400 do not fit into a byte.
    of = Sizes(clients=2, steps=4, split=(200, 1), first_step=0)
    arrivals = even_arrivals(of, seed=0)
    arrivals.label[:] = 1
    for retain in (1, 2):
        trace = Trace(
            IMAGES,
            even(of, arrivals, None),
            retain_steps=retain,
            rounds_per_step=1,
            noise=0.0,
            generator=RandomStreams(0).generator("noise"),
        )
        stream = TraceStream(trace)
        for round_ in range(6):
            stream.advance_to_round(round_)
            held = 0.0 if round_ > 2 + retain else 1.0
            assert stream.label_histograms(np.arange(2)).tolist() == [[0.0, held, 0.0]] * 2
