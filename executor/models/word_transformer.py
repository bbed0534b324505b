"""A small transformer of texts."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from executor.models.base import ModelSpec
from executor.models.char_lstm import text_length
from executor.models.settings import WordTransformerSettings
from executor.models.vit_tiny import EPSILON, Block


class WordTransformer(ModelSpec):
    """A transformer that tells which token follows each of a text, from that one and those before it.

    A token is looked up in the weights of the logits, and has the position added, which is learned. Layers
    are those of `vit_tiny`, with attention that does not look ahead.

    Five tokens of 4 numbers, at 7 positions, and one layer: 5 x 4 and 7 x 4 numbers, 12 x 4 x 4 weights and
    9 x 4 biases of the layer, and three norms of 2 x 4.

    Source: Radford et al. 2019 (GPT-2), in which output and embedding are tied as in Press and Wolf 2017.

    >>> settings = WordTransformer.Settings(layers=1, heads=2, width=4)
    >>> model = WordTransformer(settings).build((7,), num_outputs=5)
    >>> sum(parameter.numel() for parameter in model.parameters())
    300
    >>> model(torch.zeros(3, 7, dtype=torch.int64)).shape
    torch.Size([3, 7, 5])
    """

    Settings = WordTransformerSettings

    tells_next_token = True

    def build(self, sample_shape: tuple[int, ...], num_outputs: int) -> nn.Module:
        length, settings = text_length("word_transformer", sample_shape), self.settings
        blocks = (Block(settings.width, settings.heads, causal=True) for _ in range(settings.layers))
        head = nn.Linear(settings.width, num_outputs, bias=False)
        return Transformer(length, nn.Sequential(*blocks), head)


class Transformer(nn.Module):
    """Maps texts (n, length) to logits (n, length, vocabulary); tokens are looked up in `head`, too."""

    def __init__(self, length: int, blocks: nn.Module, head: nn.Linear) -> None:
        super().__init__()
        width = head.in_features
        self.positions = nn.Parameter(nn.init.trunc_normal_(torch.empty(length, width), std=0.02))
        self.blocks, self.norm, self.head = blocks, nn.LayerNorm(width, EPSILON), head

    def forward(self, texts: Tensor) -> Tensor:
        tokens = functional.embedding(texts, self.head.weight) + self.positions
        logits: Tensor = self.head(self.norm(self.blocks(tokens)))
        return logits
