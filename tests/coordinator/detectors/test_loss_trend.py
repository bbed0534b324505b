from __future__ import annotations

import numpy as np
import pytest

from coordinator.detectors.loss_trend import LossTrend, LossTrendSettings


def detected(*visits: float, **settings: int) -> list[bool]:
    """At which visits, each of one batch of this loss, a client is flagged."""
    detector = LossTrend(LossTrendSettings(**settings))
    detector.open(1)
    return [bool(detector.detect(np.array([0]), np.array([[loss]], dtype=float), None)[0]) for loss in visits]


def test_nothing_is_flagged_before_the_twentieth_visit() -> None:
    rising = range(1, 24)
    assert detected(*rising) == [False] * 19 + [True] * 4


def test_a_loss_must_be_above_both_means() -> None:
    short = {"short": 2, "long": 3}
    assert detected(1, 1, 2, **short)[-1]  # above 3/2 and 4/3
    assert not detected(4, 1, 2, **short)[-1]  # above 3/2, not above 7/3
    assert not detected(1, 3, 2, **short)[-1]  # equal to 2, and not above 5/2


def test_a_loss_that_stays_the_same_has_no_trend() -> None:
    assert not any(detected(*[0.1] * 30))


def test_the_long_mean_is_kept_from_the_first_loss_above_it() -> None:
    # At the third visit the long mean is 2, below the loss of 3: kept. The fifth loss is above the mean of
    # the last two, 2.6, but not above that of the last three, 3: a flag, since the kept one is 2.
    assert detected(1, 2, 3, 2.4, 2.8, short=2, long=3) == [False, False, True, False, True]


def test_a_loss_above_neither_mean_releases_the_long_mean_and_without_releases_never() -> None:
    # At the fourth visit the loss of 1 is above neither; then the long mean is 5, and 4 is not above it.
    visits = (1, 2, 10, 1, 4)
    assert detected(*visits, short=2, long=3, releases=True) == [False, False, True, False, False]
    assert detected(*visits, short=2, long=3, releases=False) == [False, False, True, False, False]
    # The kept mean is 13/3; after the release that of the last three visits is 14/3, above the loss of 4.5.
    visits = (1, 2, 10, 1, 4.5)
    assert detected(*visits, short=2, long=3, releases=True) == [False, False, True, False, False]
    assert detected(*visits, short=2, long=3, releases=False) == [False, False, True, False, True]


def test_the_short_window_is_shorter() -> None:
    with pytest.raises(ValueError, match="short = 20: must be below long = 20"):
        LossTrendSettings(short=20)
