"""The workloads that need a world of their own: the memory's, the stream's and the whole experiment's."""

from __future__ import annotations

from itertools import islice, pairwise

import numpy as np
import pytest

from emulator.errors import RunError
from executor.training.plain_loop import PlainLoop
from experiments.bench.digits import Silence, digits_figures, digits_online
from experiments.bench.memory import after_first_quarter, growth_figures, probe, slope
from experiments.bench.probes.growth import Watching
from experiments.bench.probes.memory import BUILD, resident_bytes
from experiments.bench.streaming import Streaming, StreamSizes, recounted, streaming_figures
from experiments.running.plan import PlannedRun, Reached

SIZES = StreamSizes(clients=40, steps=3, participants=4)


def ignore(text: str) -> None:
    pass


@pytest.fixture(scope="module")
def streaming() -> Streaming:
    return Streaming(SIZES)


@pytest.mark.parametrize("step", [0, 1, 3])
def test_recounting_finds_the_histograms_that_the_stream_keeps(streaming: Streaming, step: int) -> None:
    kept = streaming.stream_at(step).label_histograms(np.arange(SIZES.clients))
    np.testing.assert_allclose(recounted(streaming.trace, step), kept)


def test_data_arrives_and_expires_at_every_step_of_the_stream(streaming: Streaming) -> None:
    histograms = [recounted(streaming.trace, step) for step in range(SIZES.steps + 1)]
    assert all((one != other).any() for one, other in pairwise(histograms))
    assert streaming.trace.retain_steps == 5
    assert streaming.trace.last_step == SIZES.steps


def test_both_train_what_clients_hold_at_their_step(streaming: Streaming) -> None:
    executor = streaming.executor()
    start = executor.initial(0)
    loop = PlainLoop(streaming.trace, streaming.model(), streaming.streams)
    for tasks in islice(streaming.waves(), 2):
        ours = executor.train(tasks, start[None, :], np.zeros(SIZES.participants, dtype=np.int64))
        loop.load(tasks)
        np.testing.assert_allclose(loop.train(start)[0], ours.delta, atol=1e-6)


def test_streaming_has_a_figure_for_advancing_and_one_for_training() -> None:
    advance, train = streaming_figures(SIZES, 1, ignore)
    assert (advance.name, advance.unit) == ("streaming-advance", "ms")
    assert (train.name, train.unit) == ("streaming-train", "clients/s")


def test_digits_tells_the_wall_time_and_the_share_outside() -> None:
    settings = ("round.rounds=4", "trace.clients=40", "trace.drift.events=[]")
    experiment = digits_online(*settings)
    wall, outside = digits_figures(experiment, 2, ignore)
    assert (wall.name, wall.unit, wall.repeats) == ("digits-wall", "s", 2)
    assert (outside.name, outside.unit, outside.repeats) == ("digits-outside", "%", 2)
    assert 0 < outside.value < 100


def test_a_run_that_fails_ends_the_bench() -> None:
    with pytest.raises(RunError, match="bench digits: diverged"):
        Silence().failed(PlannedRun("digits", "fielding", 0, 1), "diverged")


def test_the_probe_builds_a_fleet_then_a_run_and_objects() -> None:
    assert [name for name, _ in BUILD["fleet"](30)] == ["fleet", "run"]
    [(name, kept)] = BUILD["objects"](30)
    assert name == "objects"
    assert isinstance(kept, tuple)
    assert [len(part) for part in kept] == [30, 30]
    assert resident_bytes() > 1e6


@pytest.mark.slow
def test_a_process_of_its_own_tells_the_bytes_it_added() -> None:
    found = probe("objects", 20_000)
    assert found["objects"] > 20_000 * 100
    with pytest.raises(RunError, match="the process that measures 'memory nothing 1' failed: KeyError"):
        probe("nothing", 1)


def test_the_slope_is_that_of_the_rounds_after_the_first_quarter() -> None:
    seen = [(number, 1000 + 7 * number if number > 25 else 0) for number in range(1, 101)]
    assert after_first_quarter(seen)[0] == (26, 1182)
    assert slope(after_first_quarter(seen)) == pytest.approx(7.0)


def test_a_step_that_is_taken_once_is_no_slope() -> None:
    assert slope([(number, 10**6 if number > 30 else 0) for number in range(1, 101)]) == 0


def test_memory_is_looked_at_so_many_times_in_a_run_however_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("experiments.bench.probes.growth.SAMPLES", 4)
    watching = Watching(8)
    for number in range(8):
        watching.round_done(PlannedRun("digits", "fielding", 0, 8), Reached(number + 1, 10.0, None))
    assert [number for number, _ in watching.seen] == [2, 4, 6, 8]
    assert all(resident > 1e6 for _, resident in watching.seen)


@pytest.mark.slow
def test_growth_is_bytes_per_round_of_a_run_in_a_process_of_its_own() -> None:
    growth, grown = growth_figures(12, 1, ignore)
    assert (growth.name, growth.unit, growth.better) == ("memory-growth", "B/round", "lower")
    assert (grown.name, grown.unit, grown.better) == ("memory-grown", "kB", "lower")
