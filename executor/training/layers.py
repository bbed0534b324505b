"""The layers of n fully connected models side by side: forward and backward passes.

The outputs of a hidden layer have shape (n, B, units), which torch multiplies fastest; logits have shape
(n, labels, B), since torch normalises several times faster over an axis that is not the last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from executor.flat import FlatModel

MASK = "mask"


@dataclass(frozen=True)
class Layers:
    """The tensors of n dense models: weights and biases by layer, and the mask if they have one.

    Shapes: `weights` (n, out, in) and `biases` (n, out, 1) of each layer; `mask` (n, 1, features), or None.
    What makes a model dense is stated in `ModelSpec`.
    """

    mask: Tensor | None
    weights: list[Tensor]
    biases: list[Tensor]

    @classmethod
    def of(cls, model: FlatModel, flat: Tensor) -> Layers:
        """The layers of n models, as views of their parameters `flat` (n, P)."""
        named = model.named(flat)
        mask = named.pop(MASK, None)
        parts = list(named.values())
        biases = [bias[:, :, None] for bias in parts[1::2]]
        return cls(None if mask is None else mask[:, None], parts[::2], biases)

    @cached_property
    def _hidden(self) -> list[tuple[Tensor, Tensor]]:
        """For each hidden layer, transposed views: weights (n, in, out) and biases (n, 1, out)."""
        # NOTE: made once for all steps: making a view takes the interpreter's lock, for which threads wait.
        return [
            (weight.mT, bias.mT) for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True)
        ]

    def map(self, change: Callable[[Tensor], Tensor]) -> Layers:
        """The layers with `change` applied to every tensor."""
        mask = None if self.mask is None else change(self.mask)
        return Layers(
            mask, [change(weight) for weight in self.weights], [change(bias) for bias in self.biases]
        )

    def first(self, models: int) -> Layers:
        """The layers of the first `models` models, as views."""
        return self.map(lambda part: part[:models])

    def parts(self) -> list[Tensor]:
        """All tensors of the models: the mask, if any, then the weights of all layers, then the biases."""
        return [*([] if self.mask is None else [self.mask]), *self.weights, *self.biases]

    def activations(self, features: Tensor) -> list[Tensor]:
        """The input of each layer, (n, B, in), and as the last item the logits, (n, labels, B).

        `features`: (n, B, features), or (1, B, features) where all models have the same.
        """
        inputs = features if self.mask is None else features * self.mask
        models = self.weights[0].shape[0]
        activations = [inputs if inputs.shape[0] == models else inputs.expand(models, -1, -1)]
        for weight, bias in self._hidden:
            activations.append(torch.baddbmm(bias, activations[-1], weight).relu_())
        activations.append(torch.baddbmm(self.biases[-1], self.weights[-1], activations[-1].mT))
        return activations

    def slopes(self, inputs: list[Tensor], slope: Tensor) -> list[Tensor]:
        """For each layer, (n, out, B) the derivative of the loss by the layer's outputs before ReLU.

        `inputs`: the input of each layer (n, B, in). `slope` (n, labels, B): the derivative by the logits.
        """
        slopes = [slope]
        for weight, layer_input in zip(self.weights[:0:-1], inputs[:0:-1], strict=True):
            below = torch.bmm(slopes[-1].mT, weight)  # (n, B, in)
            torch.ops.aten.threshold_backward.grad_input(below, layer_input, 0, grad_input=below)
            slopes.append(below.mT)
        return slopes[::-1]
