from __future__ import annotations

import numpy as np

from coordinator.detectors.loss_jump import LossJump, LossJumpSettings

NONE = float("nan")


def detected(*visits: float, **settings: float) -> list[bool]:
    """At which visits, each of one batch of this loss, a client is flagged."""
    detector = LossJump(LossJumpSettings(**{"warm_start": 1, **settings}))
    detector.open(1)
    return [bool(detector.detect(np.array([0]), np.array([[loss]], dtype=float), None)[0]) for loss in visits]


def test_a_client_is_flagged_from_the_visit_after_the_jump_until_its_loss_is_below_theta() -> None:
    assert detected(1, 5, 5, 4, 3.9, 3.9) == [False, False, True, True, False, False]


def test_a_jump_that_does_not_last_is_no_drift() -> None:
    assert detected(1, 5, 3.9, 5, 5) == [False] * 5
    assert detected(1, 3.1, 3.1) == [False] * 3  # it jumps, but below theta


def test_a_client_that_was_released_can_jump_again() -> None:
    assert detected(1, 5, 5, 1, 5, 5) == [False, False, True, False, False, True]


def test_a_jump_is_above_delta_times_the_loss_before() -> None:
    assert detected(2, 6, 6) == [False] * 3
    assert detected(2, 6, 6, delta=2.9) == [False, False, True]


def test_no_loss_jumps_in_the_warm_start() -> None:
    assert detected(1, 1, 1, 5, 5, warm_start=3) == [False, False, False, False, True]
    assert detected(1, 1, 1, 5, 5, warm_start=4) == [False] * 5


def test_a_visit_without_a_batch_is_no_visit() -> None:
    assert detected(1, NONE, 5, NONE, 5) == [False, False, False, False, True]


def test_of_a_visit_it_takes_the_sum_of_the_losses_or_their_mean() -> None:
    visits = np.array([[[1.0, 1.0]], [[4.0, NONE]], [[4.0, 4.0]]])  # sums 2, 4, 8 and means 1, 4, 4
    flags = {}
    for loss in ("sum", "mean"):
        detector = LossJump(LossJumpSettings(warm_start=1, loss=loss))
        detector.open(1)
        flags[loss] = [bool(detector.detect(np.array([0]), visit, None)[0]) for visit in visits]
    assert flags == {"sum": [False, False, False], "mean": [False, False, True]}


def test_a_client_that_was_flagged_is_not_forgotten() -> None:
    assert detected(1, 5, 5, 5, 5, 5) == [False, False, True, True, True, True]
