from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import nn

from emulator.errors import ConfigurationError
from executor.flops import forward_flops
from executor.models import MODELS
from executor.models.base import ModelSpec

FEATURES, SIZE, LABELS = 4, 2, 3


def spec(kind: str, **settings: Any) -> ModelSpec:
    found = MODELS.find(kind)
    made: ModelSpec = found(found.Settings.model_validate({"size": SIZE, **settings}))
    return made


def built(kind: str, **settings: Any) -> nn.Module:
    torch.manual_seed(3)
    return spec(kind, **settings).build((FEATURES + SIZE,), LABELS)


def test_context_is_its_inner_model_of_the_whole_vector() -> None:
    module = built("context", inner={"kind": "mlp", "hidden": [5]})
    torch.manual_seed(3)
    inner = MODELS.find("mlp")
    alone = inner(inner.Settings(hidden=(5,))).build((FEATURES + SIZE,), LABELS)
    samples = torch.arange(12.0).reshape(2, 6)
    assert module(samples).tolist() == alone(samples).tolist()
    assert spec("context", inner="linear").dense
    assert spec("context").dense  # by default around mlp


def test_a_mixture_is_the_mean_of_logits_weighed_by_a_softmax_of_the_context() -> None:
    module = built("mixture", inner="linear", experts=3)
    samples = torch.from_numpy(np.random.default_rng(0).normal(size=(5, 6)).astype("f"))
    weights = {name: tensor.detach().numpy() for name, tensor in module.named_parameters()}
    features, context = samples[:, :FEATURES].numpy(), samples[:, FEATURES:].numpy()
    gate = np.exp(context @ weights["gate.weight"].T + weights["gate.bias"])
    gate /= gate.sum(axis=1, keepdims=True)
    linear = [
        name.removesuffix("weight") for name in weights if name.endswith("weight") and "gate" not in name
    ]
    logits = [features @ weights[f"{name}weight"].T + weights[f"{name}bias"] for name in linear]
    assert len(logits) == 3
    expected = sum(gate[:, [expert]] * logits[expert] for expert in range(3))
    assert module(samples).detach().numpy() == pytest.approx(expected, abs=1e-5)


def test_a_context_of_zeros_leaves_the_choice_to_the_biases_of_the_gate() -> None:
    """As of samples that are read plain: a gate that is sure of expert 0 gives its logits."""
    module = built("mixture", inner="linear", experts=2)
    with torch.no_grad():
        module.gate.bias.copy_(torch.tensor([50.0, -50.0]))
    samples = torch.cat([torch.arange(8.0).reshape(2, 4), torch.zeros(2, SIZE)], dim=1)
    assert module(samples).tolist() == module.experts[0](samples[:, :FEATURES]).tolist()


def test_the_operations_of_a_mixture_are_those_of_gate_and_experts() -> None:
    """2 for each weight: 3 x 6 of `context`, and of `mixture` 3 x 2 of the gate and 3 x 12 of the experts."""
    assert forward_flops(spec("context", inner="linear"), (6,), LABELS) == 2 * 3 * 6
    assert forward_flops(spec("mixture", inner="linear", experts=3), (6,), LABELS) == 2 * (3 * 2 + 3 * 12)


@pytest.mark.parametrize("kind", ["context", "mixture"])
def test_a_model_that_takes_no_vector_cannot_be_inside(kind: str) -> None:
    said = f"model '{kind}': inner = 'cnn' takes samples of their own shape, and no context beside them; "
    said += "choices: 'linear', 'mlp'"
    with pytest.raises(ConfigurationError, match=f"^{said}$"):
        spec(kind, inner="cnn")
    with pytest.raises(ValidationError, match="greater than or equal to 1"):
        spec(kind, size=0)


@pytest.mark.parametrize("shape", [(2,), (1,), (1, 2)])
def test_a_mixture_needs_features_before_the_context(shape: tuple[int, ...]) -> None:
    with pytest.raises(ConfigurationError, match=r"^mixture: the last size = 2 numbers of a sample are its"):
        spec("mixture").build(shape, LABELS)
