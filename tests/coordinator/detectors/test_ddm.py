from __future__ import annotations

import math

import numpy as np
import pytest

from coordinator.detectors.ddm import Ddm, DdmSettings


def detected(*numbers: float, **settings: float) -> list[bool]:
    """After which numbers of one client it is flagged."""
    detector = Ddm(DdmSettings(**settings))
    detector.open(1)
    return [
        bool(detector.detect(np.array([0]), np.array([[number]], dtype=float), None)[0]) for number in numbers
    ]


def test_a_flag_needs_an_error_rate_above_the_lowest_by_deviations_of_it() -> None:
    # After 0, 0, 0, 1 the rate is 1/4 and its deviation sqrt(3/16 / 4) = 0.217: the lowest, as the first that
    # is not of the warm start. After 1 more it is 2/5 and sqrt(6/25 / 5) = 0.219: 0.619 in all; then 1/2, and
    # sqrt(1/4 / 6) = 0.204: 0.704.
    lowest, deviation = 1 / 4, math.sqrt(3 / 16 / 4)
    after_5, after_6 = (
        (level - lowest) / deviation for level in (2 / 5 + math.sqrt(6 / 125), 1 / 2 + math.sqrt(1 / 24))
    )
    numbers = (0, 0, 0, 1, 1, 1)
    assert detected(*numbers, warm_start=3, threshold=after_5 - 1e-9) == [False] * 4 + [True, False]
    assert detected(*numbers, warm_start=3, threshold=after_5 + 1e-9) == [False] * 5 + [True]
    assert detected(*numbers, warm_start=3, threshold=after_6 + 1e-9) == [False] * 6


def test_nothing_is_flagged_in_the_warm_start_and_a_flag_begins_it_anew() -> None:
    assert detected(0, 0, 0, 1, warm_start=2) == [False, False, False, True]
    assert detected(0, 0, 0, 1, 0, 0, 0, 1, warm_start=2) == [False, False, False, True] * 2
    assert detected(0, 0, 0, 1, warm_start=4) == [False] * 4


def test_a_client_that_is_always_right_or_always_wrong_has_not_drifted() -> None:
    assert not any(detected(*[0.0] * 9, warm_start=1))
    assert not any(detected(*[1.0] * 9, warm_start=1))


@pytest.mark.parametrize("setting", [{"warm_start": 0}, {"threshold": 0}])
def test_the_settings_are_above_zero(setting: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(setting))):
        DdmSettings(**setting)
