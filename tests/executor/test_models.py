from __future__ import annotations

from math import gcd, prod

import pytest
import torch
from pydantic import ValidationError
from torch import nn
from torch.nn import functional

from emulator.errors import ConfigurationError, UnknownNameError
from emulator.seeding import RandomStreams
from executor.flat import FlatModel
from executor.models import MODELS
from executor.models.base import ModelSpec
from tests.executor.fakes import model

OTHERS = {"char_lstm", "mixture", "word_transformer"}
"""Models of texts, or of vectors."""


@pytest.mark.parametrize("shape", [(8, 8), (1, 8, 8), (28, 28), (3, 32, 32), (7, 9)])
@pytest.mark.parametrize("kind", [kind for kind in MODELS.names() if kind not in OTHERS])
def test_every_model_maps_images_to_one_logit_per_label(kind: str, shape: tuple[int, ...]) -> None:
    settings = {"vit_tiny": {"patch": gcd(*shape[-2:])}, "mixture": {"size": 4}}
    module = model(kind, **settings.get(kind, {})).build(shape, 5)
    assert module(torch.zeros(2, *shape)).shape == (2, 5)


def test_the_two_block_cnn_has_800_inputs_to_its_last_layer_on_28_by_28() -> None:
    spec = model("cnn")
    assert FlatModel(spec, (28, 28), 10).num_parameters == (9 + 1) * 16 + (144 + 1) * 32 + (800 + 1) * 10
    assert FlatModel(spec, (1, 28, 28), 10).num_parameters == 12810


def test_hidden_layers_of_the_cnn_lie_between_its_blocks_and_the_logits() -> None:
    """Detect-Adapt-Overcome's network: 1,600 numbers after the blocks, 128 hidden units, ten labels."""
    spec = model("cnn", channels=[32, 64], hidden=[128])
    blocks = (9 + 1) * 32 + (9 * 32 + 1) * 64
    assert FlatModel(spec, (28, 28), 10).num_parameters == blocks + (1600 + 1) * 128 + (128 + 1) * 10
    layers = [type(layer).__name__ for layer in spec.build((28, 28), 10)]
    assert layers[-4:] == ["Flatten", "Linear", "ReLU", "Linear"]


@pytest.mark.parametrize(("shape", "channels"), [((10, 13), 1), ((3, 14, 12), 3)])
def test_the_cnn_is_convolution_relu_and_pooling_whatever_the_order_it_computes_in(
    shape: tuple[int, ...], channels: int
) -> None:
    module = model("cnn", channels=[4, 5]).build(shape, 2).double()
    x = torch.linspace(-1, 1, 6 * prod(shape), dtype=torch.float64).sin().view(6, *shape)
    parameters = list(module.parameters())
    plain = x.view(6, channels, *shape[-2:])
    for weight, bias in (parameters[:2], parameters[2:4]):
        plain = functional.max_pool2d(functional.relu(functional.conv2d(plain, weight, bias)), 2)
    plain = functional.linear(plain.flatten(1), *parameters[4:])
    computed = module(x)
    torch.testing.assert_close(computed, plain, rtol=1e-12, atol=1e-14)
    gradients, expected = (
        torch.autograd.grad(logits.exp().sum(), parameters) for logits in (computed, plain)
    )
    torch.testing.assert_close(gradients, expected, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("shape", [(28, 28), (3, 28, 28)])
def test_the_cnn_keeps_the_channels_of_a_pixel_adjacent(shape: tuple[int, ...]) -> None:
    module = model("cnn").build(shape, 2)
    assert isinstance(module, nn.Sequential)
    images = torch.zeros(4, *shape)
    for layer in list(module)[:6]:
        images = layer(images)
        assert images.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize(
    ("side", "padding", "inputs"),
    [
        (10, None, 32),  # 10 -> 8 -> 4 -> 2 -> 1
        (9, None, 32 * 4),  # 9 -> 4 -> 2 with padding; 9 -> 7 -> 3 -> 1 -> 0 without
        (10, 1, 32 * 4),  # 10 -> 5 -> 2
    ],
)
def test_the_cnn_pads_images_that_would_vanish_without(side: int, padding: int | None, inputs: int) -> None:
    flat_model = FlatModel(model("cnn", padding=padding), (1, side, side), 2)
    assert flat_model.layout["8.weight"].shape == (2, inputs)


@pytest.mark.parametrize(
    ("settings", "shape", "complaint"),
    [
        ({}, (3, 3), "nothing is left of 3 pixels after 2 blocks"),
        ({"padding": 0}, (8, 8), "with padding = 0"),
        ({"channels": [4, 4, 4, 4]}, (28, 8), "nothing is left of 8 pixels after 4 blocks"),
        ({}, (64,), r"not samples of shape \(64,\); use mlp or linear"),
        ({}, (2, 3, 8, 8), r"not samples of shape \(2, 3, 8, 8\)"),
    ],
)
def test_the_cnn_refuses_samples_that_it_cannot_take(
    settings: dict[str, object], shape: tuple[int, ...], complaint: str
) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        model("cnn", **settings).build(shape, 10)


@pytest.mark.parametrize(("depth", "shape"), [(1, (10, 13)), (2, (3, 5, 4))])
def test_a_resnet_adds_to_each_image_what_two_normalised_convolutions_make_of_it(
    depth: int, shape: tuple[int, ...]
) -> None:
    module = model("resnet", depth=depth, channels=4, groups=2).build(shape, 3).double()
    x = torch.linspace(-1, 1, 6 * prod(shape), dtype=torch.float64).sin().view(6, *shape)
    kernels = [parameter for parameter in module.parameters() if parameter.dim() == 4]
    assert len(kernels) == 1 + 2 * depth

    def normalised(images: torch.Tensor) -> torch.Tensor:
        """Mean 0 and variance 1 over two channels and all pixels of one image."""
        grouped = images.reshape(6, 2, -1)
        centred = grouped - grouped.mean(2, keepdim=True)
        return (centred / (centred.square().mean(2, keepdim=True) + 1e-5).sqrt()).view_as(images)

    images = functional.conv2d(x.view(6, -1, *shape[-2:]), kernels[0], stride=2, padding=1)
    images = functional.relu(normalised(images))
    for first, second in zip(kernels[1::2], kernels[2::2], strict=True):
        inner = functional.relu(normalised(functional.conv2d(images, first, padding=1)))
        images = functional.relu(images + normalised(functional.conv2d(inner, second, padding=1)))
    pooled = functional.avg_pool2d(images, 2, ceil_mode=True).flatten(1)
    plain = functional.linear(pooled, *list(module.parameters())[-2:])
    torch.testing.assert_close(module(x), plain, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize(("shape", "pixels"), [((28, 28), 7 * 7), ((5, 9), 2 * 3), ((1, 1), 1)])
def test_a_resnet_halves_images_twice_and_each_block_has_two_convolutions(
    shape: tuple[int, ...], pixels: int
) -> None:
    by_hand = (9 * 8 + 16) + 2 * 2 * (9 * 8 * 8 + 16) + (8 * pixels + 1) * 10
    assert FlatModel(model("resnet", depth=2, channels=8), shape, 10).num_parameters == by_hand


def test_a_resnet_refuses_samples_that_are_no_images() -> None:
    with pytest.raises(ConfigurationError, match=r"not samples of shape \(64,\); use mlp or linear"):
        model("resnet").build((64,), 10)


def test_an_mlp_without_hidden_layers_is_linear() -> None:
    assert FlatModel(model("mlp", hidden=[]), (6,), 4).layout == FlatModel(model("linear"), (6,), 4).layout


def test_hidden_layers_come_in_their_order() -> None:
    layout = FlatModel(model("mlp", hidden=[5, 3]), (2, 2), 4).layout
    assert [segment.shape for segment in layout.values()] == [(5, 4), (5,), (3, 5), (3,), (4, 3), (4,)]


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("mlp", {"hidden": [0]}),
        ("mlp", {"width": 3}),
        ("cnn", {"channels": []}),
        ("linear", {"bias": False}),
        ("resnet", {"depth": 0}),
        ("resnet", {"channels": 4}),  # four groups of one channel each
        ("resnet", {"channels": 6, "groups": 4}),
        ("resnet18", {"norm": "layer"}),
        ("shufflenet_v2", {"stem": "mnist"}),
        ("vit_tiny", {"patch": 0}),
        ("char_lstm", {"layers": 0}),
        ("word_transformer", {"heads": 3}),
    ],
)
def test_settings_out_of_range_or_unknown_are_refused(kind: str, settings: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        model(kind, **settings)


def test_an_unknown_model_lists_the_choices() -> None:
    with pytest.raises(
        UnknownNameError,
        match="unknown model 'cn'; choices: char_lstm, cnn, context, linear, masked, mixture, mlp, ",
    ):
        MODELS.find("cn")


def masked(inner: object = "mlp", **settings: object) -> FlatModel:
    return FlatModel(model("masked", inner=inner, **settings), (2, 2), 3)


@pytest.mark.parametrize("inner", ["linear", "mlp", {"kind": "cnn", "channels": [2]}])
def test_a_mask_of_ones_changes_nothing(inner: object) -> None:
    behind = masked(inner)
    kind, settings = (inner, {}) if isinstance(inner, str) else ("cnn", {"channels": [2]})
    bare = FlatModel(model(kind, **settings), (2, 2), 3)
    flat = behind.initial(RandomStreams(0), 1)
    assert flat[:4].tolist() == [1, 1, 1, 1]
    assert flat[4:].tobytes() == bare.initial(RandomStreams(0), 1).tobytes()
    x = torch.arange(20.0).view(5, 2, 2)
    logits = behind.logits(behind.named(torch.tensor(flat)), x)
    assert torch.equal(logits, bare.logits(bare.named(torch.tensor(flat[4:])), x))


def test_a_masked_feature_has_no_influence() -> None:
    behind = masked()
    flat = torch.tensor(behind.initial(RandomStreams(0), 0))
    flat[:4] = torch.tensor([1.0, 0.0, 1.0, 0.0])
    x = torch.arange(4.0).view(1, 2, 2)
    changed = x + torch.tensor([[0.0, 7.0], [0.0, -3.0]])
    named = behind.named(flat)
    assert torch.equal(behind.logits(named, x), behind.logits(named, changed))
    assert torch.equal(behind.logits(named, x, mode="serving"), behind.logits(named, changed, mode="serving"))


def test_the_parity_switch_ignores_the_mask_when_clients_are_served_only() -> None:
    behind, seeing = masked(feddrift_unmasked_inference=True), masked()
    flat = torch.tensor(behind.initial(RandomStreams(0), 0))
    everything = behind.named(flat.clone())
    flat[1] = 0
    x = torch.arange(1.0, 5.0).view(1, 2, 2)
    half = behind.named(flat)
    assert torch.equal(behind.logits(half, x, mode="serving"), seeing.logits(everything, x))
    assert torch.equal(behind.logits(half, x), seeing.logits(half, x))
    assert not torch.equal(behind.logits(half, x), behind.logits(half, x, mode="serving"))


def test_a_masked_model_stacks_as_its_inner_model_does() -> None:
    def flags(spec: ModelSpec) -> tuple[bool, bool]:
        return spec.stacks, spec.dense

    assert flags(model("masked")) == (True, True)
    assert flags(model("masked", inner="cnn")) == (False, False)
    assert flags(model("masked", inner="masked")) == (True, False)


def test_an_unknown_model_behind_the_mask_is_refused() -> None:
    with pytest.raises(ValidationError, match="unknown model 'lienar'"):
        model("masked", inner="lienar")
