"""What a concept set is: a few ways in which labels hang on features, and the samples to show them with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from emulator.arrays import Ints
from emulator.plugins import Configured
from emulator.seeding import RandomStreams
from traces.images import ImageSet

Locate = Callable[[str], Path]


@dataclass(frozen=True)
class ConceptSamples:
    """A pool of samples, and what every batch holds of it: `image` and `label` (batches, clients, samples).

    The label is that of the batch's concept, and may be another than the pool's own.
    """

    pool: ImageSet
    image: Ints
    label: Ints


class ConceptSet(Configured, ABC):
    """Base of concept sets; built with its own frozen settings. Concepts are 0 .. num_concepts - 1."""

    @property
    @abstractmethod
    def num_concepts(self) -> int: ...

    @abstractmethod
    def draw(self, pattern: Ints, samples: int, streams: RandomStreams, locate: Locate) -> ConceptSamples:
        """`samples` samples for every cell of `pattern` (batches, clients), each of the cell's concept.

        A batch hangs on no later one, so that a shorter pattern is the beginning of a longer one.
        """
