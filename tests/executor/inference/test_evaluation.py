from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from emulator.arrays import Floats
from emulator.messages import Combine, Evaluation, InferencePlan, SampleRanges
from emulator.seeding import RandomStreams
from executor.flat import FlatModel
from executor.inference import evaluation
from executor.inference.prediction import EVALUATION_BATCH, Predictor
from tests.executor.fakes import FakeReader, executor, labelled, model, of_probabilities, requests

THREE = of_probabilities([0.6, 0.3, 0.1], [0.1, 0.7, 0.2], [0.5, 0.1, 0.4])


def plan(models: list[list[int]], weights: list[list[float]], combine: Combine) -> InferencePlan:
    return InferencePlan(np.array(models), np.array(weights), combine)


def test_probabilities_are_averaged_by_hand() -> None:
    """Two clients, with equal and with unequal weights.

    Client 0: 0.5 (0.6, 0.3, 0.1) + 0.5 (0.1, 0.7, 0.2) = (0.35, 0.5, 0.15). Client 1, with weights 0.75 and
    0.25 of models 0 and 1: (0.475, 0.4, 0.125).
    """
    trainer = labelled([1, 0, 0, 2], num_labels=3)
    mixed = plan([[0, 1], [1, 0]], [[0.5, 0.5], [0.25, 0.75]], "probabilities")
    served = trainer.evaluate(THREE, mixed, requests((0, 2), (2, 4)))
    assert served.accuracy.tolist() == [0.5, 0.5]
    np.testing.assert_allclose(served.loss, -np.log([0.5 * 0.35, 0.475 * 0.125]) / 2, rtol=1e-6)


def test_logits_are_averaged_by_hand() -> None:
    """With 3/4 of model 0, whose logits are ln (0.6, 0.3, 0.1), and 1/4 of ln (0.1, 0.7, 0.2).

    Where one model has all the weight, it serves alone.
    """
    trainer = labelled([0, 1, 1], num_labels=3)
    mixed = plan([[0, 1], [1, 0], [0, 1]], [[0.75, 0.25], [1.0, 0.0], [0.75, 0.25]], "logits")
    served = trainer.evaluate(THREE, mixed, requests((0, 1), (1, 2), (2, 3)))
    powers = np.array([0.6, 0.3, 0.1]) ** 0.75 * np.array([0.1, 0.7, 0.2]) ** 0.25
    shares = powers / powers.sum()
    assert served.accuracy.tolist() == [1, 1, 0]
    np.testing.assert_allclose(served.loss, -np.log([shares[0], 0.7, shares[1]]), rtol=1e-6)


def test_votes_are_counted_by_hand() -> None:
    """The models vote 0, 1, 0.

    With weights 0.25, 0.5, 0.25 it is a tie, which label 0 wins as the lower; with 0.2, 0.6, 0.2 label 1
    wins. The loss is the weighted mean of the models' losses.
    """
    trainer = labelled([0, 0], num_labels=3)
    mixed = plan([[0, 1, 2]] * 2, [[0.25, 0.5, 0.25], [0.2, 0.6, 0.2]], "votes")
    served = trainer.evaluate(THREE, mixed, requests((0, 1), (1, 2)))
    assert served.accuracy.tolist() == [1, 0]
    losses = -np.log([0.6, 0.1, 0.5])
    np.testing.assert_allclose(served.loss, [losses @ [0.25, 0.5, 0.25], losses @ [0.2, 0.6, 0.2]], rtol=1e-6)


def test_outputs_are_reordered_and_offsets_added_before_models_are_combined_by_hand() -> None:
    """Model 0 gives (0.6, 0.3, 0.1); client 0 reads it in the order 1, 2, 0: (0.3, 0.1, 0.6).

    Client 1 adds ln(1, 4, 1): (0.6, 1.2, 0.1) / 1.9. Client 2 has model 0 with that offset and model 1 as it
    is, with equal weights: ((0.6, 1.2, 0.1) / 1.9 + (0.1, 0.7, 0.2)) / 2.
    """
    trainer = labelled([2, 1, 0], num_labels=3)
    kept, none = [0, 1, 2], [0.0, 0.0, 0.0]
    favoured = np.log([1.0, 4.0, 1.0]).tolist()
    read = InferencePlan(
        np.array([[0, -1], [0, -1], [0, 1]]),
        np.array([[1.0, 0.0], [1.0, 0.0], [0.5, 0.5]]),
        outputs=np.array([[[1, 2, 0], kept], [kept, kept], [kept, kept]]),
        offsets=np.array([[none, none], [favoured, none], [favoured, none]]),
    )
    clients = requests((0, 1), (1, 2), (2, 3))
    by_hand = [0.6, 1.2 / 1.9, (0.6 / 1.9 + 0.1) / 2]
    together, first_two = trainer.evaluate(THREE, read, clients), np.array([0, 1])
    np.testing.assert_allclose(together.loss, -np.log(by_hand), rtol=1e-6)
    assert together.accuracy.tolist() == [1, 1, 0]
    # Where one model serves each client, the slabs are others.
    single = trainer.evaluate(THREE, read.take(first_two), clients.take(first_two))
    np.testing.assert_allclose(single.loss, together.loss[:2], rtol=1e-6)
    voted = trainer.evaluate(THREE, replace(read, combine="votes"), clients)
    assert voted.accuracy.tolist() == [1, 1, 0]
    np.testing.assert_allclose(voted.loss[2], -np.log([0.6 / 1.9, 0.1]).mean(), rtol=1e-6)


@pytest.mark.parametrize("kind", ["mlp", "masked", "cnn"])
def test_clients_with_models_of_their_own_are_served_as_one_after_the_other(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluation, "SLAB", 100)
    spec = model("cnn", channels=[3]) if kind == "cnn" else model(kind)
    trainer = executor(FakeReader(sample_shape=(8, 8)), spec)
    models = np.stack([trainer.initial(number) for number in range(5)])
    if kind == "masked":
        models[1:, :9] = 0
    samples, own = requests((0, 40), (40, 41), (7, 7), (30, 230), (200, 233)), InferencePlan.own(5)
    batched = trainer.evaluate(models, own, samples)
    looped = trainer.evaluate(models, InferencePlan.alike(own.models), samples)
    np.testing.assert_array_equal(batched.accuracy, looped.accuracy)
    np.testing.assert_allclose(batched.loss, looped.loss, rtol=1e-5)
    assert np.isnan(batched.loss).tolist() == [False, False, True, False, False]


@pytest.mark.parametrize("combine", ["probabilities", "votes"])
def test_a_client_without_samples_or_without_a_model_has_no_accuracy(combine: Combine) -> None:
    trainer = labelled([0, 0], num_labels=3)
    mixed = plan([[0, 1], [-1, -1], [0, 1]], [[0.5, 0.5], [0.0, 0.0], [0.5, 0.5]], combine)
    served = trainer.evaluate(THREE, mixed, requests((0, 2), (0, 2), (1, 1)))
    assert np.isnan(served.accuracy).tolist() == [False, True, True]
    assert np.isnan(served.loss).tolist() == [False, True, True]
    alone = plan([[2], [-1], [0]], [[1.0], [0.0], [1.0]], combine)
    served = trainer.evaluate(THREE, alone, requests((0, 2), (0, 2), (1, 1)))
    assert served.accuracy.tolist()[:1] == [1]
    assert np.isnan(served.accuracy).tolist() == [False, True, True]


@pytest.mark.parametrize("combine", ["probabilities", "votes"])
def test_a_single_model_serves_equally_in_every_mode_and_beside_one_of_weight_0(combine: Combine) -> None:
    trainer = executor(FakeReader(), model("mlp"))
    models = np.stack([trainer.initial(number) for number in range(2)])
    samples = requests((0, 90), (50, 60))
    single = trainer.evaluate(models, InferencePlan.alike(np.array([[1], [0]])), samples)
    padded = plan([[1, -1], [1, 0]], [[1.0, 0.0], [0.0, 1.0]], combine)
    again = trainer.evaluate(models, padded, samples)
    assert again.accuracy.tobytes() == single.accuracy.tobytes()
    assert again.loss.tobytes() == single.loss.tobytes()


def by_loop(models: Floats, mixed: InferencePlan, samples: SampleRanges, reader: FakeReader) -> Evaluation:
    """Evaluates linear models with 6 features and 4 labels, client by client."""
    accuracy, loss = [], []
    for client, (rows, weights) in enumerate(zip(mixed.models, mixed.weights, strict=True)):
        x, y = reader.x[samples.rows(client)], reader.y[samples.rows(client)]
        shares, mean_losses = np.zeros((len(x), 4)), np.zeros(len(x))
        for row, weight in zip(rows, weights, strict=True):
            raised = np.exp(x @ models[row, :24].reshape(4, 6).T + models[row, 24:])
            p = raised / raised.sum(axis=1, keepdims=True)
            shares += weight * (np.eye(4)[p.argmax(axis=1)] if mixed.combine == "votes" else p)
            mean_losses -= weight * np.log(p[np.arange(len(x)), y])
        accuracy.append((shares.argmax(axis=1) == y).mean())
        with np.errstate(divide="ignore"):
            whole = -np.log(shares[np.arange(len(x)), y])
        loss.append((mean_losses if mixed.combine == "votes" else whole).mean())
    return Evaluation(np.array(accuracy), np.array(loss))


@pytest.mark.parametrize("at_once", [1, 200, 4_000_000])
@pytest.mark.parametrize("combine", ["probabilities", "votes"])
def test_many_clients_are_served_as_each_alone(
    combine: Combine, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluation, "AT_ONCE", at_once)
    reader = FakeReader()
    trainer = executor(reader)
    models = np.stack([trainer.initial(number) for number in range(3)])
    rng = np.random.default_rng(2)
    rows = np.array([[0, 1, 2], [2, 1, 0], [1, 0, 2], [0, 2, 1]])
    weights = rng.dirichlet(np.ones(3), 4)
    samples = requests((0, 40), (40, 41), (30, 130), (200, 333))
    mixed = InferencePlan(rows, weights, combine)
    batched, looped = trainer.evaluate(models, mixed, samples), by_loop(models, mixed, samples, reader)
    np.testing.assert_allclose(batched.accuracy, looped.accuracy)
    np.testing.assert_allclose(batched.loss, looped.loss, rtol=1e-5)


def test_the_loss_of_a_confident_mistake_is_finite() -> None:
    """Both models give the true label a probability of exp(-1000), too small for a float."""
    trainer = labelled([1], num_labels=2)
    models = np.array([[0, 0, 1000, 0]] * 2, dtype=np.float32)
    served = trainer.evaluate(models, plan([[0, 1]], [[0.5, 0.5]], "probabilities"), requests((0, 1)))
    assert served.loss.tolist() == pytest.approx([1000])


@pytest.mark.parametrize("combine", ["probabilities", "votes"])
def test_a_diverged_model_has_a_loss_that_is_no_number_and_warns_of_nothing(combine: Combine) -> None:
    trainer = labelled([1], num_labels=2)
    models = np.array([[0, 0, np.nan, 0], [0, 0, 1, 0]], dtype=np.float32)
    served = trainer.evaluate(models, plan([[0, 1]], [[0.5, 0.5]], combine), requests((0, 1)))
    assert np.isnan(served.loss).all()


def test_with_the_parity_switch_clients_are_served_without_the_mask() -> None:
    seeing = executor(FakeReader(), model("masked"))
    blind = executor(FakeReader(), model("masked", feddrift_unmasked_inference=True))
    open_ = seeing.initial(0)[None]
    half = open_.copy()
    half[0, :3] = 0
    samples = requests((0, 60))
    alone = InferencePlan.alike(np.zeros((1, 1), dtype=np.int64))
    assert blind.evaluate(half, alone, samples) == seeing.evaluate(open_, alone, samples)
    assert blind.evaluate(half, alone, samples) != seeing.evaluate(half, alone, samples)


@pytest.mark.skipif(
    not torch.backends.mkl.is_available() or torch.backends.cpu.get_cpu_capability() != "AVX512",
    reason="what order sums are in is a fact on one library and one kind of processor",
)
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("linear", {}),
        ("mlp", {"hidden": [33]}),
        ("mlp", {"hidden": [128, 64]}),
        ("masked", {"inner": {"kind": "mlp", "hidden": [20]}}),
    ],
)
@pytest.mark.parametrize("num_rows", [*range(510, 520), 1023, 1025, 1500, 1539, 1540, 2047, 2050, 2300])
def test_blocks_that_are_predicted_together_have_the_bits_of_each_alone(
    name: str, settings: dict[str, object], num_rows: int
) -> None:
    reader = FakeReader(num_rows, (8, 8))
    flat_model = FlatModel(model(name, **settings), (8, 8), 10)
    predictor = Predictor(reader, flat_model, dense=True)
    parameters = flat_model.initial(RandomStreams(0), 0)
    logits = torch.zeros(num_rows, 10)

    def keep(part: slice, of_part: Tensor, labels: Tensor) -> None:
        logits[part] = of_part

    predictor.of_one(parameters, np.arange(num_rows), keep)
    named = flat_model.named(torch.tensor(parameters))
    for first in range(0, num_rows, EVALUATION_BATCH):
        rows = np.arange(first, min(first + EVALUATION_BATCH, num_rows))
        alone = flat_model.logits(named, torch.from_numpy(reader.features(rows)), mode="serving")
        assert torch.equal(logits[rows], alone)
