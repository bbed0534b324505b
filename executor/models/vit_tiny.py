"""The vision transformer ViT-Ti, whose tensors are named as in timm's weight files."""

from __future__ import annotations

from math import gcd
from typing import ClassVar

import torch
from torch import Tensor, nn

from emulator.errors import ConfigurationError
from executor.models.base import ModelSpec
from executor.models.images import image_shape, sequence, with_channels
from executor.models.settings import VitTinySettings

EPSILON = 1e-6
"""What layer norm adds to a variance, as in timm."""


class VitTiny(ModelSpec):
    """A transformer of 12 layers, 3 heads and 192 numbers a token, which sees an image as square patches.

    The tokens are a class token and an affine map of each patch, plus a position of each. A layer adds to
    them attention, then a perceptron with 768 hidden units and GELU, both of tokens that are normalised
    first. The logits are an affine map of the class token, normalised. Takes grey images (height, width) and
    images with channels (channels, height, width).

    With `patch = 16` and images of (3, 224, 224), tensors have the names, shapes and order of timm's
    `vit_tiny_patch16_224`: 5,717,416 parameters at 1,000 labels. Positions start as numbers drawn at a
    standard deviation of 0.02, the class token as 0.

    Source: Dosovitskiy et al. 2021 (the network); Touvron et al. 2021 (its size).

    >>> import torch
    >>> with torch.device("meta"):
    ...     model = VitTiny(VitTiny.Settings(patch=16)).build((3, 224, 224), num_outputs=1000)
    >>> sum(parameter.numel() for parameter in model.parameters())
    5717416
    """

    Settings = VitTinySettings

    stacks = False
    layers: ClassVar[int] = 12
    heads: ClassVar[int] = 3
    width: ClassVar[int] = 192

    def build(self, sample_shape: tuple[int, ...], num_outputs: int) -> nn.Module:
        channels, height, width = image_shape("vit_tiny", sample_shape)
        patch, common = self.settings.patch, gcd(height, width)
        if common % patch != 0:
            choices = ", ".join(str(side) for side in range(1, common + 1) if common % side == 0)
            raise ConfigurationError(
                f"model vit_tiny: patch = {patch}: must divide height and width of images of {height} x "
                f"{width} pixels; choices: {choices}"
            )
        embedding = nn.Conv2d(channels, self.width, patch, patch)
        patches = sequence(images=with_channels(sample_shape), proj=embedding, pixels=nn.Flatten(2))
        blocks = nn.Sequential(*(Block(self.width, self.heads) for _ in range(self.layers)))
        number = height * width // patch**2
        return VisionTransformer(patches, number, blocks, nn.Linear(self.width, num_outputs))


class VisionTransformer(nn.Module):
    """Maps images, of which `patch_embed` makes (n, width, patches), to logits, by the layers `blocks`."""

    def __init__(self, patch_embed: nn.Module, patches: int, blocks: nn.Module, head: nn.Linear) -> None:
        super().__init__()
        width = head.in_features
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(nn.init.trunc_normal_(torch.empty(1, patches + 1, width), std=0.02))
        self.patch_embed, self.blocks = patch_embed, blocks
        self.norm, self.head = nn.LayerNorm(width, EPSILON), head

    def forward(self, images: Tensor) -> Tensor:
        patches = self.patch_embed(images).mT
        tokens = torch.cat([self.cls_token.expand(len(images), -1, -1), patches], 1) + self.pos_embed
        logits: Tensor = self.head(self.norm(self.blocks(tokens)[:, 0]))
        return logits


class Block(nn.Module):
    """A layer: adds to tokens (n, tokens, width) attention, then a perceptron of each."""

    def __init__(self, width: int, heads: int, *, causal: bool = False) -> None:
        super().__init__()
        self.norm1, self.attn = nn.LayerNorm(width, EPSILON), Attention(width, heads, causal=causal)
        self.norm2 = nn.LayerNorm(width, EPSILON)
        self.mlp = sequence(fc1=nn.Linear(width, 4 * width), act=nn.GELU(), fc2=nn.Linear(4 * width, width))

    def forward(self, tokens: Tensor) -> Tensor:
        tokens = tokens + self.attn(self.norm1(tokens))
        mixed: Tensor = tokens + self.mlp(self.norm2(tokens))
        return mixed


class Attention(nn.Module):
    """Each token as a mean over all, weighted by the softmax of scaled products, in each head by itself.

    One that is `causal` is a mean over itself and those before it.
    """

    def __init__(self, width: int, heads: int, *, causal: bool = False) -> None:
        super().__init__()
        self.causal = causal
        self.heads, self.scale = heads, (width // heads) ** -0.5
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, tokens: Tensor) -> Tensor:
        queries, keys, values = self.qkv(tokens).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        # NOTE: not scaled_dot_product_attention, which vmap cannot batch, and which is no faster here.
        products = self.scale * queries @ keys.mT
        if self.causal:
            later = torch.ones(products.shape[-2:], dtype=torch.bool, device=products.device).triu(1)
            products = products.masked_fill(later, -torch.inf)
        weights = products.softmax(-1)
        attended: Tensor = self.proj((weights @ values).transpose(1, 2).flatten(2))
        return attended
