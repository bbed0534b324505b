"""The table whose rows expire against a scan of its rows."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.seeding import RandomStreams
from tests.traces.tables.test_even_and_sorted import IMAGES, chunks_of, mapped_from, random_arrivals
from traces.arrivals import SPLITS, Arrivals
from traces.tables.base import NEVER
from traces.tables.expiring import ExpiringTable
from traces.trace import Trace, TraceStream

CLIENTS = 3


@dataclass(frozen=True)
class Rows:
    """Arrivals in random order, and when each expires; those of a slot expire in the order of arrival."""

    arrivals: Arrivals
    expiry: np.ndarray

    def held(self, client: int, split: int, step: int, since: int = -99) -> list[int]:
        """The labels of what is held at `step`, of the arrivals from `since` on, in ascending order."""
        of = (self.arrivals.client == client) & (self.arrivals.split == split) & (self.expiry > step)
        of &= (self.arrivals.arrival <= step) & (self.arrivals.arrival >= since)
        return sorted(self.arrivals.label[of].tolist())


def some_rows(drawn: list[tuple[int, int, int, int]], seed: int) -> Rows:
    client, split, arrival, lasts = np.array([(0, 0, 0, 9), (0, 1, 0, 9), *drawn]).T
    expiry = arrival + lasts
    for number in range(CLIENTS * len(SPLITS)):  # later arrivals expire no earlier, and the last ones never
        of = np.flatnonzero(client * len(SPLITS) + split == number)
        of = of[np.lexsort((expiry[of], arrival[of]))]
        expiry[of] = np.maximum.accumulate(expiry[of])
    expiry = np.where(expiry > 9, NEVER, expiry).astype(np.int32)
    shuffled = np.random.default_rng(seed).permutation(len(client))
    arrivals = random_arrivals(client[shuffled], split[shuffled], arrival[shuffled], seed)
    return Rows(arrivals, expiry[shuffled])


def trace_of_rows(rows: Rows, seed: int = 0) -> Trace:
    return Trace(
        IMAGES,
        ExpiringTable(rows.arrivals, rows.expiry, CLIENTS, None),
        retain_steps=NEVER,
        rounds_per_step=1,
        noise=0.0,
        generator=RandomStreams(seed).generator("noise"),
    )


some = st.lists(
    st.tuples(st.integers(0, CLIENTS - 1), st.integers(0, 1), st.integers(-3, 6), st.integers(1, 5)),
    max_size=30,
)


@given(some, st.integers(0, 99), st.sampled_from([1, 2**26]))
def test_what_is_held_is_what_arrived_and_has_not_expired(
    drawn: list[tuple[int, int, int, int]], seed: int, mapped: int
) -> None:
    rows, everyone = some_rows(drawn, seed), np.arange(CLIENTS)
    with mapped_from(mapped):
        table = ExpiringTable(rows.arrivals, rows.expiry, CLIENTS, None)
    table.seal()
    for step in range(9):
        for split in range(len(SPLITS)):
            for retain in (NEVER, 2):  # as where clients are tested on what arrives next, it is a bound
                first, last = table.held(everyone, split, step, retain)
                for client in everyone.tolist():
                    held = np.arange(first[client], last[client])
                    since = -99 if retain == NEVER else step - 1
                    assert sorted(table.take("label", held).tolist()) == rows.held(client, split, step, since)
                    assert (table.expiry(held) > step).all()
        first, last = table.arrived(everyone, 1, 4, step, NEVER)
        for client in everyone.tolist():
            expected = rows.held(client, 0, step, 1)
            newer = rows.held(client, 0, step, 4)
            held = np.arange(first[client], last[client])
            assert len(held) == len(expected) - len(newer)


@given(some, st.integers(0, 99), st.lists(st.integers(1, 4), max_size=5), st.sampled_from([1, 2**18]))
def test_label_counts_and_news_follow_what_is_held_also_over_skipped_steps(
    drawn: list[tuple[int, int, int, int]], seed: int, jumps: list[int], chunk: int
) -> None:
    rows, everyone = some_rows(drawn, seed), np.arange(CLIENTS)
    steps = np.cumsum([0, *jumps]).tolist()
    with chunks_of(chunk):
        stream = TraceStream(trace_of_rows(rows))
        for before, step in pairwise([-1, *steps]):
            changed = stream.advance_to_round(step)
            shares = stream.label_histograms(everyone)
            for client in everyone.tolist():
                held = rows.held(client, 0, step)
                expected = np.bincount(held, minlength=3) / max(1, len(held))
                assert np.allclose(shares[client], expected, rtol=0, atol=1e-12)
                of = (rows.arrivals.client == client) & (rows.arrivals.split == 0)
                came = of & (rows.arrivals.arrival > before) & (rows.arrivals.arrival <= step)
                went = of & (rows.arrivals.arrival <= before) & (rows.expiry > before) & (rows.expiry <= step)
                assert before < 0 or (client in changed) == bool((came | went).any())
            assert stream.holding.tolist() == [bool(rows.held(client, 0, step)) for client in everyone]


def test_the_digest_of_a_trace_has_when_its_rows_expire() -> None:
    rows = some_rows([(1, 0, 0, 2)], seed=1)
    later = Rows(rows.arrivals, np.where(rows.expiry == 2, 3, rows.expiry))
    assert trace_of_rows(rows).digest() == trace_of_rows(rows).digest()
    assert trace_of_rows(rows).digest() != trace_of_rows(later).digest()


def test_rows_of_other_tables_carry_no_expiry() -> None:
    from traces.tables.sorted import SortedTable

    table = SortedTable(some_rows([], seed=0).arrivals, CLIENTS, None)
    assert not table.expires
    with pytest.raises(ValueError, match="carry no expiry"):
        table.expiry(np.arange(1))
