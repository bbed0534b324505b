from __future__ import annotations

import math

import pytest

from emulator.clock import VirtualClock


def test_the_clock_starts_at_zero_and_may_stand_still() -> None:
    clock = VirtualClock()
    clock.advance_to(0.0)
    assert clock.now_s == 0.0


def test_the_clock_moves_forward_to_the_instant_it_is_told() -> None:
    clock = VirtualClock()
    clock.advance_to(1.5)
    clock.advance_to(1e9)
    assert clock.now_s == 1e9


@pytest.mark.parametrize("time_s", [4.999, -1.0, math.inf, -math.inf, math.nan])
def test_the_clock_refuses_to_go_back_or_to_the_end_of_time(time_s: float) -> None:
    clock = VirtualClock()
    clock.advance_to(5.0)
    with pytest.raises(ValueError, match=r"must be finite and not before now \(5.0\)"):
        clock.advance_to(time_s)
    assert clock.now_s == 5.0
