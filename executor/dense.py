"""Local training of a whole cohort in one batched step, for fully connected models: gradients by hand.

Does what `executor.stacked` does without autograd, whose bookkeeping takes most of the time where models are
small.
"""

from __future__ import annotations

import torch
from torch import Tensor

from emulator.arrays import Floats
from executor.cohort import Cohort, Trained
from executor.flat import FlatModel
from executor.layers import Layers
from executor.rules.base import Chain, LocalRun

COPIED_BELOW = 1_000_000
"""Elements of a layer's gradient, over all tasks, below which it is computed apart and then copied.

Written straight into its place, torch multiplies the matrices one by one, which costs time for each; a large
one apart takes memory that is fresh in every step."""


class DenseCohort:
    """Trains all tasks of a cohort side by side; the model must be `dense` (see `ModelSpec`)."""

    def __init__(self, model: FlatModel, chain: Chain) -> None:
        self._model = model
        self._chain = chain

    @torch.inference_mode()
    def train(self, cohort: Cohort) -> Trained:
        trained = cohort.start.clone()
        state = self._chain.remembered(cohort.start, cohort.state)
        gradient = torch.zeros_like(trained)
        loss = _CrossEntropy(cohort, self._model.num_labels)
        run = LocalRun(cohort.start, trained, cohort.settings, dict(state), self._model.frozen)
        self._chain.begin(run)
        active = -1
        for features, labels in cohort.batches():
            if len(labels) != active:
                active = len(labels)
                run.keep_first(active)
                layers = Layers.of(self._model, run.present)
                gradients = Layers.of(self._model, gradient[:active])
            activations = layers.activations(features.flatten(2))
            _backward(layers, gradients, activations, loss.slope(activations.pop()))
            self._chain.step(run, gradient[:active])
        return Trained(trained, loss.means(cohort), state)


def _backward(layers: Layers, gradients: Layers, inputs: list[Tensor], slope: Tensor) -> None:
    """Write the gradients, given each layer's `inputs` (n, in, B) and the loss's `slope` (n, out, B) at the
    logits."""
    for depth in range(len(inputs) - 1, -1, -1):
        torch.sum(slope, 2, keepdim=True, out=gradients.biases[depth])
        weight = gradients.weights[depth]
        if weight.numel() < COPIED_BELOW:
            weight.copy_(torch.bmm(slope, inputs[depth].mT))
        else:
            torch.bmm(slope, inputs[depth].mT, out=weight)
        if depth:
            slope = torch.bmm(layers.weights[depth].mT, slope)
            torch.ops.aten.threshold_backward.grad_input(slope, inputs[depth], 0, grad_input=slope)


class _CrossEntropy:
    """The loss of a cohort, whose batches come one step after the other.

    The losses themselves are read off at the end, for all steps at once.
    """

    def __init__(self, cohort: Cohort, num_labels: int) -> None:
        self._labels = cohort.labels.view(-1, 1, cohort.batch_size)  # a row per step and task
        shape = (len(self._labels), num_labels, cohort.batch_size)
        self._log_probabilities = cohort.start.new_empty(shape)
        self._targets = cohort.start.new_zeros(shape).scatter_(1, self._labels, 1)
        self._done = 0

    def slope(self, logits: Tensor) -> Tensor:
        """(n, num_labels, B) the derivative of each task's mean loss by its `logits`, of that shape."""
        rows = slice(self._done, self._done + len(logits))
        self._done = rows.stop
        log_probabilities = torch.log_softmax(logits, 1, out=self._log_probabilities[rows])
        return torch.exp(log_probabilities).sub_(self._targets[rows]).div_(logits.shape[2])

    def means(self, cohort: Cohort) -> Floats:
        """(n,) each task's loss, the mean over its steps; NaN without any."""
        losses = -self._log_probabilities.gather(1, self._labels).mean(dim=(1, 2))
        tasks = torch.cat([torch.arange(active) for active in cohort.active] or [torch.arange(0)])
        sums = torch.zeros(len(cohort), dtype=torch.float64).index_add_(0, tasks, losses.double())
        means: Floats = (sums / torch.from_numpy(cohort.steps)).numpy()
        return means
