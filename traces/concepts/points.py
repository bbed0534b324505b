"""Concepts over random points: `sine`, `circle` and `sea`, as FedDrift draws them; they need no file.

Jothimurugesan et al. 2023. All three have labels 0 and 1.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from emulator.arrays import Bools, Floats, Floats32, Ints
from emulator.numbers import Number, Share
from emulator.plugins import NoSettings, Settings
from emulator.seeding import RandomStreams
from traces.concepts.base import ConceptSamples, ConceptSet, Locate
from traces.images import ImageSet


class Points(ConceptSet):
    """Base class of concept sets over uniform points in a cube, drawn anew for every batch of every client.

    The points of a batch do not depend on its concept.
    """

    num_features: ClassVar[int]
    width: ClassVar[float]  # a feature lies in [0, width)

    @property
    def same_holders(self) -> bool:
        return True

    @abstractmethod
    def positive(self, points: Floats, concept: int) -> Bools:
        """(n,) which of `points` (n, num_features) have label 1 in that concept, before any noise."""

    def labels(self, points: Floats, concept: int, generator: np.random.Generator) -> Ints:
        """(n,) the label of each of `points` in that concept, with noise if the concept set has any."""
        return self.positive(points, concept).astype(np.int64)

    def draw(self, pattern: Ints, samples: int, streams: RandomStreams, locate: Locate) -> ConceptSamples:
        batches, clients = pattern.shape
        points = np.empty((batches, clients, samples, self.num_features), dtype=np.float32)
        label = np.empty((batches, clients, samples), dtype=np.int64)
        for batch in range(batches):
            for client in range(clients):
                generator = streams.generator("concept points", batch, client)
                drawn: Floats32 = generator.random((samples, self.num_features), dtype=np.float32)
                points[batch, client] = drawn * np.float32(self.width)
                # Label the points as stored, in single precision, so that rounding cannot make a label wrong.
                stored = points[batch, client].astype(np.float64)
                label[batch, client] = self.labels(stored, int(pattern[batch, client]), generator)
        image = np.arange(label.size).reshape(label.shape)
        pool = ImageSet(
            points.reshape(-1, self.num_features),
            scale=1.0,
            labels=label.ravel(),
            num_labels=2,
            train=image.ravel(),
            test=image.ravel()[:0],
        )
        return ConceptSamples(pool, image, label)


class Sine(Points):
    """Two concepts over [0, 1)^2: label 1 below a sine curve, and the reverse. No noise.

    Source: FedDrift (Jothimurugesan et al., AISTATS 2023), SINE-2.

    >>> points = np.array([[0.5, 0.4], [0.5, 0.5]])  # sin(0.5) = 0.479
    >>> Sine(NoSettings()).positive(points, concept=0).tolist()
    [True, False]
    >>> Sine(NoSettings()).positive(points, concept=1).tolist()
    [False, True]
    """

    Settings = NoSettings
    num_concepts = 2
    num_features = 2
    width = 1.0

    def positive(self, points: Floats, concept: int) -> Bools:
        below: Bools = points[:, 1] <= np.sin(points[:, 0])
        return below if concept == 0 else ~below


class Circle(Points):
    """Two concepts over [0, 1)^2: label 1 outside a circle, which moves and grows. No noise.

    The classes are unequal: a constant prediction of 1 is right for 92.9 % of the first concept's points and
    for 80.4 % of the second's.

    Source: FedDrift (Jothimurugesan et al., AISTATS 2023), CIRCLE-2.

    >>> points = np.array([[0.2, 0.5], [0.6, 0.5]])  # the centres of the two circles
    >>> [Circle(NoSettings()).positive(points, concept).tolist() for concept in (0, 1)]
    [[False, True], [True, False]]
    """

    Settings = NoSettings
    num_concepts = 2
    num_features = 2
    width = 1.0

    CENTRES = ((0.2, 0.5), (0.6, 0.5))
    RADII = (0.15, 0.25)

    def positive(self, points: Floats, concept: int) -> Bools:
        away = points - np.array(self.CENTRES[concept])
        outside: Bools = (away**2).sum(axis=1) > self.RADII[concept] ** 2
        return outside


class SeaSettings(Settings):
    """Label noise, and the threshold of each concept."""

    noise: Share = Field(
        0.1, description="a label's chance to be flipped, in training and test", examples=[0.05]
    )
    thresholds: tuple[Annotated[float, Number(gt=0, lt=20)], ...] = Field(
        (9.0, 8.0, 7.0, 9.5),
        min_length=1,
        description="for each concept the sum of the first two features, below 20, up to which the label is "
        "1; FedDrift's text has the default, the files of its runs 8, 9, 7, 9",
    )


class Sea(Points):
    """Concepts over [0, 10)^3: label 1 where x1 + x2 is at most a threshold; labels are flipped at random.

    Features are not scaled. With `noise` = 0.1 no model can be right for more than 90 %. With the thresholds
    of the files that FedDrift's authors drew from, 8, 9, 7 and 9, the second and the fourth concept are
    equal. (The files label where x2 + x3 is above the threshold: the same up to the names of features and
    labels.)

    Source: FedDrift (Jothimurugesan et al., AISTATS 2023), SEA-2 and SEA-4.

    >>> points = np.array([[4.0, 4.5, 0.0]])  # x1 + x2 = 8.5
    >>> [bool(Sea(SeaSettings()).positive(points, concept)[0]) for concept in range(4)]
    [True, False, False, True]
    """

    Settings = SeaSettings
    settings: SeaSettings
    num_features = 3
    width = 10.0

    @property
    def num_concepts(self) -> int:
        return len(self.settings.thresholds)

    def positive(self, points: Floats, concept: int) -> Bools:
        positive: Bools = points[:, 0] + points[:, 1] <= self.settings.thresholds[concept]
        return positive

    def labels(self, points: Floats, concept: int, generator: np.random.Generator) -> Ints:
        flipped = generator.random(len(points)) < self.settings.noise
        return (self.positive(points, concept) ^ flipped).astype(np.int64)
