"""Base class of concept sets: several ways in which labels depend on features, and samples that show them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from emulator.arrays import Ints
from emulator.plugins import Configured, returns
from emulator.seeding import RandomStreams
from traces.images import ImageSet

Locate = Callable[[str], Path]
"""A function that finds the file or folder of a path as it is written in a configuration."""


@dataclass(frozen=True)
class ConceptSamples:
    """The samples of all batches; a batch is what one client receives at one data step.

    `image` (batches, clients, samples) are indices of images of `pool`; `label`, of the same shape, are their
    labels under the batch's concept, which may differ from the pool's own.
    """

    pool: ImageSet
    image: Ints
    label: Ints


class ConceptSet(Configured, ABC):
    """Base class of concept sets, built with its own frozen settings. Concepts are 0 .. num_concepts - 1."""

    chance: ClassVar[str] = 'draw from streams.generator("my purpose")'

    @property
    @abstractmethod
    @returns("traces.checks:count")
    def num_concepts(self) -> int:
        """The number of concepts."""

    @property
    def same_holders(self) -> bool:
        """Whether, if samples can be drawn for one pattern and seed, they can for any others of its shape.

        A check draws the samples of each seed where this is False.
        """
        return False

    @abstractmethod
    @returns("traces.checks:drawn")
    def draw(self, pattern: Ints, samples: int, streams: RandomStreams, locate: Locate) -> ConceptSamples:
        """Draw samples for every cell of a pattern, each of the cell's concept.

        A batch does not depend on later ones, so a shorter pattern is the beginning of a longer one.

        Args:
            pattern: the concept of each client in each batch, of shape (batches, clients).
            samples: the number of samples in a cell.
            streams: the random streams that all draws come from.
            locate: resolves a path as written in a configuration.

        Returns:
            The pool, and for each cell its images and labels, of shape (batches, clients, samples).

        Raises:
            DataFileError: a file of the settings cannot be used, or has too few samples.
        """
