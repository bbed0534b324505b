from __future__ import annotations

import numpy as np

from coordinator.detectors.page_hinkley import PageHinkley, PageHinkleySettings


def detected(*numbers: float, **settings: float) -> list[bool]:
    """After which numbers of one client it is flagged."""
    detector = PageHinkley(PageHinkleySettings(**settings))
    detector.open(1)
    return [
        bool(detector.detect(np.array([0]), np.array([[number]], dtype=float), None)[0]) for number in numbers
    ]


EXACT = {"warm_start": 1, "delta": 0.0, "keep": 1.0}


def test_a_rise_is_flagged_when_its_deviations_from_the_mean_add_up_to_the_threshold() -> None:
    # The means of 0, 0, 4, 4 are 0, 0, 4/3, 2, and so u is 0, 0, 8/3, 14/3.
    assert detected(0, 0, 4, 4, threshold=2.6, **EXACT) == [False, False, True, False]
    assert detected(0, 0, 4, 4, threshold=2.7, **EXACT) == [False, False, False, True]
    assert detected(0, 0, 4, 4, threshold=4.7, **EXACT) == [False] * 4


def test_a_fall_is_flagged_too() -> None:
    # The means of 4, 4, 0, 0 are 4, 4, 8/3, 2, and so d is 0, 0, -8/3, -14/3; its most is 0.
    assert detected(4, 4, 0, 0, threshold=2.6, **EXACT) == [False, False, True, False]
    assert detected(4, 4, 0, 0, threshold=4.6, **EXACT) == [False, False, False, True]


def test_what_is_tolerated_is_taken_off_at_each_number() -> None:
    # With delta = 1, u is -1, -2, -1/3, 2/3; its least is -2.
    exact = {**EXACT, "delta": 1.0}
    assert detected(0, 0, 4, 4, threshold=2.6, **exact) == [False, False, False, True]
    assert detected(0, 0, 4, 4, threshold=2.7, **exact) == [False] * 4


def test_a_share_of_the_sum_is_kept_from_number_to_number() -> None:
    # With keep = 1/2, u is 0, 0, 8/3, 4/3 + 2.
    assert detected(0, 0, 4, 4, threshold=3.3, **{**EXACT, "keep": 0.5}) == [False, False, False, True]
    assert detected(0, 0, 4, 4, threshold=3.4, **{**EXACT, "keep": 0.5}) == [False] * 4


def test_nothing_is_flagged_in_the_warm_start() -> None:
    assert detected(0, 0, 4, 4, threshold=2.6, **{**EXACT, "warm_start": 4}) == [False, False, False, True]
