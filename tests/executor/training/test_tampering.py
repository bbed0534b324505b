from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from emulator.arrays import Floats32, Ints
from emulator.messages import TASK_METRICS, TrainTasks
from emulator.seeding import RandomStreams
from executor.training.tampering import SPOILT_SHARE, tamper
from tests.executor.fakes import FakeReader, executor, model, wave

STREAMS = RandomStreams(3)
NUM_PARAMETERS = 1000
TASKS = wave(counts=[5] * 4, steps=[1] * 4)


def a_delta() -> Floats32:
    return np.random.default_rng(0).normal(size=(4, NUM_PARAMETERS)).astype(np.float32)


def tampered(
    members: Sequence[int] = range(4), tasks: TrainTasks = TASKS, **columns: Sequence[float]
) -> Floats32:
    delta = a_delta()
    tasks = replace(tasks, tampering={name: np.array(column, float) for name, column in columns.items()})
    rows = delta[np.array(members)]
    tamper(rows, tasks, np.array(members), STREAMS)
    delta[np.array(members)] = rows
    return delta


def test_without_tampering_an_update_arrives_as_it_was_trained() -> None:
    assert tampered().tobytes() == a_delta().tobytes()
    assert tampered(scale=[1] * 4, noise=[0] * 4, nan=[0] * 4, bits=[0] * 4).tobytes() == a_delta().tobytes()


def test_a_flipped_update_points_the_other_way() -> None:
    delta = tampered(scale=[1, -1, 1, -4])
    assert delta.tolist() == (a_delta() * np.array([[1], [-1], [1], [-4]], dtype=np.float32)).tolist()


def test_noise_has_the_configured_norm_relative_to_the_update() -> None:
    noise = tampered(noise=[0, 2, 0.5, 0]) - a_delta()
    share = np.linalg.norm(noise, axis=1) / np.linalg.norm(a_delta(), axis=1)
    assert share[[0, 3]].tolist() == [0, 0]
    assert share[1:3] == pytest.approx([2, 0.5], rel=0.1)
    assert noise[1].mean() == pytest.approx(0, abs=0.3)


def test_an_update_of_zeros_gets_no_noise() -> None:
    delta = np.zeros((4, 5), dtype=np.float32)
    tamper(delta, replace(TASKS, tampering={"noise": np.ones(4)}), np.arange(4), STREAMS)
    assert not delta.any()


def test_numbers_are_lost_on_the_way() -> None:
    delta = tampered(nan=[0, 1, 0, 1])
    assert np.isnan(delta).sum(axis=1).tolist() == [0, 10, 0, 10]
    assert NUM_PARAMETERS * SPOILT_SHARE == 10
    intact = ~np.isnan(delta)
    assert (delta[intact] == a_delta()[intact]).all()


def test_one_bit_of_each_word_that_is_hit_is_flipped() -> None:
    delta = tampered(bits=[1, 0, 1, 0])
    flipped = delta.view(np.uint32) ^ a_delta().view(np.uint32)
    assert np.count_nonzero(flipped, axis=1).tolist() == [10, 0, 10, 0]
    words = flipped[flipped > 0]
    assert (words & (words - 1) == 0).all()  # a power of two


def test_a_small_update_loses_at_least_one_number() -> None:
    delta = np.ones((1, 3), dtype=np.float32)
    tamper(delta, replace(TASKS.take(np.array([0])), tampering={"nan": np.ones(1)}), np.array([0]), STREAMS)
    assert np.isnan(delta).sum() == 1


def test_the_other_tasks_of_the_wave_change_nothing() -> None:
    columns = {"scale": [-2.0] * 4, "noise": [1.0] * 4, "bits": [1.0] * 4}
    whole, rows = tampered(**columns), np.array([2])
    assert tampered(members=[2], **columns)[2].tobytes() == whole[2].tobytes()
    alone, part = a_delta()[rows], TASKS.take(rows)
    part = replace(part, tampering={name: np.array(column)[rows] for name, column in columns.items()})
    tamper(alone, part, np.array([0]), STREAMS)
    assert alone[0].tobytes() == whole[2].tobytes()


def test_another_round_spoils_other_numbers() -> None:
    later = tampered(tasks=replace(TASKS, dispatch=np.full_like(TASKS.dispatch, 3)), nan=[1] * 4)
    assert (np.isnan(later) != np.isnan(tampered(nan=[1] * 4))).any()


def test_an_overflow_is_infinite_without_a_warning() -> None:
    assert np.isinf(tampered(scale=[1e39] * 4)).any()


@pytest.mark.parametrize("strategy", ["dense", "stacked", "loop"])
def test_every_strategy_returns_updates_as_they_arrive(strategy: str) -> None:
    tasks = replace(wave(counts=[9, 3, 12], steps=[4, 1, 6]), measure=frozenset(TASK_METRICS))
    spoilt = replace(tasks, tampering={"scale": np.array([1.0, -3.0, 1.0]), "nan": np.array([0.0, 0.0, 1.0])})
    trainer = executor(FakeReader(), model("mlp"), strategy=strategy, chunk=2)
    start: Ints = np.zeros(3, dtype=np.int64)
    models = trainer.initial(0)[None]
    honest, arrived = trainer.train(tasks, models, start), trainer.train(spoilt, models, start)
    assert arrived.delta[0].tobytes() == honest.delta[0].tobytes()
    assert arrived.delta[1].tolist() == (np.float32(-3) * honest.delta[1]).tolist()
    assert arrived.finite.tolist() == [True, True, False]
    for metric in ("loss", *TASK_METRICS):
        assert arrived.metrics[metric].tobytes() == honest.metrics[metric].tobytes()
