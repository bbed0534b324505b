"""The fast tier leaves out what exists, and notices what a test does that it may not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fast_tier import NOT_COLLECTED, FastTier

ROOT = Path(__file__).resolve().parents[1]


def test_all_that_is_not_collected_exists() -> None:
    assert [name for name in NOT_COLLECTED if not (ROOT / name).exists()] == []


@pytest.mark.parametrize(
    ("event", "arguments", "done"),
    [
        ("subprocess.Popen", ("sh", ["sh"], None, None), "starts a process (subprocess.Popen)"),
        ("tests.forked", (["driftscale"],), "starts a process (tests.forked)"),
        ("open", ("runs/x/report.html", "wb", 0), "writes or reads a report"),
        ("open", ("runs/x/summary.json", "wb", 0), None),
    ],
)
def test_a_test_that_starts_a_process_or_writes_a_report_fails(
    event: str, arguments: tuple[Any, ...], done: str | None
) -> None:
    tier = FastTier(ROOT)
    protocol = tier.pytest_runtest_protocol()
    next(protocol)
    call = tier.pytest_runtest_call()
    next(call)
    tier._hear(event, arguments)
    if done is None:
        with pytest.raises(StopIteration):
            call.send(None)
    else:
        with pytest.raises(pytest.fail.Exception) as failed:
            call.send(None)
        assert str(failed.value) == f"it {done}: mark it slow (tests/fast_tier.py)"
    protocol.close()
    tier._hear(event, arguments)  # after the test: of no interest
    assert tier._done is None
