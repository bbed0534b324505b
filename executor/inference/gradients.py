"""The gradient of the mean loss on each request's samples, at one model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from emulator.arrays import Floats32, Ints
from emulator.messages import SampleRanges
from executor.flat import inputs
from executor.inference.prediction import EVALUATION_BATCH, Predictor
from executor.parallel import Threads
from executor.ranges import rows_of
from executor.training.layers import Layers


def gradients(
    predictor: Predictor,
    threads: Threads,
    parameters: Floats32,
    samples: SampleRanges,
    wanted: Sequence[Ints],
) -> Floats32:
    """(n, P) the gradient, at the model with `parameters` (P,), on each of n requests for `samples`.

    `wanted`: some of the slabs that `embeddings.cut` returns; only their requests are computed, and the
    others' rows are zero, as are those of requests without samples.
    """
    found = np.zeros((len(samples), predictor.model.num_parameters), dtype=np.float32)
    of_slab = _by_hand if predictor.dense else _by_autograd

    def differentiate_slab(requests: Ints) -> None:
        rows, counts = rows_of(samples, requests)
        filled = requests[counts > 0]
        features = inputs(predictor.reader, rows)
        targets = predictor.model.objective.targets(predictor.reader, rows)
        into = torch.from_numpy(found)[torch.from_numpy(filled)]
        of_slab(predictor, torch.tensor(parameters), features, targets, counts[counts > 0], into)
        found[filled] = into.numpy()

    threads.run(differentiate_slab, wanted)
    return found


def _by_autograd(
    predictor: Predictor, parameters: Tensor, features: Tensor, targets: Tensor, counts: Ints, into: Tensor
) -> None:
    """Write into `into` (n, P) the gradient of each of n requests, `counts` (n,) samples each, in order."""
    model = predictor.model
    named = model.named(parameters)
    wanted = [named[name].requires_grad_() for name in model.trainable]
    last = np.cumsum(counts).tolist()
    for row, end, count in zip(into, last, counts.tolist(), strict=True):
        parts = model.named(row)
        for first in range(end - count, end, EVALUATION_BATCH):
            batch = slice(first, min(first + EVALUATION_BATCH, end))
            logits = model.logits(named, features[batch], "scoring")
            loss = model.objective.losses(logits, targets[batch]).sum() / count
            found = torch.autograd.grad(loss, wanted, materialize_grads=True)
            for name, gradient in zip(model.trainable, found, strict=True):
                parts[name].add_(gradient)


@torch.inference_mode()
def _by_hand(
    predictor: Predictor, parameters: Tensor, features: Tensor, labels: Tensor, counts: Ints, into: Tensor
) -> None:
    """As `_by_autograd`, for a dense model: one pass of all samples, then a product for each request."""
    layers = Layers.of(predictor.model, parameters[None])
    inputs = layers.activations(features.flatten(1)[None])
    slope = torch.softmax(inputs.pop(), 1)  # (1, labels, samples)
    slope[0, labels, torch.arange(len(labels))] -= 1
    slope /= torch.from_numpy(np.repeat(counts, counts))
    found = Layers.of(predictor.model, into)
    for weight, bias, layer_input, layer_slope in zip(
        found.weights, found.biases, inputs, layers.slopes(inputs, slope), strict=True
    ):
        sizes = counts.tolist()
        parts = zip(
            torch.split_with_sizes(layer_slope[0], sizes, 1),
            torch.split_with_sizes(layer_input[0], sizes),
            strict=True,
        )
        for row, (of_slope, of_input) in enumerate(parts):
            torch.mm(of_slope, of_input, out=weight[row])
            torch.sum(of_slope, 1, keepdim=True, out=bias[row])
