"""Updates of several waves as one table: each answer is that of a table that has all rows."""

from __future__ import annotations

import numpy as np
import pytest

from coordinator.federation.training.joined import JoinedUpdates
from emulator.arrays import Ints
from emulator.messages import ArrayUpdates, Updates

COUNT, WIDTH = 9, 5
PLACES = [np.array([0, 4, 5]), np.array([1, 8]), np.array([2, 3, 6, 7])]
"""Where the rows of three waves are among all, as when several dispatches come back together."""


def whole() -> ArrayUpdates:
    """All rows in one table, whose sums are exact: small whole numbers, in groups that are the waves."""
    rng = np.random.default_rng(2)
    rows = np.arange(COUNT)
    group = np.zeros(COUNT, dtype=np.int64)
    for number, place in enumerate(PLACES):
        group[place] = number
    delta = rng.integers(-8, 9, (COUNT, WIDTH)).astype(np.float32)
    delta[3, 1] = np.nan
    return ArrayUpdates(
        client=rows + 20,
        model=rows % 3,
        num_samples=rows,
        num_steps=rows + 1,
        delta=delta,
        metrics={
            "loss": rows / 2,
            "batch_losses": np.where(np.arange(4) < 1 + rows[:, None] % 4, 0.5, np.nan),
        },
        state={"slot": rng.integers(0, 9, (COUNT, WIDTH)).astype(np.float32), "number": delta[:, :1]},
        group=group,
    )


def joined(table: ArrayUpdates) -> JoinedUpdates:
    """The same rows in three waves, in which batches have as many columns as the wave's longest task."""
    parts = []
    for place in PLACES:
        part = table.take(place)
        width = int((~np.isnan(part.metrics["batch_losses"])).sum(axis=1).max())
        part.metrics["batch_losses"] = part.metrics["batch_losses"][:, :width]  # type: ignore[index]
        parts.append(part)
    return JoinedUpdates.of(parts, PLACES)


def assert_same(ours: Updates, theirs: Updates) -> None:
    vectors = np.arange(2.0 * WIDTH).reshape(2, WIDTH)
    for name in ("client", "model", "num_samples", "num_steps", "staleness", "finite"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), err_msg=name)
    for name in ("metrics", "state"):
        columns, expected = getattr(ours, name), getattr(theirs, name)
        assert columns.keys() == expected.keys()
        for key, column in expected.items():
            np.testing.assert_array_equal(columns[key], column, err_msg=key)
    assert len(ours) == len(theirs)
    weights = np.stack([np.arange(len(ours)), np.ones(len(ours))])
    np.testing.assert_array_equal(ours.weighted_sum(weights), theirs.weighted_sum(weights))
    np.testing.assert_array_equal(ours.gram(), theirs.gram())
    np.testing.assert_array_equal(ours.norms(), theirs.norms())
    np.testing.assert_array_equal(ours.project(vectors), theirs.project(vectors))
    for columns in (slice(None), slice(1, 3)):
        np.testing.assert_array_equal(ours.rows(columns), theirs.rows(columns))


@pytest.mark.parametrize(
    "rows",
    [np.arange(COUNT), np.array([0, 2, 8]), np.array([1]), np.array([3, 4, 5, 6, 7]), np.array([0, 4, 5])],
    ids=str,
)
def test_updates_of_three_waves_are_those_of_one_table(rows: Ints) -> None:
    table = whole()
    ours, theirs = joined(table).take(rows), table.take(rows)
    assert_same(ours, theirs)
    model, staleness = theirs.model + 4, np.arange(len(rows))
    assert_same(ours.absorbed(model, staleness), theirs.absorbed(model, staleness))


def test_rows_may_be_taken_after_they_were_absorbed() -> None:
    table, rows = whole(), np.array([1, 2, 7])
    model, staleness = np.arange(COUNT) * 10, np.arange(COUNT) % 4
    assert_same(
        joined(table).absorbed(model, staleness).take(rows), table.absorbed(model, staleness).take(rows)
    )


def test_the_sum_of_a_wave_comes_before_that_of_all_of_them() -> None:
    """In double precision 1 is lost beside 2^53 where it is added to it, but not in a wave of its own."""
    big, one = np.float32(2.0**53), np.float32(1)
    waves = [[big], [one, one, one, one]]
    parts = [
        ArrayUpdates(*(np.arange(len(rows)),) * 4, delta=np.array(rows, dtype=np.float32)[:, None])
        for rows in waves
    ]
    together = JoinedUpdates.of(parts, [np.array([0]), np.array([1, 2, 3, 4])])
    assert together.weighted_sum(np.ones((1, 5))).tolist() == [[2.0**53 + 4]]
