"""The rows of a changed table, by column and by arrival, worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from emulator.seeding import RandomStreams
from tests.traces.tiny import Row, trace_of
from traces.arrivals import SPLITS
from traces.changes.changed import with_changes
from traces.changes.settings import Change
from traces.tables.changed import ChangedTable

# Clients 0 and 1 receive a training sample at each step from 0 to 3, held for two; and a test sample at 0.
ROWS: list[Row] = [(client, 0, step, client) for client in (0, 1) for step in range(4)]
ROWS += [(client, 1, 0, client) for client in (0, 1)]


def table(**change: Any) -> ChangedTable:
    """The table in which client 1 calls label 1 label 0 from step 2 on."""
    plain = trace_of(ROWS, retain_steps=2, test_retain_steps=9, test_then_train=False)
    settings = {"what": "xor", "on": "held", "at_step": 2, "clients": {"names": [1]}, **change}
    trace = with_changes(plain, [Change.model_validate(settings)], 4, RandomStreams(0))
    assert isinstance(trace.table, ChangedTable)
    return trace.table


def columns(changed: ChangedTable) -> list[tuple[int, ...]]:
    names = ("client", "split", "arrival", "label")
    return list(zip(*(changed.column(name, 0, 2).tolist() for name in names), strict=True))


def test_columns_have_what_a_client_ever_receives_in_order() -> None:
    changed = table()
    of_one = [
        (1, 0, 0, 1),
        (1, 0, 1, 1),
        (1, 0, 2, 0),
        (1, 0, 2, 0),
        (1, 0, 3, 0),
        (1, 1, 0, 1),
        (1, 1, 2, 0),
    ]
    assert columns(changed) == [*[(0, 0, step, 0) for step in range(4)], (0, 1, 0, 0), *of_one]
    assert [changed.column("label", 1, 2).tolist()] == [[label for *_, label in of_one]]


def test_rows_behind_the_table_before_are_those_that_differ_alone() -> None:
    changed = table()
    rows = changed.arrivals()
    assert len(rows.client) == len(changed) == len(ROWS) + 4  # two of step 2, one of 3, and a test sample
    behind = slice(len(ROWS), None)
    assert rows.client[behind].tolist() == [1] * 4
    assert rows.arrival[behind].tolist() == [2, 2, 3, 2]
    assert changed.arrival(np.arange(len(changed))).tolist() == rows.arrival.tolist()
    assert changed.take("label", np.array([len(ROWS), 0])).tolist() == [0, 0]


def test_arrivals_of_a_step_are_those_of_the_table_in_force() -> None:
    changed = table()
    arriving = [
        sorted(
            (int(c), int(label))
            for clients, labels in changed.trained_at(step)
            for c, label in zip(clients, labels, strict=True)
        )
        for step in range(4)
    ]
    assert arriving == [[(0, 0), (1, 1)]] * 2 + [[(0, 0), (1, 0), (1, 0)], [(0, 0), (1, 0)]]


def test_without_a_reset_what_is_held_at_the_first_changed_arrival_lies_behind_too() -> None:
    changed = table(on="arrivals")
    assert len(changed) == len(ROWS) + 3  # of steps 1, 2 and 3; no test sample arrives
    first, last = changed.held(np.array([0, 1]), 0, 2, 2)
    assert (last - first).tolist() == [2, 2]
    assert changed.take("label", np.arange(first[1], last[1])).tolist() == [1, 0]
    received = [(client, split, step) for client, split, step, _ in columns(changed)]
    assert received == sorted((client, split, step) for client, split, step, _ in ROWS)


def test_labels_are_in_no_one_place() -> None:
    with pytest.raises(ValueError, match="not stored in one place"):
        table().stored("label")
    assert len(table().stored("image")) == len(ROWS)


def test_ranges_of_training_rows_are_all_that_a_client_has() -> None:
    changed = table()
    first, last = changed.training_rows(np.array([1]))
    rows = np.concatenate([np.arange(*ends) for ends in zip(first, last, strict=True)])
    of_client = changed.arrivals().client == 1
    of_split = changed.arrivals().split == SPLITS.index("train")
    assert rows.tolist() == np.flatnonzero(of_client & of_split).tolist()
