from __future__ import annotations

import pytest

from experiments.running.stop import Stop


def ask_at_work(stop: Stop, times: int, then: Exception | None = None) -> list[bool]:
    """Request a stop `times` times at work; `stop_requested` before each request, and at the end."""
    seen = []
    try:
        with stop.between_steps():
            for _ in range(times):
                seen.append(stop.stop_requested)
                stop.request()
            seen.append(stop.stop_requested)
            if then is not None:
                raise then
    except KeyboardInterrupt:
        seen.append(stop.stop_requested)
    return seen


def test_a_run_at_work_stops_by_itself_at_the_latest_at_its_end() -> None:
    assert ask_at_work(Stop(), 1) == [False, True, True]
    assert ask_at_work(Stop(), 0) == [False]


def test_a_second_stop_is_at_once() -> None:
    assert ask_at_work(Stop(), 3) == [False, True, True]  # the third request is never made


def test_where_nothing_is_at_work_a_stop_is_at_once_and_nothing_begins_after_it() -> None:
    stop = Stop()
    assert not stop.waits
    with pytest.raises(KeyboardInterrupt):
        stop.request()
    with pytest.raises(KeyboardInterrupt), stop.between_steps():
        pytest.fail("begun")


def test_what_a_run_ended_with_is_not_hidden_by_a_stop() -> None:
    stop = Stop()
    with pytest.raises(ValueError, match="diverged"):
        ask_at_work(stop, 1, ValueError("diverged"))
    assert stop.stop_requested
