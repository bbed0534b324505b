"""The contract of an objective: losses and hits of samples, each by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from emulator.arrays import Floats32, Ints
from emulator.ports import Tokens
from executor.objectives.base import Objective

SAMPLES, LENGTH, NUMBERS = 12, 6, 5
TOKENS = Tokens(NUMBERS)


@dataclass(frozen=True)
class _Texts:
    """Implements `emulator.ports.SampleReader`: tokens, labels, and targets of 0 and 1 beside them."""

    sample_shape: tuple[int, ...] = (LENGTH,)
    num_labels: int = NUMBERS
    tokens: Tokens = TOKENS
    num_targets: int = 3

    def features(self, rows: Ints) -> Floats32:
        return np.random.default_rng(0).integers(0, NUMBERS, (SAMPLES, LENGTH)).astype(np.float32)[rows]

    def labels(self, rows: Ints) -> Ints:
        return rows % NUMBERS

    def targets(self, rows: Ints) -> Floats32:
        return (rows[:, None] >> np.arange(3) & 1).astype(np.float32)

    def sample_keys(self, rows: Ints) -> Ints:
        return np.stack([rows, 0 * rows], axis=1)

    def reference_rows(self, per_label: int) -> Ints:
        return np.arange(SAMPLES)


def check_objective(make: Callable[[], Objective]) -> None:
    """Check an objective on samples that have labels, tokens and targets.

    Args:
        make: makes a fresh objective.

    Raises:
        AssertionError: a loss or a hit is not one number a sample, hits are outside [0, 1], a loss is not
            finite or has no slope, or a sample's numbers depend on the others of its batch.
    """
    objective, reader = make(), _Texts()
    assert objective.word.strip(), "word must say what hits are called"
    shape = objective.output_shape(reader.sample_shape, objective.num_outputs(reader))
    targets = objective.targets(reader, np.arange(SAMPLES))
    outputs = torch.randn(SAMPLES, *shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    outputs.requires_grad_()
    for name in ("losses", "hits", "errors"):
        of = getattr(objective, name)
        values = of(outputs, targets)
        assert values.shape == (SAMPLES,), f"{name} must have shape ({SAMPLES},), not {tuple(values.shape)}"
        assert values.isfinite().all(), f"{name} must be finite"
        assert name == "losses" or ((values >= 0) & (values <= 1)).all(), f"{name} must be in [0, 1]"
        alone = torch.cat([of(outputs[row : row + 1], targets[row : row + 1]) for row in range(SAMPLES)])
        assert torch.allclose(alone, values), f"{name} of a sample depend on the others of its batch"
    [slope] = torch.autograd.grad(objective.loss(outputs, targets), outputs)
    assert slope.isfinite().all(), "the slope of the loss must be finite"
    assert (slope != 0).any(), "the loss does not depend on the outputs"
    again = objective.outputs_of(objective.predicted(outputs))
    same = torch.allclose(objective.losses(again, targets), objective.losses(outputs, targets))
    assert same, "outputs_of must undo predicted"
