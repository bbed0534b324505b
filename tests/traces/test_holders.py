"""Who is certain to hold samples, however test samples are drawn."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from traces.arrivals import STEPS_AHEAD, Arrivals, TestOn
from traces.held_out import held_out
from traces.holders import CertainHolders
from traces.tables.flipped_labels import FlippedLabels
from traces.tables.sorted import SortedTable
from traces.trace import CHECKED_FIRST, growing_parts

SHARES = (0.0, 0.2, 0.5, 0.75, 1.0)


def table_of(client: np.ndarray, label: np.ndarray, at: np.ndarray, test: np.ndarray) -> SortedTable:
    numbers = np.zeros(len(client), dtype=np.int32)
    return SortedTable(Arrivals(client, test.astype(np.int8), at, label, numbers, numbers), 3, None)


def both_held(table: SortedTable, client: int, retain: int, step: int, test_on: TestOn) -> bool:
    ids, newest = np.array([client]), step + STEPS_AHEAD[test_on]
    since = step - retain + 1 if test_on == "present" else newest
    ranges = (table.ranges(ids, 0, step - retain + 1, step + 1), table.ranges(ids, 1, since, newest + 1))
    return all(last[0] > first[0] for first, last in ranges)


@given(
    st.lists(st.tuples(*(st.integers(0, most) for most in (2, 2, 3))), min_size=1, max_size=40),
    st.sampled_from(SHARES),
    st.integers(1, 3),
    st.sampled_from(("present", "next")),
    st.integers(0, 2**32 - 1),
)
def test_who_is_certain_to_hold_both_splits_does_with_any_seed(
    rows: list[tuple[int, int, int]], share: float, retain: int, test_on: TestOn, seed: int
) -> None:
    client, label, at = np.array(rows, dtype=np.int32).T
    drawn = [
        table_of(client, label, at, held_out(client, label, at, share, np.random.default_rng([seed, k])))
        for k in range(3)
    ]
    flipped = FlippedLabels(drawn[0], np.array([1]), num_labels=3)
    for table in (drawn[0], flipped):
        certain = CertainHolders(table, retain, 2, share, test_on)
        for step in range(4):
            for one in range(3):
                if certain.anybody_holds(np.array([one]), ("train", "test"), step):
                    assert all(both_held(other, one, retain, step, test_on) for other in drawn)


def test_six_samples_of_a_label_have_a_test_sample_of_every_five_and_four_may_have_none() -> None:
    """With a share of 0.2; retained for one step, so that four of the second client's six count."""
    client, at = np.repeat([0, 1], 6).astype(np.int32), np.array([0] * 6 + [1, 1, 0, 0, 0, 0], dtype=np.int32)
    table = table_of(client, np.zeros(12, dtype=np.int32), at, np.arange(12) % 5 == 0)
    certain = CertainHolders(table, 1, 2, 0.2)
    assert [certain.anybody_holds(np.array([k]), ("train", "test"), 0) for k in (0, 1)] == [True, False]
    assert (certain.num_clients, certain.rounds_per_step, certain.concepts) == (3, 2, None)


def test_tests_on_what_arrives_next_need_six_samples_of_a_label_in_the_next_step() -> None:
    """With a share of 0.2: at step 0 two samples of another label are enough to have one to train on."""
    client, at = np.repeat([0, 1], 8).astype(np.int32), np.tile([0, 0, *[1] * 6], 2).astype(np.int32)
    at[-1] = 2  # of the second client five arrive at step 1
    table = table_of(client, np.minimum(at, 1), at, np.arange(16) % 5 == 0)
    certain = CertainHolders(table, 2, 2, 0.2, "next")
    assert [certain.anybody_holds(np.array([k]), ("train", "test"), 0) for k in (0, 1)] == [True, False]
    assert not certain.anybody_holds(np.array([0]), ("train", "test"), 1)


def test_parts_grow_and_have_every_client_once() -> None:
    ids = np.arange(5 * CHECKED_FIRST)
    parts = list(growing_parts(ids))
    assert [len(part) for part in parts] == [CHECKED_FIRST, 2 * CHECKED_FIRST, 2 * CHECKED_FIRST]
    assert np.array_equal(np.concatenate(parts), ids)
