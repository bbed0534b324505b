"""The next token: a model of a text tells at each of its tokens which one follows."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from emulator.arrays import Ints
from emulator.ports import SampleReader
from executor.objectives.base import Objective, tokens_of

NONE = -100
"""The target of a token that is not followed by another one."""


class NextToken(Objective):
    """The token that follows, at each token of a sample but the last: the mean of their cross-entropies.

    Targets are the ids shifted by one. Where padding follows nothing is predicted. Hits are the share of
    tokens that are right; a sample's tokens count alike, and so do samples. The outputs (n, T, V) are a logit
    for each of the V tokens of the vocabulary, at each of the T of a sample.

    Source: ours.

    Of the tokens 0, 1, 1 the second is right, and the third as likely as the other:

    >>> import torch
    >>> outputs = torch.tensor([[[0.0, 2.0], [1.0, 1.0], [0.0, 9.0]]])
    >>> targets = torch.tensor([[1, 1, NONE]])
    >>> objective = NextToken(NextToken.Settings())
    >>> objective.losses(outputs, targets), objective.hits(outputs, targets)
    (tensor([0.4100]), tensor([0.5000]))
    """

    reads = "tokens"
    word = "tokens right"

    def losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        flat = outputs.flatten(0, 1), targets.flatten()
        losses = functional.cross_entropy(*flat, ignore_index=NONE, reduction="none").view(targets.shape)
        return losses.sum(1) / _count(targets)

    def hits(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return (outputs.argmax(dim=2) == targets).sum(1).to(outputs.dtype) / _count(targets)

    def predicted(self, outputs: Tensor) -> Tensor:
        return torch.softmax(outputs, 2)

    def outputs_of(self, predicted: Tensor) -> Tensor:
        return predicted.clamp_min(torch.finfo(predicted.dtype).tiny).log()

    def targets(self, reader: SampleReader, rows: Ints) -> Tensor:
        tokens, ids = tokens_of(reader), super().targets(reader, rows)
        following = torch.full_like(ids, NONE)
        following[:, :-1] = ids[:, 1:]
        if tokens is not None and tokens.padding is not None:
            following[following == tokens.padding] = NONE
        return following


def _count(targets: Tensor) -> Tensor:
    """(n,) how many tokens of each sample are predicted; 1 where none is."""
    return (targets != NONE).sum(1).clamp_(min=1)
