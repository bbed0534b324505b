"""The published networks have the tensors of published weight files, and train by every strategy."""

from __future__ import annotations

from collections.abc import Iterator
from math import erf, log, prod, sqrt
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from emulator.errors import ConfigurationError
from executor.flops import forward_flops
from executor.models.images import NORMS
from executor.models.resnet18 import BasicBlock
from executor.models.shufflenet_v2 import Unit
from executor.models.vit_tiny import Attention, Block
from executor.training.reference import ReferenceLoop
from executor.training.stacked import StackedStrategy
from tests.executor.fakes import FakeReader, executor, model, rule, wave
from tests.executor.models.thin import THIN
from tests.executor.training.by_strategy import trained

Tensors = Iterator[tuple[str, tuple[int, ...]]]

AS_PUBLISHED = {
    "resnet18": {"stem": "imagenet", "norm": "batch"},
    "shufflenet_v2": {"stem": "imagenet", "norm": "batch"},
    "vit_tiny": {"patch": 16},
}
SMALL = [
    *((kind, {"norm": norm}) for kind in ("resnet18", "shufflenet_v2") for norm in ("group", "batch")),
    ("vit_tiny", {}),
]


def batch_norm(name: str, channels: int) -> Tensors:
    for key in ("weight", "bias", "running_mean", "running_var"):
        yield f"{name}.{key}", (channels,)
    yield f"{name}.num_batches_tracked", ()


def affine(name: str, *shape: int) -> Tensors:
    yield f"{name}.weight", shape
    yield f"{name}.bias", shape[:1]


def of_resnet18() -> Tensors:
    """The tensors of torchvision's resnet18-f37072fd.pth."""
    yield "conv1.weight", (64, 3, 7, 7)
    yield from batch_norm("bn1", 64)
    before = 64
    for layer, channels in ((1, 64), (2, 128), (3, 256), (4, 512)):
        for block in (0, 1):
            name = f"layer{layer}.{block}"
            yield f"{name}.conv1.weight", (channels, before, 3, 3)
            yield from batch_norm(f"{name}.bn1", channels)
            yield f"{name}.conv2.weight", (channels, channels, 3, 3)
            yield from batch_norm(f"{name}.bn2", channels)
            if layer > 1 and block == 0:
                yield f"{name}.downsample.0.weight", (channels, before, 1, 1)
                yield from batch_norm(f"{name}.downsample.1", channels)
            before = channels
    yield from affine("fc", 1000, 512)


def of_shufflenet_v2() -> Tensors:
    """The tensors of torchvision's shufflenetv2_x1-5666bf0f80.pth."""
    yield "conv1.0.weight", (24, 3, 3, 3)
    yield from batch_norm("conv1.1", 24)
    before = 24
    for stage, half, units in ((2, 58, 4), (3, 116, 8), (4, 232, 4)):
        for unit in range(units):
            name = f"stage{stage}.{unit}"
            seen = half if unit else before
            if unit == 0:
                yield f"{name}.branch1.0.weight", (seen, 1, 3, 3)
                yield from batch_norm(f"{name}.branch1.1", seen)
                yield f"{name}.branch1.2.weight", (half, seen, 1, 1)
                yield from batch_norm(f"{name}.branch1.3", half)
            yield f"{name}.branch2.0.weight", (half, seen, 1, 1)
            yield from batch_norm(f"{name}.branch2.1", half)
            yield f"{name}.branch2.3.weight", (half, 1, 3, 3)
            yield from batch_norm(f"{name}.branch2.4", half)
            yield f"{name}.branch2.5.weight", (half, half, 1, 1)
            yield from batch_norm(f"{name}.branch2.6", half)
        before = 2 * half
    yield "conv5.0.weight", (1024, 464, 1, 1)
    yield from batch_norm("conv5.1", 1024)
    yield from affine("fc", 1000, 1024)


def of_vit_tiny() -> Tensors:
    """The tensors of timm's vit_tiny_patch16_224."""
    yield "cls_token", (1, 1, 192)
    yield "pos_embed", (1, 197, 192)
    yield from affine("patch_embed.proj", 192, 3, 16, 16)
    for block in range(12):
        name = f"blocks.{block}"
        yield from affine(f"{name}.norm1", 192)
        yield from affine(f"{name}.attn.qkv", 576, 192)
        yield from affine(f"{name}.attn.proj", 192, 192)
        yield from affine(f"{name}.norm2", 192)
        yield from affine(f"{name}.mlp.fc1", 768, 192)
        yield from affine(f"{name}.mlp.fc2", 192, 768)
    yield from affine("norm", 192)
    yield from affine("head", 1000, 192)


class Rolled(nn.Module):
    """Puts the token of this number first."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return tokens.roll(-self.number, 1)


def set_kernels(module: nn.Module, signs: list[int]) -> None:
    """Make its convolutions, in their order, those by these numbers."""
    for layer, sign in zip([m for m in module.modules() if isinstance(m, nn.Conv2d)], signs, strict=True):
        nn.init.dirac_(layer.weight, layer.groups)
        layer.weight.data *= sign


def tensors(kind: str, **settings: Any) -> list[tuple[str, tuple[int, ...]]]:
    """Names and shapes of the state dict of a model of 1,000 labels on images of 224 x 224 pixels."""
    with torch.device("meta"):
        module = model(kind, **settings).build((3, 224, 224), 1000)
    return [(name, tuple(tensor.shape)) for name, tensor in module.state_dict().items()]


@pytest.mark.parametrize(
    ("kind", "published", "entries", "parameters"),
    [
        ("resnet18", of_resnet18(), 122, 11_689_512),
        ("shufflenet_v2", of_shufflenet_v2(), 338, 2_278_604),
        ("vit_tiny", of_vit_tiny(), 152, 5_717_416),
    ],
)
def test_tensors_have_names_shapes_and_order_of_the_published_files(
    kind: str, published: Tensors, entries: int, parameters: int
) -> None:
    ours = tensors(kind, **AS_PUBLISHED[kind])
    assert ours == list(published)
    statistics = ("running_mean", "running_var", "num_batches_tracked")
    assert len(ours) == entries
    assert sum(prod(shape) for name, shape in ours if not name.endswith(statistics)) == parameters


@pytest.mark.parametrize("kind", AS_PUBLISHED)
def test_outputs_are_those_of_torchvision_and_timm(kind: str) -> None:
    """To the bit with torchvision 0.28.0; timm 1.0.31 computes attention otherwise."""
    package = "timm" if kind == "vit_tiny" else "torchvision"
    theirs = pytest.importorskip(f"{package}.models", reason=f"{package} is not installed")
    name = {"shufflenet_v2": "shufflenet_v2_x1_0", "vit_tiny": "vit_tiny_patch16_224"}.get(kind, kind)
    published = getattr(theirs, name)()
    ours = model(kind, **AS_PUBLISHED[kind]).build((3, 224, 224), 1000)
    ours.load_state_dict(published.state_dict(), strict=True)
    images = torch.linspace(-1, 1, 2 * 3 * 224 * 224).sin().view(2, 3, 224, 224)
    for mode in (True, False):
        torch.testing.assert_close(ours.train(mode)(images), published.train(mode)(images))


@pytest.mark.parametrize("kind", ["resnet18", "shufflenet_v2"])
def test_group_norm_has_the_names_of_batch_norm_without_statistics(kind: str) -> None:
    settings = AS_PUBLISHED[kind] | {"norm": "group"}
    statistics = ("running_mean", "running_var", "num_batches_tracked")
    of_batch_norm = tensors(kind, **AS_PUBLISHED[kind])
    assert tensors(kind, **settings) == [pair for pair in of_batch_norm if not pair[0].endswith(statistics)]


def test_group_norm_is_of_two_groups_of_channels() -> None:
    pixel = torch.tensor([20.0, 40, -3, -1]).view(1, 4, 1, 1)
    torch.testing.assert_close(
        NORMS["group"](4)(pixel).flatten(), torch.tensor([-1.0, 1, -1, 1]), atol=1e-5, rtol=0
    )


@pytest.mark.parametrize(
    ("kind", "stem", "sides"),
    [
        ("resnet18", "cifar", [32, 16, 8, 4]),  # after each stage
        ("resnet18", "imagenet", [8, 4, 2, 1]),
        ("shufflenet_v2", "cifar", [16, 8, 4]),
        ("shufflenet_v2", "imagenet", [4, 2, 1]),
    ],
)
def test_the_stem_for_small_images_keeps_what_the_other_divides_by_four(
    kind: str, stem: str, sides: list[int]
) -> None:
    module = THIN[kind](THIN[kind].Settings(stem=stem)).build((32, 32), 3)
    images, seen = torch.zeros(1, 32, 32), []
    for name, layer in module.named_children():
        images = layer(images)
        if name.startswith(("layer", "stage")):
            seen.append(images.shape[-1])
    assert seen == sides


def test_a_block_without_residual_is_relu_or_the_convolved_shortcut() -> None:
    images = torch.linspace(-2, 2, 2 * 4 * 6 * 6).view(2, 4, 6, 6)
    for channels, pixels in ((4, images), (8, images[:, :, ::2, ::2])):
        block = BasicBlock(4, channels, nn.Identity)
        with torch.no_grad():
            block.conv2.weight.zero_()
            for layer in block.downsample:
                if isinstance(layer, nn.Conv2d):  # the channels twice
                    layer.weight.copy_(torch.eye(4).repeat(2, 1).view(8, 4, 1, 1))
        assert torch.equal(block(images), pixels.relu().repeat(1, channels // 4, 1, 1))


def test_between_its_convolutions_a_block_has_relu() -> None:
    block, images = BasicBlock(4, 4, nn.Identity), torch.linspace(-2, 2, 4 * 6 * 6).view(1, 4, 6, 6)
    set_kernels(block, [-1, 1])
    torch.testing.assert_close(block(images), images.relu())  # and not relu(x - x)


@pytest.mark.parametrize(("signs", "kept"), [([1, -1, -1], True), ([1, 1, -1], False)])
def test_a_unit_has_relu_behind_its_first_and_its_last_convolution(signs: list[int], kept: bool) -> None:
    unit, images = Unit(4, 4, nn.Identity), torch.linspace(-2, 2, 4 * 6 * 6).view(1, 4, 6, 6)
    set_kernels(unit, signs)
    torch.testing.assert_close(unit(images)[:, 1::2], images[:, 2:].relu() * kept)


def test_a_unit_keeps_half_of_the_channels_and_puts_them_between_the_others() -> None:
    unit = Unit(4, 4, nn.Identity)
    unit.branch2 = nn.Sequential()
    images = torch.arange(4.0).view(1, 4, 1, 1)
    assert unit(images).flatten().tolist() == [0, 2, 1, 3]
    halving = Unit(2, 4, nn.Identity)
    halving.branch1, halving.branch2 = nn.Identity(), nn.Identity()
    assert halving(images[:, :2]).flatten().tolist() == [0, 0, 1, 1]


def test_attention_to_equal_keys_is_the_mean_of_the_values() -> None:
    attention, tokens = Attention(6, 3), torch.linspace(-1, 1, 2 * 5 * 6).view(2, 5, 6)
    with torch.no_grad():
        for layer in (attention.qkv, attention.proj):
            layer.weight.zero_()
            layer.bias.zero_()
        attention.qkv.weight[12:] = torch.eye(6)  # queries and keys 0, values the tokens
        attention.proj.weight.copy_(2 * torch.eye(6))
    torch.testing.assert_close(attention(tokens), 2 * tokens.mean(1, keepdim=True).expand_as(tokens))


def test_a_head_weights_tokens_by_the_softmax_of_scaled_products() -> None:
    attention, tokens = Attention(4, 2), torch.tensor([[[1.0, 0, 1, 0], [0, 1, 1, 0]]])
    with torch.no_grad():
        attention.qkv.bias.zero_()
        queries = sqrt(2) * log(3) * torch.eye(4)  # of two numbers in a head: 3 to 1 for what they match
        attention.qkv.weight.copy_(torch.cat([queries, torch.eye(4), torch.eye(4)]))
        attention.proj.weight.copy_(torch.eye(4))
        attention.proj.bias.zero_()
    expected = [[[0.75, 0.25, 1, 0], [0.25, 0.75, 1, 0]]]  # in the second head both tokens are alike
    torch.testing.assert_close(attention(tokens), torch.tensor(expected))


def test_the_logits_are_of_the_class_token_before_those_of_patches_each_with_its_position() -> None:
    vit = THIN["vit_tiny"](THIN["vit_tiny"].Settings()).build((8, 12), 3)
    vit.norm = vit.head = nn.Identity()
    images = torch.linspace(-1, 1, 96).view(1, 8, 12)
    corner = vit.patch_embed.proj(images[:, None, 4:, 8:]).flatten()
    nn.init.normal_(vit.cls_token)
    for token, expected in ((0, vit.cls_token.flatten()), (6, corner)):
        vit.blocks = Rolled(token)
        torch.testing.assert_close(vit(images)[0], expected + vit.pos_embed[0, token])


def test_a_layer_that_adds_nothing_is_the_identity() -> None:
    block, tokens = Block(6, 3), torch.linspace(-1, 1, 2 * 5 * 6).view(2, 5, 6)
    with torch.no_grad():
        for layer in (block.attn.proj, block.mlp.fc2):
            layer.weight.zero_()
            layer.bias.zero_()
    assert torch.equal(block(tokens), tokens)


def test_the_perceptron_of_a_layer_has_the_exact_gelu_of_tokens_normalised_as_in_timm() -> None:
    block, token = Block(2, 1), torch.tensor([[[0.001, -0.001]]])
    with torch.no_grad():
        block.attn.proj.weight.zero_()
        block.attn.proj.bias.zero_()
        for layer in (block.mlp.fc1, block.mlp.fc2):
            layer.bias.zero_()
            layer.weight.copy_(torch.eye(*layer.weight.shape))
    expected = [x + n * (1 + erf(n / sqrt(2))) / 2 for x, n in ((0.001, sqrt(0.5)), (-0.001, -sqrt(0.5)))]
    torch.testing.assert_close(block(token).flatten(), torch.tensor(expected))  # of variance 1e-6


def test_a_patch_that_does_not_divide_the_image_is_refused_with_those_that_do() -> None:
    with pytest.raises(
        ConfigurationError,
        match=r"^model vit_tiny: patch = 8: must divide height and width of images of 28 x 42 pixels; "
        r"choices: 1, 2, 7, 14$",
    ):
        model("vit_tiny", patch=8).build((28, 42), 10)


@pytest.mark.parametrize("kind", AS_PUBLISHED)
def test_samples_that_are_no_images_are_refused(kind: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"^model {kind} takes images .* shape \(64,\); use mlp"):
        model(kind).build((64,), 10)


@pytest.mark.parametrize("kind", ["resnet18", "shufflenet_v2"])
@pytest.mark.parametrize("stem", ["cifar", "imagenet"])
def test_a_single_pixel_is_an_image(kind: str, stem: str) -> None:
    module = THIN[kind](THIN[kind].Settings(stem=stem)).build((1, 1), 3)
    logits = module(torch.tensor([[[1.0]], [[-1.0]]]))
    assert logits.shape == (2, 3)
    assert not torch.equal(logits[0], logits[1])


def test_flops_are_two_for_each_weight_and_pixel_that_it_is_applied_to() -> None:
    """He et al. count 1.8 billion multiply-adds, which are two FLOPs each."""
    by_hand = 2 * (
        147 * 64 * 112**2  # the stem
        + 4 * 9 * 64 * 64 * 56**2
        + sum(
            (9 * c // 2 * c + 3 * 9 * c * c + c // 2 * c) * side**2
            for c, side in ((128, 28), (256, 14), (512, 7))
        )
        + 512 * 1000
    )
    assert forward_flops(model("resnet18", stem="imagenet"), (3, 224, 224), 1000) == by_hand
    assert round(by_hand / 2e9, 1) == 1.8


@pytest.mark.parametrize(("kind", "settings"), SMALL)
def test_stacked_clients_are_trained_as_one_by_one(kind: str, settings: dict[str, Any]) -> None:
    spec, reader = THIN[kind](THIN[kind].Settings(**settings)), FakeReader(60, (12, 12))
    alone = trained(ReferenceLoop, spec, reader, [rule("sgd")], 1)
    together = trained(StackedStrategy, spec, reader, [rule("sgd")], 3)
    assert np.abs(together - alone).max() <= 1e-9 * np.abs(alone).max()


@pytest.mark.parametrize(("kind", "settings"), SMALL)
def test_two_threads_make_the_bits_of_one(kind: str, settings: dict[str, Any]) -> None:
    spec, made = THIN[kind](THIN[kind].Settings(**settings)), []
    for threads in (1, 2):
        local = executor(FakeReader(9, (8, 8)), spec, threads=threads)
        assert local.strategy == "loop"
        tasks = wave(counts=[5, 4], steps=[2, 2], batch_size=2)
        updates = local.train(tasks, local.initial(0)[None], np.zeros(2, dtype=np.int64))
        assert updates.finite.all()
        assert updates.delta.any(axis=1).all()
        made.append((updates.delta.tobytes(), updates.statistics.tobytes()))
    assert made[0] == made[1]
