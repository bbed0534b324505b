"""Tampering: changes to an update between training and arrival, by a byzantine client or a bad link.

They depend on the update as trained, the task and the seed alone: not on the rank that trains the task, nor
on the other tasks of its group.
"""

from __future__ import annotations

import math

import numpy as np

from emulator.arrays import Floats32, Ints
from emulator.messages import TrainTasks
from emulator.seeding import RandomStreams

SPOILT_SHARE = 0.01
"""The share of an update's numbers that corruption hits; at least one is hit."""

WORD_BITS = 32


def tamper(
    delta: Floats32, tasks: TrainTasks, members: Ints, streams: RandomStreams, sent: Ints | None = None
) -> None:
    """Apply `tasks.tampering`, in place, to `delta` (n, P), the updates as trained of the tasks `members`.

    Of each row the parameters `sent` (k,) alone cross the wire; None: all. A byzantine client acts first,
    then the link. The streams are ("noise", dispatch, client, model) and ("corruption", dispatch, client,
    model).
    """
    columns = tasks.tampering
    for row, task in enumerate(members.tolist() if columns else ()):
        faults = {name: float(column[task]) for name, column in columns.items()}
        key = (int(tasks.dispatch[task]), int(tasks.client[task]), int(tasks.model[task]))
        update = delta[row] if sent is None else delta[row, sent]
        with np.errstate(over="ignore", invalid="ignore"):  # the coordinator rejects such updates
            if faults.get("scale", 1.0) != 1:
                update *= np.float32(faults["scale"])
            if faults.get("noise", 0.0) > 0:
                _add_noise(update, faults["noise"], streams.generator("noise", *key))
        if faults.get("nan", 0.0) > 0:
            update[_hit(update, streams.generator("corruption", *key))] = np.nan
        if faults.get("bits", 0.0) > 0:
            _flip_bits(update, streams.generator("corruption", *key))
        if sent is not None:
            delta[row, sent] = update


def _add_noise(update: Floats32, scale: float, rng: np.random.Generator) -> None:
    """Add to `update` (P,) Gaussian noise whose norm is about `scale` times the update's norm."""
    norm = math.sqrt(np.square(update, dtype=np.float64).sum())
    deviation = scale * norm / math.sqrt(len(update))
    update += np.float32(deviation) * rng.standard_normal(len(update), dtype=np.float32)


def _flip_bits(update: Floats32, rng: np.random.Generator) -> None:
    """Flip one uniformly drawn bit of each number of `update` (P,) that is hit."""
    positions = _hit(update, rng)
    bits = rng.integers(0, WORD_BITS, len(positions), dtype=np.uint32)
    update.view(np.uint32)[positions] ^= np.uint32(1) << bits


def _hit(update: Floats32, rng: np.random.Generator) -> Ints:
    """The positions in `update` (P,) that are hit, all different."""
    return rng.choice(len(update), max(1, round(SPOILT_SHARE * len(update))), replace=False)
