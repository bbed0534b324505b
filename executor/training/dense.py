"""Local training of a whole group in one batched step, for fully connected models: gradients by hand.

Computes what `executor.training.stacked` computes, without autograd, whose bookkeeping takes most of the time
of small models.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, partial

import numpy as np
import torch
from torch import Tensor

from emulator.arrays import Floats
from emulator.messages import TaskMetric
from executor.flat import FlatModel
from executor.rules.base import Beside, Chain, GradientAt
from executor.training.groups import BatchMean, TaskGroup, Trained
from executor.training.layers import MASK, Layers
from executor.training.measured import Measured

COPIED_BELOW = 1_000_000
"""Elements of a layer's gradient, over all tasks, below which it is computed separately and then copied.

When torch writes the product into a given output, it multiplies the matrices one by one, which costs time for
each; a large product computed separately takes newly allocated memory in every step.
"""


class DenseStrategy:
    """Trains all tasks of a group side by side; the model must be `dense` (see `ModelSpec`).

    A chain of rules sees the gradients of all parameters in one array (n, P), as in the other strategies.
    Plain gradient descent does not need that array: each layer's product of slopes and inputs is added
    directly to the weights. This saves the array and the passes over it, which take a quarter of the time of
    a small model, and more of a large one.
    """

    def __init__(self, model: FlatModel, chain: Chain) -> None:
        self._model = model
        self._chain = chain
        # `_descend` moves the weights and biases of all layers; the mask is not a layer.
        every_layer_moves = all(part.trainable for name, part in model.layout.items() if name != MASK)
        self._descends = chain.is_plain_descent and every_layer_moves

    @torch.inference_mode()
    def train(self, group: TaskGroup) -> Trained:
        return self._descend(group) if self._descends else self._follow_rules(group)

    def _descend(self, group: TaskGroup) -> Trained:
        # NOTE: each layer's weights in a contiguous array of their own, to which a product is added fastest.
        all_layers = Layers.of(self._model, group.present).map(
            lambda part: part.clone(memory_format=torch.contiguous_format)
        )
        # With this scale the slope is the step itself: downhill, times the task's learning rate.
        loss = _CrossEntropy(group, self._model.num_outputs, -group.settings["learning_rate"])
        layers, active = all_layers, len(group)
        for step, features in enumerate(group.vectors()):
            if features.shape[0] != active:
                active = features.shape[0]
                layers = all_layers.first(active)
            inputs = layers.activations(features)
            slopes = layers.slopes(inputs, loss.slope(step, inputs.pop()))
            for weight, bias, layer_input, slope in zip(
                layers.weights, layers.biases, inputs, slopes, strict=True
            ):
                weight.baddbmm_(slope, layer_input)
                bias.add_(slope.sum(2, keepdim=True))
        trained = torch.empty_like(group.start)
        for view, part in zip(Layers.of(self._model, trained).parts(), all_layers.parts(), strict=True):
            view.copy_(part)
        return Trained(trained, loss.means(), {}, loss.measured())

    def _follow_rules(self, group: TaskGroup) -> Trained:
        trained = group.present.clone()
        gradient = torch.zeros_like(trained)
        elsewhere = torch.zeros_like(trained) if self._chain.looks_again else None
        loss = _CrossEntropy(group, self._model.num_outputs, trained.new_ones(len(group), 1))
        run, state = group.begun(self._chain, trained)
        gradient_at: GradientAt | None = None
        active = -1
        for step, features in enumerate(group.vectors()):
            if features.shape[0] != active:
                active = features.shape[0]
                run.keep_first(active)
                layers = Layers.of(self._model, run.present)
                gradients = Layers.of(self._model, gradient[:active])
            inputs = layers.activations(features)
            slopes = layers.slopes(inputs, loss.slope(step, inputs.pop()))
            _write(gradients, inputs, slopes)
            if elsewhere is not None:
                gradient_at = partial(self._gradient_at, elsewhere[:active], loss, step, features)
            self._chain.step(run, gradient[:active], gradient_at)
        state = group.finished(self._chain, trained, state)
        return Trained(trained, loss.means(), state, loss.measured())

    def _gradient_at(
        self,
        gradient: Tensor,
        loss: _CrossEntropy,
        step: int,
        features: Tensor,
        parameters: Tensor,
        beside: Beside = None,
    ) -> Tensor:
        """(n, P) the gradient of each task's loss in `step` at other `parameters`, written to `gradient`."""
        layers = Layers.of(self._model, parameters)
        inputs = layers.activations(features)
        logits, share = inputs.pop(), parameters.new_ones(())
        if beside is not None:
            others, share = Layers.of(self._model, beside[0]), beside[1][..., None]
            logits = torch.lerp(others.activations(features)[-1], logits, share)
        slopes = layers.slopes(inputs, loss.slope_elsewhere(step, logits).mul_(share))
        _write(Layers.of(self._model, gradient), inputs, slopes)
        return gradient


def _write(gradients: Layers, inputs: list[Tensor], slopes: list[Tensor]) -> None:
    """Write into `gradients` the gradient of each layer, from its input (n, B, in) and slope (n, out, B)."""
    layers = zip(gradients.weights, gradients.biases, inputs, slopes, strict=True)
    for weight, bias, layer_input, slope in layers:
        torch.sum(slope, 2, keepdim=True, out=bias)
        if weight.numel() < COPIED_BELOW:
            weight.copy_(torch.bmm(slope, layer_input))
        else:
            torch.bmm(slope, layer_input, out=weight)


class _CrossEntropy:
    """The cross-entropy loss of a group, and in each step its slope times each task's `scale` (n, 1).

    The losses themselves are computed at the end, for all steps at once.
    """

    def __init__(self, group: TaskGroup, num_outputs: int, scale: Tensor) -> None:
        self._group = group
        self._labels = group.targets.view(-1, 1, group.batch_size)  # a row per step and task
        begins = np.cumsum(group.active) - group.active  # of each step's rows
        self._owner = torch.from_numpy(np.arange(len(self._labels)) - np.repeat(begins, group.active))
        shares = group.shares()
        self._mean = BatchMean(shares)
        # (steps of all tasks, 1, 1 or B) of one sample in the slope
        if shares is None:
            share = (scale[:, :, None] / group.batch_size).index_select(0, self._owner)
        else:
            share = scale.index_select(0, self._owner)[:, :, None] * shares[:, None]
        shape = (len(self._labels), num_outputs, group.batch_size)
        self._log_probabilities = group.start.new_empty(shape)
        targets = group.start.new_zeros(shape).scatter_(
            1, self._labels, -share.expand(-1, 1, group.batch_size)
        )
        active = group.active.tolist()
        self._of_step = list(
            zip(
                torch.split_with_sizes(self._log_probabilities, active),
                torch.split_with_sizes(targets, active),
                torch.split_with_sizes(share, active),
                strict=True,
            )
        )

    def slope(self, step: int, logits: Tensor) -> Tensor:
        """(n, num_outputs, B) the derivative of each task's mean loss by its `logits`, times its scale.

        `logits` (n, num_outputs, B): those of the n tasks that take this step.
        """
        log_probabilities, targets, share = self._of_step[step]
        torch.log_softmax(logits, 1, out=log_probabilities)
        return torch.addcmul(targets, torch.exp(log_probabilities), share)

    def slope_elsewhere(self, step: int, logits: Tensor) -> Tensor:
        """The same for logits of other parameters, whose losses are not recorded."""
        _, targets, share = self._of_step[step]
        return torch.addcmul(targets, torch.softmax(logits, 1), share)

    @cached_property
    def _of_samples(self) -> Tensor:
        """(steps of all tasks, 1, B) the log-probabilities of the labels, in the order of the batches."""
        return self._log_probabilities.gather(1, self._labels)

    def means(self) -> Floats:
        """(n,) each task's mean loss over its steps; NaN for a task without steps."""
        losses = -self._mean(self._of_samples[:, 0])
        sums = torch.zeros(len(self._group), dtype=torch.float64).index_add_(0, self._owner, losses.double())
        means: Floats = (sums / torch.from_numpy(self._group.steps)).numpy()
        return means

    def measured(self) -> Mapping[TaskMetric, Floats]:
        """The columns of the group's `measure`."""
        if not self._group.measure:
            return {}
        measured = Measured(self._group)
        step = np.repeat(np.arange(len(self._group.active)), self._group.active)
        measured.add(self._owner.numpy(), step, -self._of_samples[:, 0], self._wrong, self._mean)
        return measured.columns

    def _wrong(self) -> Tensor:
        """(steps of all tasks, B) as `Labels.errors`, of log-probabilities in the order of their axes."""
        return self._log_probabilities.amax(dim=1) > self._of_samples[:, 0]
