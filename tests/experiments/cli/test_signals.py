from __future__ import annotations

import os
import signal
import threading

import pytest

from experiments.cli.signals import stop_on_signals


def signalled_twice(number: int) -> list[bool]:
    """What `asked` was after each of two signals at work."""
    seen = []
    try:
        with stop_on_signals() as stop, stop.between_steps():
            os.kill(os.getpid(), number)
            seen.append(stop.asked)
            os.kill(os.getpid(), number)
            seen.append(stop.asked)
    except KeyboardInterrupt:
        seen.append(False)
    return seen


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_each_signal_asks_and_the_second_one_interrupts(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    number = getattr(signal, name)
    before = signal.getsignal(number)
    assert signalled_twice(number) == [True, False]
    assert signal.getsignal(number) is before
    assert capfd.readouterr().err.count("stopping after this step, with a checkpoint") == 1


def test_a_signal_that_is_ignored_stays_ignored_as_nohup_wants_it() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stop_on_signals() as stop:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not stop.asked
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_thread_that_is_not_the_main_one_has_no_handlers_and_needs_none() -> None:
    before = signal.getsignal(signal.SIGTERM)
    seen = []

    def look() -> None:
        with stop_on_signals() as stop:
            seen.append((stop.asked, signal.getsignal(signal.SIGTERM)))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [(False, before)]
