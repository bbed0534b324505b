from __future__ import annotations

from itertools import islice, pairwise

import numpy as np
import pytest

from benchmarks.rivals.plain_loop import PlainLoop
from benchmarks.streaming import Streaming, StreamSizes, recounted, streaming_figures

SIZES = StreamSizes(clients=40, steps=3, participants=4)


def ignore(text: str) -> None:
    pass


@pytest.fixture(scope="module")
def streaming() -> Streaming:
    return Streaming(SIZES)


@pytest.mark.parametrize("step", [0, 1, 3])
def test_recounting_gives_the_histograms_of_the_stream(streaming: Streaming, step: int) -> None:
    histograms = streaming.stream_at(step).label_histograms(np.arange(SIZES.clients))
    np.testing.assert_allclose(recounted(streaming.trace, step), histograms)


def test_data_arrives_and_expires_at_every_step_of_the_stream(streaming: Streaming) -> None:
    histograms = [recounted(streaming.trace, step) for step in range(SIZES.steps + 1)]
    assert all((before != after).any() for before, after in pairwise(histograms))
    assert streaming.trace.retain_steps == 5
    assert streaming.trace.last_step == SIZES.steps


@pytest.mark.slow
def test_both_train_what_clients_hold_at_their_step(streaming: Streaming) -> None:
    executor = streaming.executor()
    start = executor.initial(0)
    loop = PlainLoop(streaming.trace, streaming.model(), streaming.streams)
    for tasks in islice(streaming.waves(), 2):
        ours = executor.train(tasks, start[None, :], np.zeros(SIZES.participants, dtype=np.int64))
        loop.load(tasks)
        np.testing.assert_allclose(loop.train(start)[0], ours.delta, atol=1e-6)


@pytest.mark.slow
def test_streaming_has_a_figure_for_advancing_and_one_for_training() -> None:
    advance, train = streaming_figures(SIZES, 1, ignore)
    assert (advance.name, advance.unit) == ("streaming-advance", "ms")
    assert (train.name, train.unit) == ("streaming-train", "clients/s")
