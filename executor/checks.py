"""What models and local rules return: the rules by which guards hold own ones to it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from emulator.own.declared import WrongAnswerError, expect

if TYPE_CHECKING:
    from executor.models.base import ModelSpec
    from executor.rules.base import LocalRule, LocalRun


def module(module: nn.Module, model: ModelSpec, sample_shape: tuple[int, ...], num_labels: int) -> None:
    """Rule of `ModelSpec.build`: its parameters have no values yet, and it is tried whatever they are."""
    tried = copy.deepcopy(module).to_empty(device="cpu").eval()
    try:
        with torch.device("cpu"), torch.no_grad():
            logits = tried(torch.zeros(2, *sample_shape))
    except Exception as error:
        problem = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise WrongAnswerError(f"must take samples of shape {sample_shape}, and raises {problem}") from error
    made = tuple(logits.shape) if isinstance(logits, torch.Tensor) else type(logits).__name__
    expect(made == (2, num_labels), f"must make logits of shape {(2, num_labels)} of 2 samples, not {made}")


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
