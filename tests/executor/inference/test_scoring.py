from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from emulator.arrays import Floats
from emulator.messages import InferencePlan, Metric, SampleRanges, Scores
from executor.inference import prediction, scoring
from tests.executor.fakes import FakeReader, executor, labelled, model, of_probabilities, requests

EVERYTHING: frozenset[Metric] = frozenset(get_args(Metric))


def test_every_model_is_scored_on_every_request_by_hand() -> None:
    trainer = labelled([0, 1, 1, 2], num_labels=3)
    models = of_probabilities([0.5, 0.25, 0.25], [0.2, 0.7, 0.1])
    scores = trainer.score(models, requests((0, 3), (3, 4)), EVERYTHING)
    assert scores.counts.tolist() == [3, 1]
    for sums, by_hand in (
        (scores.correct, [[1, 2], [0, 0]]),
        (scores.loss, -np.log([[0.5 * 0.25**2, 0.2 * 0.7**2], [0.25, 0.1]])),
        (scores.true_class_error, [[0.25 + 2 * 0.5625, 0.64 + 2 * 0.09], [0.5625, 0.81]]),
    ):
        assert sums is not None
        np.testing.assert_allclose(sums, by_hand, rtol=1e-5)
    assert scores.confusion is not None
    assert scores.confusion[0].tolist() == [
        [[1, 0, 0], [2, 0, 0], [0, 0, 0]],
        [[0, 1, 0], [0, 2, 0], [0, 0, 0]],
    ]
    assert scores.confusion[1, 0].tolist() == [[0, 0, 0], [0, 0, 0], [1, 0, 0]]
    first, second = np.log([[0.5, 0.25, 0.25], [0.2, 0.7, 0.1]])
    nothing = np.zeros(3)
    by_label = [[[first, 2 * first, nothing], [second, 2 * second, nothing]]]
    by_label.append([[nothing, nothing, first], [nothing, nothing, second]])
    assert scores.log_probabilities is not None
    np.testing.assert_allclose(scores.log_probabilities, by_label, rtol=1e-5)
    np.testing.assert_allclose(scores.accuracy(), [[1 / 3, 2 / 3], [0, 0]])


def test_of_equally_likely_labels_the_lowest_is_taken() -> None:
    scores = labelled([0, 1], num_labels=2).score(
        of_probabilities([0.5, 0.5]), requests((0, 2)), frozenset(("correct", "confusion"))
    )
    assert scores.correct is not None
    assert scores.correct.tolist() == [[1]]
    assert scores.confusion is not None
    assert scores.confusion[0, 0].tolist() == [[1, 0], [1, 0]]


def test_metrics_that_were_not_requested_are_none() -> None:
    trainer = labelled([0, 1], num_labels=2)
    scores = trainer.score(of_probabilities([0.5, 0.5]), requests((0, 2)), frozenset(("loss",)))
    assert scores.loss is not None
    assert (scores.correct, scores.true_class_error, scores.confusion) == (None, None, None)


def test_samples_that_are_named_twice_count_twice_and_empty_requests_count_nothing() -> None:
    samples = SampleRanges(np.array([0, 2, 2]), np.array([0, 1]), np.array([2, 2]), np.ones(2))
    scores = labelled([0, 1], num_labels=2).score(
        of_probabilities([0.9, 0.1]), samples, frozenset(("correct", "confusion"))
    )
    assert scores.counts.tolist() == [3, 0]
    assert scores.confusion is not None
    assert scores.confusion[:, 0].tolist() == [[[1, 0], [2, 0]], [[0, 0], [0, 0]]]
    assert scores.correct is not None
    assert scores.correct.tolist() == [[1], [0]]
    assert np.isnan(scores.accuracy()[1, 0])


@pytest.mark.parametrize(("num_requests", "num_models"), [(0, 2), (3, 0)])
def test_no_requests_or_no_models_have_empty_scores(num_requests: int, num_models: int) -> None:
    trainer = executor(FakeReader())
    samples = SampleRanges.one_each(np.arange(num_requests), np.arange(num_requests) + 2)
    models = np.zeros((num_models, trainer.num_parameters), dtype=np.float32)
    scores = trainer.score(models, samples, EVERYTHING)
    assert scores.correct is not None
    assert scores.correct.shape == (num_requests, num_models)
    assert scores.confusion is not None
    assert scores.confusion.shape == (num_requests, num_models, 4, 4)


def columns(scores: Scores) -> list[Floats]:
    metrics = [scores.correct, scores.loss, scores.true_class_error, scores.confusion]
    return [column for column in (*metrics, scores.log_probabilities) if column is not None]


@pytest.mark.parametrize("kind", ["masked", "cnn"])
def test_how_samples_are_cut_changes_rounding_only(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = FakeReader(sample_shape=(8, 8))
    trainer = executor(reader, model(kind))
    models = np.stack([trainer.initial(number) for number in range(3)])
    samples = requests((0, 40), (40, 40), (30, 130), (7, 9))
    whole = columns(trainer.score(models, samples, EVERYTHING))
    monkeypatch.setattr(scoring, "SLAB", 30)
    monkeypatch.setattr(prediction, "EVALUATION_BATCH", 7)
    monkeypatch.setattr(prediction, "ACTIVATIONS", 1)
    for cut, column in zip(columns(trainer.score(models, samples, EVERYTHING)), whole, strict=True):
        np.testing.assert_allclose(cut, column, rtol=1e-5)


@pytest.mark.parametrize("kind", ["mlp", "cnn"])
def test_scores_agree_with_the_evaluation_of_the_same_samples(kind: str) -> None:
    reader = FakeReader(sample_shape=(8, 8))
    trainer = executor(reader, model(kind))
    models = np.stack([trainer.initial(number) for number in range(2)])
    samples = requests((0, 40), (40, 41), (30, 130))
    scores = trainer.score(models, samples, EVERYTHING)
    for row in range(2):
        served = trainer.evaluate(models, InferencePlan.alike(np.full((3, 1), row)), samples)
        np.testing.assert_allclose(scores.accuracy()[:, row], served.accuracy)
        assert scores.loss is not None
        np.testing.assert_allclose(scores.loss[:, row] / scores.counts, served.loss, rtol=1e-5)


def test_scores_use_the_mask_with_and_without_the_parity_switch() -> None:
    scored = []
    for unmasked in (False, True):
        trainer = executor(FakeReader(), model("masked", feddrift_unmasked_inference=unmasked))
        models = trainer.initial(0)[None].copy()
        models[0, :3] = 0
        scored.append(columns(trainer.score(models, requests((0, 60)), EVERYTHING)))
    for masked, unmasked in zip(*scored, strict=True):
        assert np.array_equal(masked, unmasked)
