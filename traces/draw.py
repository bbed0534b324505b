"""From label shares to a trace: the one place where images are drawn for clients."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
from pydantic import Field

from emulator.arrays import Floats
from emulator.errors import ConfigurationError, InputError
from emulator.plugins import Parameters
from emulator.seeding import RandomStreams
from traces.arrivals import SPLITS, Arrivals, num_noise_starts
from traces.images import ImageSet
from traces.trace import Trace

MAX_SAMPLES = 2**31
"""Samples a trace may hold: a million clients with 30 new ones at each of 70 steps."""


class StreamParameters(Parameters):
    """What every trace that is drawn from images has in common."""

    rounds_per_step: int = Field(10, ge=1, description="rounds between two arrivals of data")
    retain_rounds: int = Field(50, ge=1, description="rounds for which a client keeps a sample")
    samples_per_step: int = Field(20, ge=1, description="training samples a client receives at each step")
    test_samples_per_step: int = Field(10, ge=1, description="its own test samples from the same windows")
    noise: float = Field(
        0.0, ge=0, le=1e6, description="sensor noise: standard deviation added to pixels in [0, 1]"
    )

    @property
    def retain_steps(self) -> int:
        return -(-self.retain_rounds // self.rounds_per_step)

    def num_steps(self, rounds: int) -> int:
        """Data steps that a run of so many rounds sees, step 0 included."""
        return -(-rounds // self.rounds_per_step)


def draw_trace(
    images: ImageSet, shares: Floats, parameters: StreamParameters, streams: RandomStreams
) -> Trace:
    """Draw every client's samples.

    `shares` (clients, windows, num_labels) are the label shares of each client's windows, each summing to 1.
    Window w arrives at step w - (retain_steps - 1): a client starts out owning its first `retain_steps`
    windows. Labels are drawn from the shares; images uniformly, with replacement, among the split's images
    of that label.
    """
    num_clients, num_windows, _ = shares.shape
    num_starts = num_noise_starts(images)
    parts = []
    for index, split in enumerate(SPLITS):
        size = parameters.samples_per_step if split == "train" else parameters.test_samples_per_step
        pool, start = images.by_label(split)
        available = np.diff(start)
        for window in range(num_windows):
            # A stream for each window, so that a shorter run is the beginning of a longer one.
            generator = streams.generator("data", index, window)
            counts = generator.multinomial(size, shares[:, window])  # (clients, labels)
            missing = np.flatnonzero((available == 0)[: counts.shape[1]] & (counts.sum(axis=0) > 0))
            if len(missing):
                raise InputError(
                    f"trace: label {missing[0]} is drawn, but the {split} images have none of it"
                )
            cell = np.repeat(np.arange(counts.size), counts.ravel())
            client, label = np.divmod(cell, counts.shape[1])
            picked = start[label] + (generator.random(len(cell)) * available[label]).astype(np.int64)
            parts.append(
                Arrivals(
                    client=client.astype(np.int32),
                    split=np.full(len(cell), index, dtype=np.int8),
                    arrival=np.full(len(cell), window - (parameters.retain_steps - 1), dtype=np.int32),
                    label=label.astype(np.int16),
                    image=pool[picked].astype(np.int32),
                    noise_start=generator.integers(0, num_starts, size=len(cell), dtype=np.int32),
                )
            )
    return Trace(
        images,
        _joined(parts),
        num_clients=num_clients,
        retain_steps=parameters.retain_steps,
        rounds_per_step=parameters.rounds_per_step,
        noise=parameters.noise,
        generator=streams.generator("noise"),
    )


def num_windows(parameters: StreamParameters, rounds: int) -> int:
    """Windows a run of so many rounds needs: those owned from the start, and one for each later step."""
    return parameters.num_steps(rounds) + parameters.retain_steps - 1


def refuse_oversize(parameters: StreamParameters, num_clients: int, num_windows: int) -> None:
    """ConfigurationError, before anything of that size is allocated, for more than `MAX_SAMPLES` samples."""
    each = parameters.samples_per_step + parameters.test_samples_per_step
    if num_clients * num_windows * each > MAX_SAMPLES:
        raise ConfigurationError(
            f"trace: {num_clients} clients x {num_windows} steps of data x {each} samples are more than the "
            f"{MAX_SAMPLES} samples a trace may hold; lower samples_per_step, clients or round.rounds"
        )


def _joined(parts: list[Arrivals]) -> Arrivals:
    """The rows of all parts, one after the other."""
    columns = [field.name for field in fields(Arrivals)]
    return Arrivals(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in columns})
