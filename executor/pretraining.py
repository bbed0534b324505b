"""Training of one model on one set of samples, as the server trains the reference model before round 0."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from emulator.arrays import Floats32, Ints
from emulator.errors import RunError
from emulator.ports import SampleReader
from emulator.seeding import RandomStreams
from executor.flat import FlatModel, inputs
from executor.training.chance import Chances

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
    draws: bool = False,
) -> Floats32:
    """(P,) the model, from its initialisation 0, after `epochs` passes over the table rows `rows` (n,).

    Stochastic gradient descent with momentum `MOMENTUM`. In each pass the rows are permuted anew, by the
    stream ("reference", pass), and cut into batches, of which the last may be smaller. A model that `draws`
    as it trains draws from the stream ("reference chance", pass). Raises RunError if the model diverges.
    """
    whole = torch.from_numpy(model.initial(streams, 0))
    named = {name: part.data for name, part in model.named(whole).items()}  # views
    trainable = [named[name].requires_grad_() for name in model.trainable]
    features, targets = inputs(reader, rows), model.objective.targets(reader, rows)
    # NOTE: by hand, since importing torch.optim takes more than a second.
    velocity = [torch.zeros_like(part) for part in trainable]
    with model.bound(named) as module:
        for epoch in range(epochs):
            order = torch.from_numpy(streams.generator("reference", epoch).permutation(len(rows)))
            chances = Chances(streams.keys("reference chance", np.array([epoch])) if draws else None)
            for step, batch in enumerate(_batches(order, batch_size, least=2 if model.statistics else 1)):
                with chances.step(step, 0):
                    logits = module(features[batch])
                loss = model.objective.loss(logits, targets[batch])
                gradients = torch.autograd.grad(loss, trainable, materialize_grads=True)
                with torch.no_grad():
                    for part, moving, gradient in zip(trainable, velocity, gradients, strict=True):
                        moving.mul_(MOMENTUM).add_(gradient)
                        part.sub_(moving, alpha=learning_rate)
    if not whole.isfinite().all():
        raise RunError(
            f"the reference model diverged on its {len(rows)} samples; a lower "
            f"representation.learning_rate than {learning_rate:g} may help"
        )
    trained: Floats32 = whole.numpy()
    return trained


def _batches(order: Tensor, size: int, least: int) -> list[Tensor]:
    """Batches of `size` rows, the last with fewer; with fewer than `least` it joins the one before."""
    batches = list(torch.split(order, max(size, least)))
    if len(batches) > 1 and len(batches[-1]) < least:
        batches[-2:] = [torch.cat(batches[-2:])]
    return batches
