"""Several labels of a sample: a model tells of each whether the sample has it."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from executor.objectives.base import Objective
from traces.files.features import ValueRule


class MultiLabel(Objective):
    """Targets of 0 and 1, each by itself: the mean of their cross-entropies.

    The outputs are a logit for each target. Hits are the share of targets that are right: where a logit is
    above 0, and the target 1, or neither.

    Source: ours.

    >>> import torch
    >>> objective = MultiLabel(MultiLabel.Settings())
    >>> outputs, targets = torch.tensor([[1.0, 1.0, -1.0, 0.0]]), torch.tensor([[1.0, 0.0, 0.0, 0.0]])
    >>> objective.hits(outputs, targets), objective.losses(outputs, targets)
    (tensor([0.7500]), tensor([0.6582]))
    """

    word = "labels right"
    rule = ValueRule(lambda values: (values == 0) | (values == 1), "neither 0 nor 1")

    def losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        wanted = targets.to(outputs.dtype)
        return functional.binary_cross_entropy_with_logits(outputs, wanted, reduction="none").mean(1)

    def hits(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return ((outputs > 0) == (targets > 0.5)).to(outputs.dtype).mean(1)

    def predicted(self, outputs: Tensor) -> Tensor:
        return torch.sigmoid(outputs)

    def outputs_of(self, predicted: Tensor) -> Tensor:
        return torch.logit(predicted, eps=torch.finfo(predicted.dtype).eps)
