from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from experiments.cli import parts_table
from experiments.cli.signals import INTERRUPTED, interrupted_by_signals, stop_on_signals
from tests.experiments.cli.conftest import Driftscale

ROOT = Path(__file__).resolve().parents[3]
NAMES = ["SIGINT", "SIGTERM", "SIGHUP"]


def signalled_twice(number: int) -> list[bool]:
    """The value of `Stop.asked` after each of two signals during a step."""
    seen = []
    try:
        with stop_on_signals() as stop, stop.between_steps():
            os.kill(os.getpid(), number)
            seen.append(stop.stop_requested)
            os.kill(os.getpid(), number)
            seen.append(stop.stop_requested)
    except KeyboardInterrupt:
        seen.append(False)
    return seen


@pytest.mark.parametrize("name", NAMES)
def test_each_signal_requests_a_stop_and_the_second_one_interrupts(
    name: str, capfd: pytest.CaptureFixture[str]
) -> None:
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
            assert not stop.stop_requested
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_another_thread_than_the_main_one_installs_no_handlers() -> None:
    before = signal.getsignal(signal.SIGTERM)
    seen = []

    def look() -> None:
        with stop_on_signals() as stop:
            seen.append((stop.stop_requested, signal.getsignal(signal.SIGTERM)))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [(False, before)]


# -- before a run has started -------------------------------------------------------------------------------

WHILE_IMPORTING = """
import importlib.abc, os, signal, sys
module, number = sys.argv[1], getattr(signal, sys.argv[2])
class Signalling(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == module:
            os.kill(os.getpid(), number)
sys.meta_path.insert(0, Signalling())
from experiments.cli import main
sys.argv[1:] = ["run", "nothing.toml"]
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "name"),
    [("emulator.errors", "SIGTERM"), ("typer", "SIGINT"), ("typer", "SIGHUP"), ("numpy", "SIGTERM")],
)
def test_a_signal_while_libraries_are_imported_ends_with_a_line_and_130(module: str, name: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", WHILE_IMPORTING, module, name],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (ended.returncode, ended.stderr) == (130, f"{INTERRUPTED}\n")


@pytest.mark.parametrize("name", NAMES)
def test_a_signal_to_a_command_that_stores_nothing_ends_it_with_a_line_and_130(
    name: str, driftscale: Driftscale, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = getattr(signal, name)
    before = signal.getsignal(number)
    monkeypatch.setattr(parts_table, "print_parts", lambda *_: os.kill(os.getpid(), number))
    ended = driftscale("parts")
    assert (ended.code, ended.out, ended.err) == (130, "", f"{INTERRUPTED}\n")
    assert signal.getsignal(number) is before


def test_resources_are_released_before_a_command_ends() -> None:
    released = []
    try:
        with interrupted_by_signals():
            try:
                os.kill(os.getpid(), signal.SIGTERM)
            finally:
                released.append(True)
    except KeyboardInterrupt:
        released.append(True)
    assert released == [True, True]


def test_a_stop_that_is_requested_within_an_import_waits_for_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "signalled.py").write_text(
        "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\nwhole = True\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    seen = []

    def wait() -> None:
        with stop_on_signals():
            seen.append(importlib.import_module("signalled").whole)
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline:
                time.sleep(0.001)

    with pytest.raises(KeyboardInterrupt):
        wait()
    assert seen == [True]
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
