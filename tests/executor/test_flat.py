from __future__ import annotations

import weakref
from functools import partial
from math import sqrt
from typing import get_args

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from emulator.errors import ConfigurationError
from emulator.ports import Segment
from emulator.seeding import RandomStreams
from executor.flat import FlatModel, Mode
from executor.models import MODELS
from executor.models.base import ModelSpec
from executor.rules.base import build_chain
from tests.executor.fakes import Ready, model, objective, rule


def test_the_vector_is_in_the_order_of_named_parameters() -> None:
    flat_model = FlatModel(model("mlp", hidden=[3]), (2,), 4)
    flat = torch.arange(float(flat_model.num_parameters))
    named = flat_model.named(flat)
    assert list(named) == ["1.weight", "1.bias", "3.weight", "3.bias"]
    assert torch.equal(named["1.bias"], torch.tensor([6.0, 7.0, 8.0]))
    assert torch.equal(torch.cat([part.flatten() for part in named.values()]), flat)
    stacked = flat_model.named(flat.repeat(5, 1))
    assert torch.equal(stacked["3.weight"][2], named["3.weight"])


def test_logits_are_those_of_the_ordinary_module() -> None:
    flat_model = FlatModel(model("cnn"), (8, 8), 4)
    flat = torch.tensor(flat_model.initial(RandomStreams(0), 0))
    module = model("cnn").build((8, 8), 4)
    nn.utils.vector_to_parameters(flat, module.parameters())
    x = torch.ones(3, 8, 8)
    assert torch.equal(flat_model.logits(flat_model.named(flat), x), module(x))


class Tied(nn.Module):
    """Twice the same layer, and another one with its weight: one tensor in two places."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)
        self.again = self.first
        self.second.weight = self.first.weight

    def forward(self, features: Tensor) -> Tensor:
        doubled: Tensor = self.second(self.again(self.first(features)))
        return doubled


def test_layers_that_share_a_tensor_all_have_the_one_that_is_bound() -> None:
    """Weight 2 I, biases (1, 1, 1) and 0: x to 2 (2 (2 x + 1) + 1) = 8 x + 6."""
    tied = FlatModel(Ready(Tied), (3,), 3)
    assert list(tied.layout) == ["0.first.weight", "0.first.bias", "0.second.bias"]
    named = {
        "0.first.weight": 2 * torch.eye(3),
        "0.first.bias": torch.ones(3),
        "0.second.bias": torch.zeros(3),
    }
    assert tied.logits(named, torch.tensor([[0.0, 1.0, 2.0]])).tolist() == [[6.0, 14.0, 22.0]]


@pytest.mark.parametrize("mode", get_args(Mode))
def test_a_module_forgets_what_was_bound_to_it(mode: Mode) -> None:
    flat_model, x = FlatModel(model("linear"), (2,), 1), torch.tensor([[1.0, 1.0]])
    ones, twos = (flat_model.named(torch.full((3,), value)) for value in (1.0, 2.0))
    with flat_model.bound(ones, mode) as module:
        with flat_model.bound(twos, mode):
            assert module(x).item() == 6.0
        assert module(x).item() == 3.0
        assert module.training is (mode == "training")
    kept = weakref.ref(ones["1.weight"])
    del ones
    assert kept() is None
    with pytest.raises(KeyError), flat_model.bound({"1.weight": twos["1.weight"]}, mode):
        pytest.fail("bound without a bias")
    assert {part.device.type for part in module.parameters()} == {"meta"}


def test_an_initialisation_is_a_function_of_seed_and_number() -> None:
    flat_model = FlatModel(model("mlp"), (6,), 4)
    first = flat_model.initial(RandomStreams(1), 0)
    assert first.dtype == np.float32
    assert first.shape == (flat_model.num_parameters,)
    assert first.tobytes() == FlatModel(model("mlp"), (6,), 4).initial(RandomStreams(1), 0).tobytes()
    assert not np.array_equal(first, flat_model.initial(RandomStreams(1), 1))
    assert not np.array_equal(first, flat_model.initial(RandomStreams(2), 0))


def test_initial_values_fill_torchs_default_range() -> None:
    flat_model = FlatModel(model("cnn", channels=[8]), (3, 16, 16), 10)
    named = flat_model.named(torch.tensor(flat_model.initial(RandomStreams(1), 0)))
    for prefix, fan_in in (("1", 3 * 9), ("5", 8 * 7 * 7)):
        weight, bias = named[f"{prefix}.weight"], named[f"{prefix}.bias"]
        assert weight.abs().max() <= 1 / sqrt(fan_in)
        assert bias.abs().max() <= 1 / sqrt(fan_in)
        assert weight.abs().max() > 0.95 / sqrt(fan_in)
        assert float(weight.std()) == pytest.approx(1 / sqrt(3 * fan_in), rel=0.1)


def test_a_model_beyond_the_bound_is_refused_before_anything_of_its_size_is_allocated() -> None:
    for spec in (
        model("mlp", hidden=[2**16, 2**16]),
        model("masked", inner={"kind": "mlp", "hidden": [2**16] * 3}),
    ):
        with pytest.raises(ConfigurationError, match=r"parameters; a model has at most 1,073,741,824"):
            FlatModel(spec, (8, 8), 10)


def test_a_normalisation_starts_as_the_identity() -> None:
    flat_model = FlatModel(Ready(nn.Flatten, partial(nn.GroupNorm, 2, 6)), (6,), 6)
    assert flat_model.initial(RandomStreams(0), 0).tolist() == [1.0] * 6 + [0.0] * 6


def test_a_layer_without_a_rule_of_ours_starts_as_torch_has_it_and_the_others_as_ever() -> None:
    """PReLU starts at 0.25; an embedding at normal numbers, which the seed decides."""
    beside = FlatModel(Ready(nn.Flatten, nn.PReLU, partial(nn.Linear, 6, 6)), (6,), 6)
    alone = FlatModel(Ready(nn.Flatten, nn.Identity, partial(nn.Linear, 6, 6)), (6,), 6)
    assert beside.initial(RandomStreams(4), 1).tolist() == [0.25, *alone.initial(RandomStreams(4), 1)]
    table = FlatModel(Ready(partial(nn.Embedding, 5, 3)), (1,), 3)
    torch_state = torch.get_rng_state()
    first, again, other = (table.initial(RandomStreams(seed), 0) for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), torch_state)
    assert first.tobytes() == again.tobytes() != other.tobytes()


def test_the_layout_has_the_place_of_each_tensor_and_whether_it_is_trained() -> None:
    flat_model = FlatModel(model("masked", inner="linear"), (2,), 3)
    assert flat_model.layout == {
        "mask": Segment(0, 2, (2,), trainable=False),
        "inner.1.weight": Segment(2, 8, (3, 2)),
        "inner.1.bias": Segment(8, 11, (3,)),
    }
    frozen = build_chain([rule("sgd")], flat_model.layout).frozen
    assert frozen is not None
    assert frozen.tolist() == [True] * 2 + [False] * 9
    assert build_chain([rule("sgd")], FlatModel(model("linear"), (2,), 3).layout).frozen is None


def frozen_body() -> ModelSpec:
    """A frozen map of 6 to 5, whose values are ours, and a trained one of 5 to 4."""
    body = lambda: nn.Linear(6, 5).requires_grad_(False)  # noqa: E731
    return Ready(nn.Flatten, body, nn.ReLU, partial(nn.Linear, 5, 4))


def test_frozen_parameters_are_constants_at_what_initial_model_0_has_them() -> None:
    streams = RandomStreams(3)
    flat_model = FlatModel(frozen_body(), (6,), 4, streams)
    assert list(flat_model.layout) == ["3.weight", "3.bias"]
    assert (flat_model.base, flat_model.num_parameters) == (35, 24)
    trained = FlatModel(
        Ready(nn.Flatten, partial(nn.Linear, 6, 5), nn.ReLU, partial(nn.Linear, 5, 4)), (6,), 4
    )
    whole = trained.initial(streams, 0)
    assert flat_model.constants["1.weight"].ravel().tolist() == whole[:30].tolist()
    assert flat_model.constants["1.bias"].tolist() == whole[30:35].tolist()
    for number in (0, 1):
        assert flat_model.initial(streams, number).tolist() == trained.initial(streams, number)[35:].tolist()


def test_what_it_computes_is_what_the_whole_module_does() -> None:
    flat_model = FlatModel(frozen_body(), (6,), 4, RandomStreams(3))
    features, flat = torch.randn(3, 6), torch.from_numpy(flat_model.initial(RandomStreams(3), 0))
    with flat_model.bound(flat_model.named(flat)) as module:
        logits = module(features)
    body = torch.relu(
        functional.linear(features, *(flat_model.constants[f"1.{name}"] for name in ("weight", "bias")))
    )
    assert torch.equal(logits, functional.linear(body, flat[:20].view(4, 5), flat[20:]))


TEXTS = ("char_lstm", "word_transformer")


@pytest.mark.parametrize("kind", MODELS.names())
def test_the_layout_covers_the_vector_and_agrees_with_requires_grad(kind: str) -> None:
    shape = (70,) if kind == "mixture" else (8, 8)
    of_texts = {"integers": True, "objective": objective("next_token")} if kind in TEXTS else {}
    shape = (8,) if kind in TEXTS else shape
    flat_model = FlatModel(model(kind), shape, 3, **of_texts)
    segments = list(flat_model.layout.values())
    assert [segment.first for segment in segments] == [0, *(segment.last for segment in segments[:-1])]
    assert segments[-1].last == flat_model.num_parameters
    assert all(torch.Size(segment.shape).numel() == segment.last - segment.first for segment in segments)
    for tensor, part in model(kind).build(shape, 3).named_parameters():
        assert part.requires_grad == flat_model.layout[tensor].trainable


def test_building_and_initialising_leave_the_global_generators_alone() -> None:
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()  # noqa: NPY002
    FlatModel(model("cnn"), (8, 8), 4).initial(RandomStreams(0), 0)
    assert torch.equal(torch.get_rng_state(), torch_state)
    assert np.array_equal(np.random.get_state()[1], numpy_state[1])  # noqa: NPY002
