"""Training of one model on one set of samples, as the server trains the reference model before round 0."""

from __future__ import annotations

import torch
from torch.nn import functional
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from emulator.arrays import Floats32, Ints
from emulator.errors import RunError
from emulator.ports import SampleReader
from emulator.seeding import RandomStreams
from executor.flat import FlatModel

MOMENTUM = 0.9


def pretrained(
    model: FlatModel,
    reader: SampleReader,
    rows: Ints,
    streams: RandomStreams,
    *,
    epochs: int,
    batch_size: int,
    learning_rate: float,
) -> Floats32:
    """(P,) the model, from its initialisation 0, after `epochs` passes over the table rows `rows` (n,).

    Stochastic gradient descent with momentum `MOMENTUM`. In each pass the rows are permuted anew, by the
    stream ("reference", pass), and cut into batches, of which the last may be smaller. Raises RunError if the
    model diverges.
    """
    module = model.module()
    vector_to_parameters(torch.from_numpy(model.initial(streams, 0)), module.parameters())
    features, labels = torch.from_numpy(reader.features(rows)), torch.from_numpy(reader.labels(rows))
    trainable = [part for part in module.parameters() if part.requires_grad]
    # NOTE: by hand, since importing torch.optim takes more than a second.
    velocity = [torch.zeros_like(part) for part in trainable]
    for epoch in range(epochs):
        order = torch.from_numpy(streams.generator("reference", epoch).permutation(len(rows)))
        for batch in torch.split(order, batch_size):
            loss = functional.cross_entropy(module(features[batch]), labels[batch])
            gradients = torch.autograd.grad(loss, trainable)
            with torch.no_grad():
                for part, moving, gradient in zip(trainable, velocity, gradients, strict=True):
                    moving.mul_(MOMENTUM).add_(gradient)
                    part.sub_(moving, alpha=learning_rate)
    parameters = parameters_to_vector(module.parameters()).detach()
    if not parameters.isfinite().all():
        raise RunError(
            f"the reference model diverged on its {len(rows)} samples; a lower "
            f"representation.learning_rate than {learning_rate:g} may help"
        )
    trained: Floats32 = parameters.numpy()
    return trained
