"""ADWIN for rises alone."""

from __future__ import annotations

import numpy as np

from coordinator.detectors.adwin import Adwin, AdwinSettings

EVERYONE = np.arange(2)
FALLING, RISING = [0.9] * 32 + [0.1] * 64, [0.1] * 32 + [0.9] * 64


def flags(numbers: list[list[float]], **settings: bool) -> list[list[int]]:
    """The numbers of each client after which it is flagged."""
    detector = Adwin(AdwinSettings(clock=8, **settings))
    detector.open(len(numbers))
    found = [detector.detect(EVERYONE, column[:, None], None) for column in np.array(numbers).T]
    return [np.flatnonzero(of_client).tolist() for of_client in np.stack(found, axis=1)]


def test_a_fall_is_a_flag_only_if_asked_for_and_starts_the_window_anew_all_the_same() -> None:
    (both_fall, both_rise) = flags([FALLING, RISING])
    assert len(both_fall) == len(both_rise) == 1
    assert flags([FALLING, RISING], two_sided=False) == [[], both_rise]
    # After the fall the old level is forgotten, so that the next rise is found as if it were the first.
    again, _ = flags([FALLING + RISING[32:], RISING + [0.9] * 64], two_sided=False)
    anew, _ = flags([FALLING[32:] + RISING[32:], RISING + [0.9] * 32], two_sided=False)
    assert len(again) == len(anew) == 1
