from __future__ import annotations

import gc
import json

import pytest

from benchmarks.probes import growth
from benchmarks.probes.growth import Watching
from experiments.running.plan import PlannedRun, Reached


def test_memory_is_read_without_garbage_equally_often_in_runs_of_any_length(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("benchmarks.probes.growth.SAMPLES", 4)
    collected: list[bool] = []
    monkeypatch.setattr(gc, "collect", lambda: collected.append(True))
    watching = Watching(8)
    for number in range(8):
        watching.round_done(PlannedRun("digits", "fielding", 0, 8), Reached(number + 1, 10.0, None))
    assert [number for number, _ in watching.resident] == [2, 4, 6, 8]
    assert len(collected) == 4
    assert all(resident > 1e6 for _, resident in watching.resident)


@pytest.mark.slow
def test_a_short_run_tells_its_memory_after_every_round(capsys: pytest.CaptureFixture[str]) -> None:
    growth.main(4)
    assert [number for number, _ in json.loads(capsys.readouterr().out)] == [1, 2, 3, 4]
