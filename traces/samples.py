"""Samples: images, and the sensor noise that is added to them."""

from __future__ import annotations

from functools import cached_property
from math import prod
from typing import Protocol

import numpy as np

from emulator.arrays import Floats32, Ints


class SamplePool(Protocol):
    """The images or feature vectors that the rows of a trace refer to, by number."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one sample."""
        ...

    @property
    def num_labels(self) -> int:
        """The number of classes."""
        ...

    @property
    def label_names(self) -> tuple[str, ...]:
        """The names of the first classes; empty if they have none."""
        ...

    def __len__(self) -> int:
        """The number of samples."""
        ...

    def features(self, images: Ints, /) -> Floats32:
        """Compute the features of some samples.

        Args:
            images: numbers of samples, of shape (n,).

        Returns:
            A new array, float32 of shape (n, *shape).
        """
        ...


class NoisyImages:
    """Images with sensor noise: a sample is its image plus `noise` times a stretch of `normal`.

    `normal` is one shared table of standard normal numbers.
    """

    def __init__(self, images: SamplePool, noise: float, normal: Floats32) -> None:
        self.images = images
        self.noise = noise
        self.normal = normal

    @cached_property
    def _noise_windows(self) -> Floats32:
        """(starts, pixels) the stretch of the noise table that begins at each start; views, not copies."""
        return np.lib.stride_tricks.sliding_window_view(self.normal, prod(self.images.shape))

    def features(self, image: Ints, noise_start: Ints | None) -> Floats32:
        """(n, *shape) the features of n samples, from their images and the starts of their noise, if any."""
        return self.noisy(self.images.features(image), noise_start)

    def noisy(self, samples: Floats32, noise_start: Ints | None) -> Floats32:
        """`samples` (n, *shape), to which noise is added in place, from its starts (n,), if there is any."""
        if noise_start is not None:
            noise = self._noise_windows[noise_start]  # a copy
            noise *= np.float32(self.noise)
            samples += noise.reshape(samples.shape)
        return samples
