"""Mean embeddings and gradients of requests, compared with an ordinary module and with autograd."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from emulator.errors import ConfigurationError
from executor.inference import embeddings
from executor.inference.prediction import EVALUATION_BATCH
from tests.executor.fakes import FakeReader, Ready, executor, model, requests

READER = FakeReader(rows=40, sample_shape=(6, 6))
SPECS = {
    "linear": lambda: model("linear"),
    "mlp": lambda: model("mlp", hidden=[5, 4]),
    "masked": lambda: model("masked", inner="mlp"),
    "cnn": lambda: model("cnn", channels=[3]),
}
SPANS = ((0, 7), (7, 7), (7, 8), (8, 40))


def module_of(kind: str, parameters: np.ndarray) -> nn.Module:
    module = SPECS[kind]().build(READER.sample_shape, READER.num_labels)
    vector_to_parameters(torch.tensor(parameters), module.parameters())
    return module


@pytest.mark.parametrize("kind", SPECS)
def test_gradients_are_those_of_autograd_and_zero_without_samples(kind: str) -> None:
    trainer = executor(READER, SPECS[kind]())
    parameters = trainer.initial(0)
    found = trainer.gradients(parameters, requests(*SPANS))
    for (first, last), gradient in zip(SPANS, found, strict=True):
        module = module_of(kind, parameters)
        if last > first:
            logits = module(torch.from_numpy(READER.x[first:last]))
            functional.cross_entropy(logits, torch.from_numpy(READER.y[first:last])).backward()
        parts = [torch.zeros_like(part) if part.grad is None else part.grad for part in module.parameters()]
        expected = parameters_to_vector(parts).numpy()
        assert gradient == pytest.approx(expected, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize(("kind", "size"), [("linear", 36), ("mlp", 4), ("masked", 64), ("cnn", 12)])
def test_an_embedding_is_the_mean_input_of_the_last_layer(kind: str, size: int) -> None:
    trainer = executor(READER, SPECS[kind]())
    parameters = trainer.initial(0)
    found = trainer.embeddings(parameters, requests(*SPANS))
    assert trainer.embedding_size == size
    module = module_of(kind, parameters)
    last_layer = [layer for layer in module.modules() if isinstance(layer, nn.Linear)][-1]
    inputs: list[torch.Tensor] = []
    last_layer.register_forward_pre_hook(lambda layer, given: inputs.append(given[0].detach()))
    module(torch.from_numpy(READER.x))
    for (first, last), embedding in zip(SPANS, found, strict=True):
        expected = inputs[0][first:last].mean(0).numpy() if last > first else np.zeros(size)
        assert embedding == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_where_the_last_layer_has_several_positions_an_embedding_is_their_mean() -> None:
    spec = Ready(lambda: nn.Linear(6, 4), lambda: nn.AdaptiveAvgPool2d((1, 4)), nn.Flatten)
    found = executor(READER, spec).embeddings(executor(READER, spec).initial(0), requests((0, 2)))
    assert found[0] == pytest.approx(READER.x[:2].mean(axis=(0, 1)), abs=1e-6)


def test_a_model_without_a_linear_layer_has_no_embedding() -> None:
    spec = Ready(lambda: nn.Conv1d(6, 4, 6), nn.Flatten)
    with pytest.raises(ConfigurationError, match="no linear layer, whose inputs are the embedding"):
        _ = executor(READER, spec).embedding_size


@pytest.mark.parametrize("kind", ["mlp", "cnn"])
@pytest.mark.parametrize("measure", ["embeddings", "gradients"])
def test_threads_and_slabs_change_no_bit(kind: str, measure: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embeddings, "SLAB", 8)
    alone, threaded = executor(READER, SPECS[kind]()), executor(READER, SPECS[kind](), threads=2)
    samples = requests(*SPANS)
    slabs = alone.cut_reports(samples.counts())
    assert len(slabs) == 2
    whole = getattr(alone, measure)(alone.initial(0), samples)
    assert np.array_equal(whole, getattr(threaded, measure)(alone.initial(0), samples))
    parts = [getattr(alone, measure)(alone.initial(0), samples, [slab]) for slab in slabs]
    assert np.array_equal(whole, parts[0] + parts[1])


def test_a_request_of_more_samples_than_a_batch_is_one_mean() -> None:
    reader = FakeReader(rows=EVALUATION_BATCH + 88, sample_shape=(1, 1))
    trainer = executor(reader, Ready(nn.Flatten, lambda: nn.Linear(1, 4)))
    parameters = trainer.initial(0)
    found = trainer.gradients(parameters, requests((0, 600), (0, 512), (512, 600)))
    assert found[0] == pytest.approx((512 * found[1] + 88 * found[2]) / 600, rel=1e-5, abs=1e-7)
    assert trainer.embeddings(parameters, requests((0, 600)))[0] == pytest.approx(reader.x.mean(), abs=1e-6)
