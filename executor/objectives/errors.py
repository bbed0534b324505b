"""Errors of numbers: a model tells one or several numbers of a sample."""

from __future__ import annotations

from abc import abstractmethod

from torch import Tensor

from executor.objectives.base import Objective
from executor.objectives.settings import ErrorSettings


class _Error(Objective):
    """A number for each target; hits are the share of targets that are off by `tolerance` at most."""

    Settings = ErrorSettings
    settings: ErrorSettings

    @property
    def word(self) -> str:
        return f"within {self.settings.tolerance:g} {self.settings.unit}".rstrip()

    @abstractmethod
    def of_errors(self, errors: Tensor) -> Tensor:
        """The losses of errors, number by number."""

    def losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return self.of_errors(outputs - targets.to(outputs.dtype)).mean(1)

    def hits(self, outputs: Tensor, targets: Tensor) -> Tensor:
        off = (outputs - targets.to(outputs.dtype)).abs()
        return (off <= self.settings.tolerance).to(outputs.dtype).mean(1)


class SquaredError(_Error):
    """One or several numbers: the mean of squared errors, in the square of the targets' unit.

    Hits are the share of a sample's numbers that are off by `tolerance` at most.

    Source: ours.

    Off by 3 and by 0.5:

    >>> import torch
    >>> objective = SquaredError(SquaredError.Settings(tolerance=0.5, unit="MW"))
    >>> outputs, targets = torch.tensor([[3.0, 0.5]]), torch.zeros(1, 2)
    >>> objective.losses(outputs, targets), objective.hits(outputs, targets), objective.word
    (tensor([4.6250]), tensor([0.5000]), 'within 0.5 MW')
    """

    def of_errors(self, errors: Tensor) -> Tensor:
        return errors.square()


class AbsoluteError(_Error):
    """One or several numbers: the mean of absolute errors, in the targets' unit.

    Hits are the share of a sample's numbers that are off by `tolerance` at most.

    Source: ours.

    Off by 3 and by 0.5:

    >>> import torch
    >>> objective = AbsoluteError(AbsoluteError.Settings(tolerance=0.5))
    >>> objective.losses(torch.tensor([[3.0, 0.5]]), torch.zeros(1, 2))
    tensor([1.7500])
    """

    def of_errors(self, errors: Tensor) -> Tensor:
        return errors.abs()
