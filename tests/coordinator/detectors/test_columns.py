from __future__ import annotations

import numpy as np
import pytest

from coordinator.detectors import columns
from coordinator.detectors.adwin import Adwin, AdwinSettings
from coordinator.detectors.columns import Columns
from coordinator.detectors.ddm import Ddm, DdmSettings
from coordinator.detectors.loss_jump import LossJump, LossJumpSettings
from emulator.errors import RunError

NAN = float("nan")


def ddm(num_clients: int) -> Ddm:
    detector = Ddm(DdmSettings(warm_start=1))
    detector.open(num_clients)
    return detector


def remembered(detector: Columns, name: str) -> list[float]:
    return detector.state()["_columns"][name].tolist()


def test_each_client_goes_through_its_own_number_of_batches() -> None:
    detector = ddm(3)
    numbers = np.array([[0.0, 0.0, 0.0, 1.0], [0.5, 0.25, NAN, NAN], [NAN, NAN, NAN, NAN]])
    assert detector.detect(np.arange(3), numbers, None).tolist() == [True, False, False]
    assert remembered(detector, "count") == [4, 2]
    assert remembered(detector, "mean") == [0.25, 0.375]


def test_a_call_of_many_batches_is_as_many_calls_of_one() -> None:
    numbers = np.random.default_rng(3).integers(2, size=(4, 60)).astype(float)
    at_once, one_by_one = ddm(9), ddm(9)
    clients = np.array([8, 1, 5, 2])
    together = at_once.detect(clients, numbers, None)
    apart = np.any([one_by_one.detect(clients, column[:, None], None) for column in numbers.T], axis=0)
    assert together.tolist() == apart.tolist()
    assert remembered(at_once, "mean") == remembered(one_by_one, "mean")


def test_blocks_of_clients_decide_as_all_at_once(monkeypatch) -> None:
    numbers = np.random.default_rng(3).random((10, 20))
    numbers[3, 7:] = NAN
    whole, in_blocks = ddm(10), ddm(10)
    flags = whole.detect(np.arange(10), numbers, None)
    monkeypatch.setattr(columns, "BLOCK", 4)
    assert in_blocks.detect(np.arange(10), numbers, None).tolist() == flags.tolist()
    assert remembered(whole, "mean") == remembered(in_blocks, "mean")


def test_the_state_has_rows_only_of_clients_that_were_seen() -> None:
    detector = ddm(1000)
    detector.detect(np.array([700, 30, 5]), np.array([[0.5], [0.25], [NAN]]), None)
    state = detector.state()
    assert state["_seen"].tolist() == [30, 700]
    assert {len(column) for column in state["_columns"].values()} == {2}
    again = ddm(1)
    again.restore(state)
    assert again.state()["_columns"]["mean"].tolist() == [0.25, 0.5]
    again.detect(np.array([999]), np.array([[0.0]]), None)
    assert again.state()["_seen"].tolist() == [30, 700, 999]


def test_numbers_outside_of_the_domain_are_clipped_and_counted() -> None:
    detector = ddm(2)
    detector.detect(np.arange(2), np.array([[2.0, 0.5], [-1.0, NAN]]), None)
    detector.detect(np.arange(2), np.array([[1.5], [1.0]]), None)
    assert detector.clipped == 3
    assert remembered(detector, "mean") == [2.5 / 3, 0.5]


def test_a_loss_has_no_upper_limit() -> None:
    detector = LossJump(LossJumpSettings())
    detector.open(1)
    detector.detect(np.array([0]), np.array([[1e30]]), None)
    assert detector.clipped == 0


def test_clients_that_are_forgotten_are_as_new_and_the_others_are_not() -> None:
    detector = ddm(3)
    detector.detect(np.arange(3), np.full((3, 4), 0.5), None)
    detector.forget(np.array([0, 2]))
    assert detector.state()["_seen"].tolist() == [1]
    detector.detect(np.arange(3), np.full((3, 1), 0.25), None)
    assert remembered(detector, "count") == [1, 5, 1]


def test_a_flagged_client_begins_anew_at_its_next_number() -> None:
    detector = ddm(1)
    assert detector.detect(np.array([0]), np.array([[0.0, 0.0, 1.0]]), None).all()
    assert remembered(detector, "count") == [3]
    detector.detect(np.array([0]), np.array([[1.0]]), None)
    assert remembered(detector, "count") == [1]


def test_a_column_that_has_become_longer_is_stored_and_restored() -> None:
    detector, again = (Adwin(AdwinSettings(max_buckets=2)) for _ in range(2))
    for one in (detector, again):
        one.open(2)
    detector.detect(np.array([1]), np.ones((1, 9)), None)
    # Nine numbers: 1, 2, 2 and 4 of them.
    sums = detector.state()["_columns"]["sums"]
    assert sorted(sums[:, 0].tolist())[-4:] == [1.0, 2.0, 2.0, 4.0]
    again.restore(detector.state())
    assert again.state()["_columns"]["sums"].tolist() == sums.tolist()


class Wrong(Ddm):
    """Returns and changes what `update` says."""

    def __init__(self, update) -> None:
        super().__init__(DdmSettings())
        self.update = update


def rebinds(rows, number):
    rows["count"] = rows["count"] + 1
    return number > 2


def test_an_update_that_loses_what_it_remembers_is_refused() -> None:
    detector = Wrong(rebinds)
    detector.open(3)
    problem = r"puts another array in the place of rows\['count'\], which would be lost; change it in place"
    with pytest.raises(RunError, match=problem):
        detector.detect(np.arange(3), np.ones((3, 1)), None)
