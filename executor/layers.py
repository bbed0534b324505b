"""Fully connected models side by side: the layers of n of them as views of one array of parameters.

Units come before samples in all activations, (n, units, B): torch normalises logits several times faster over
an axis that is not the last.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from executor.flat import FlatModel

MASK = "mask"


@dataclass(frozen=True)
class Layers:
    """n models: by layer, `weights` (n, out, in) and `biases` (n, out, 1); `mask` (n, 1, features), if any.

    The model they are of must be `dense` (see `ModelSpec`).
    """

    mask: Tensor | None
    weights: list[Tensor]
    biases: list[Tensor]

    @classmethod
    def of(cls, model: FlatModel, flat: Tensor) -> Layers:
        """Views of `flat` (n, P)."""
        named = model.named(flat)
        mask = named.pop(MASK, None)
        parts = list(named.values())
        biases = [bias[:, :, None] for bias in parts[1::2]]
        return cls(None if mask is None else mask[:, None], parts[::2], biases)

    def activations(self, features: Tensor) -> list[Tensor]:
        """What goes into each layer, and the logits; of `features` (n, B, features), or (1, B, features)."""
        inputs = features if self.mask is None else features * self.mask
        found = [inputs.expand(len(self.weights[0]), -1, -1).mT]
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            found.append(torch.baddbmm(bias, weight, found[-1]).relu_())
        found.append(torch.baddbmm(self.biases[-1], self.weights[-1], found[-1]))
        return found
