"""Clipping: the norm of a task's gradient is bounded."""

from __future__ import annotations

from torch import Tensor

from executor.rules.base import LocalRule, LocalRun
from executor.rules.settings import ClipSettings


class Clip(LocalRule):
    """Divides each task's gradient by its norm over `norm`, where that is above 1.

    The norm is that of the gradient as the rules before it have corrected it, over all parameters that the
    step moves: behind `fedprox` the pull counts, before it it is added to what was clipped. An optimiser's
    weight decay and momentum come after it. The own models of `ditto` and `apfl` step by gradients of their
    own, which it does not see.

    Source: Pascanu, Mikolov and Bengio, "On the difficulty of training recurrent neural networks", ICML 2013,
    algorithm 1; `torch.nn.utils.clip_grad_norm_`, which adds 1e-6 to the norm.

    Of norms 5 and 0.5, the first is more than 1:

    >>> import torch
    >>> rule = Clip(ClipSettings(norm=1))
    >>> run = LocalRun(torch.zeros(2, 2), torch.zeros(2, 2), {})
    >>> rule.correct(run, torch.tensor([[3.0, 4.0], [0.3, 0.4]]))
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])
    """

    Settings = ClipSettings
    settings: ClipSettings

    def correct(self, run: LocalRun, gradient: Tensor) -> Tensor:
        return run.clip(gradient, self.settings.norm)
