"""Drifts of training data and their kinds."""

import numpy as np

from traces.drifts import Drifts, Turns, drifts_of
from traces.onsets import of_steps


def rows(drifts: Drifts | None) -> list[tuple[int, int, str, int, int]]:
    """Each drift as (step, client, kind, before, after)."""
    assert drifts is not None
    columns = (column.tolist() for column in (drifts.step, drifts.client, drifts.before, drifts.after))
    kinds = [drifts.kinds[kind] for kind in drifts.kind.tolist()]
    return [
        (step, client, kind, *concepts)
        for kind, (step, client, *concepts) in zip(kinds, zip(*columns, strict=True), strict=True)
    ]


def turns(name: str, *of_clients: tuple[int, int]) -> Turns:
    """Turns of pairs (client, step)."""
    client, step = np.array(of_clients).T
    return Turns(name, client, step)


def test_a_drift_has_the_kind_of_the_changes_that_begin_or_end_for_its_client() -> None:
    concepts = np.array([[0, 0, 0], [1, 0, 0], [1, 2, 0], [1, 3, 0], [1, 3, 0]])
    found = drifts_of(
        concepts, None, [turns("swap", (0, 1), (1, 3)), turns("rotate", (1, 2), (0, 9), (1, 3))]
    )
    assert rows(found) == [
        (1, 0, "swap", 0, 1),
        (2, 1, "rotate", 0, 2),
        (3, 1, "rotate+swap", 2, 3),
    ]


def test_a_change_that_waits_for_samples_and_a_concept_without_a_change_are_named_too() -> None:
    concepts = np.array([[0, 0], [0, 1], [2, 1], [2, 1]])
    found = drifts_of(concepts, None, [turns("xor", (0, 1))])
    assert rows(found) == [(1, 1, "concept", 0, 1), (2, 0, "xor", 0, 2)]


def test_a_change_is_the_kind_of_one_drift_and_later_ones_are_of_the_concepts() -> None:
    concepts = np.array([[0], [1], [2], [2], [3], [3]])
    found = drifts_of(concepts, None, [turns("swap", (0, 1), (0, 3))])
    assert rows(found) == [(1, 0, "swap", 0, 1), (2, 0, "concept", 1, 2), (4, 0, "swap", 2, 3)]


def test_other_label_shares_are_drifts_where_the_concept_does_not_change_at_once() -> None:
    moves = of_steps([(1, np.array([0, 1])), (3, np.array([1]))])
    concepts = np.array([[0, 0], [5, 0], [5, 0], [5, 0], [5, 0]])
    found = drifts_of(concepts, moves, [turns("permute", (0, 1))])
    assert rows(found) == [(1, 0, "permute", 0, 5), (1, 1, "labels", -1, -1), (3, 1, "labels", -1, -1)]
    assert rows(drifts_of(None, moves, ())) == [
        (1, 0, "labels", -1, -1),
        (1, 1, "labels", -1, -1),
        (3, 1, "labels", -1, -1),
    ]


def test_a_trace_that_knows_nothing_has_none_and_one_without_drift_has_no_rows() -> None:
    assert drifts_of(None, None, ()) is None
    assert rows(drifts_of(np.zeros((3, 2), dtype=np.int64), None, ())) == []
