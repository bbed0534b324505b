"""What models, local rules and objectives return: the rules by which guards hold own ones to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from emulator.own.declared import expect

if TYPE_CHECKING:
    from executor.objectives.base import Objective
    from executor.rules.base import LocalRule, LocalRun


def corrected(corrected: Tensor, rule: LocalRule, run: LocalRun, gradient: Tensor) -> None:
    """Rule of `LocalRule.correct`."""
    shape = tuple(run.present.shape)
    expect(corrected.shape == shape, f"must be of shape {shape}, and is of {tuple(corrected.shape)}")
    # Training may diverge by itself.
    is_new = run.present.isfinite().all() and not corrected.isfinite().all()
    expect(not is_new or not gradient.isfinite().all(), "must be finite, as the gradient is")


def stops(stops: Tensor, rule: LocalRule, epoch: int, before: Tensor, after: Tensor, samples: Tensor) -> None:
    """Rule of `LocalRule.stops`."""
    expect(stops.dtype == torch.bool and stops.shape == after.shape, f"must be {len(after)} bools")


def personal(own: Tensor, rule: LocalRule, received: Tensor, state: Mapping[str, Tensor]) -> None:
    """Rule of `LocalRule.personal`."""
    expect(own.shape == received.shape, f"must be of shape {tuple(received.shape)}")


def losses(losses: Tensor, objective: Objective, outputs: Tensor, targets: Tensor) -> None:
    """Rule of `Objective.losses`."""
    shape = (len(outputs),)
    expect(losses.shape == shape, f"must be of shape {shape}, and is of {tuple(losses.shape)}")


def hits(hits: Tensor, objective: Objective, outputs: Tensor, targets: Tensor) -> None:
    """Rule of `Objective.hits` and `Objective.errors`; of models that diverge they may be NaN."""
    losses(hits, objective, outputs, targets)
    expect(not ((hits < 0) | (hits > 1)).any(), "must be in [0, 1]")
