"""Labels: a model tells which label a sample has."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from emulator.plugins import NoSettings
from executor.objectives.base import Objective


class Labels(Objective):
    """The label of the sample: cross-entropy, and 1 for a hit, 0 for another likeliest label.

    The outputs are a logit for each label.

    Source: ours.

    >>> import torch
    >>> of_two = torch.tensor([[0.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 1])
    >>> LABELS.hits(*of_two), LABELS.losses(*of_two)
    (tensor([1., 1.]), tensor([0.6931, 0.3133]))
    """

    reads = "labels"
    word = "accuracy"

    def losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return functional.cross_entropy(outputs, targets, reduction="none")

    def hits(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return (outputs.argmax(dim=1) == targets).to(outputs.dtype)

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return functional.cross_entropy(outputs, targets)

    def errors(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """(n,) whether some label has a larger logit than that of the sample: of equals none is wrong."""
        return (outputs.amax(dim=1) > outputs.gather(1, targets[:, None])[:, 0]).to(outputs.dtype)

    def predicted(self, outputs: Tensor) -> Tensor:
        return torch.softmax(outputs, 1)

    def outputs_of(self, predicted: Tensor) -> Tensor:
        return predicted.log()


LABELS = Labels(NoSettings())
"""The objective of a run that names none."""


def is_labels(objective: Objective) -> bool:
    """Whether it is `Labels` itself, and no own part about labels: several paths compute its loss faster."""
    return type(objective) is Labels
