"""Concepts over the images of an idx folder: `label_swaps` and `label_subsets`, FedDrift's MNIST test beds.

Jothimurugesan et al. 2023: MNIST-2, MNIST-4 and MNIST-R swap labels, MNIST-L-4 shows a client only some of
the digits. Upstream does not state the unit in which pixels are standardised; here they are bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field, field_validator

from emulator.arrays import Ints
from emulator.errors import DataFileError
from emulator.numbers import Number
from emulator.plugins import Settings
from emulator.seeding import RandomStreams
from traces.concepts.base import ConceptSamples, ConceptSet, Locate
from traces.idx import read_idx_folder
from traces.images import ImageSet

STANDARDISE_FLOOR = 1e-3
"""Added to each pixel's standard deviation, in grey levels of 0 to 255, as LEAF's and FedProx's MNIST do."""

Label = Annotated[int, Number(ge=0, le=255)]  # the range of a label in an idx file


class FolderSettings(Settings):
    """The folder of the images."""

    folder: str = Field(
        description="folder of the four idx files, plain or gzipped; only train-* is used", examples=["mnist"]
    )

    def find_files(self, locate: Locate) -> None:
        locate(self.folder)


class LabelSwapsSettings(FolderSettings):
    """The folder of the images, and the labels that each concept after the first swaps."""

    swaps: tuple[tuple[Label, Label], ...] = Field(
        ((1, 2), (3, 4), (5, 6)),
        min_length=1,
        description="two labels that change places, for each concept after the first",
    )

    @field_validator("swaps")
    @classmethod
    def _two_labels_each(cls, swaps: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
        for first, second in swaps:
            if first == second:
                raise ValueError(f"[{first}, {second}] swaps a label with itself; a concept swaps two")
        return swaps


class LabelSwaps(ConceptSet):
    """Images whose labels are correct in the first concept; every other concept swaps two labels.

    Every batch takes the next images of one shuffled pool, the training images, so that none is used twice.
    Each pixel is standardised over the pool: (x - mean) / (standard deviation + 0.001).

    Source: FedDrift (Jothimurugesan et al., AISTATS 2023), MNIST-2, MNIST-4 and MNIST-R.

    Labels of three classes in both concepts, by the true label:

    >>> LabelSwaps(LabelSwapsSettings(folder="mnist", swaps=((1, 2),)))._names(3)
    array([[0, 1, 2],
           [0, 2, 1]])
    """

    Settings = LabelSwapsSettings
    settings: LabelSwapsSettings

    @property
    def num_concepts(self) -> int:
        return 1 + len(self.settings.swaps)

    @property
    def same_holders(self) -> bool:
        return True

    def draw(self, pattern: Ints, samples: int, streams: RandomStreams, locate: Locate) -> ConceptSamples:
        folder = locate(self.settings.folder)
        pool = standardised(read_idx_folder(folder))
        for swap in self.settings.swaps:
            if max(swap) >= pool.num_labels:
                raise DataFileError(
                    folder,
                    f"trace.concepts.swaps names label {max(swap)}; its labels are 0 to "
                    f"{pool.num_labels - 1}",
                )
        needed = pattern.size * samples
        if needed > len(pool.labels):
            raise DataFileError(
                folder,
                f"has {len(pool.labels)} training images, and a pattern of {pattern.shape[0]} x "
                f"{pattern.shape[1]} batches of trace.samples_per_step = {samples} needs {needed} different "
                f"ones; lower samples_per_step",
            )
        shuffled = streams.generator("concept images").permutation(len(pool.labels))
        image = shuffled[:needed].reshape(*pattern.shape, samples).astype(np.int64)
        names = self._names(pool.num_labels)  # (concepts, labels)
        return ConceptSamples(pool, image, names[pattern[:, :, None], pool.labels[image]])

    def _names(self, num_labels: int) -> Ints:
        """(concepts, num_labels) the label that each true label becomes in each concept."""
        names = np.tile(np.arange(num_labels), (self.num_concepts, 1))
        for concept, (first, second) in enumerate(self.settings.swaps, start=1):
            names[concept, [first, second]] = second, first
        return names


class LabelSubsetsSettings(FolderSettings):
    """The folder of the images, the labels that occur in each concept, and whether images may come again."""

    subsets: tuple[tuple[Label, ...], ...] = Field(
        ((0, 1), (2, 3), (4, 5), (6, 7)), min_length=1, description="the labels of each concept"
    )
    reuse: bool = Field(
        False,
        description="deal a concept's images again when all have been dealt; some test samples have then "
        "been trained on before",
    )

    @field_validator("subsets")
    @classmethod
    def _none_is_empty(cls, subsets: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
        for concept, labels in enumerate(subsets):
            if not labels or len(set(labels)) < len(labels):
                raise ValueError(f"subset {concept} is {list(labels)}; every concept needs labels, each once")
        return subsets


class LabelSubsets(ConceptSet):
    """Images of only some labels in each concept, with their own labels.

    Every batch takes the next images of its concept's shuffled deck: the training images of the concept's
    labels. No image is dealt twice, also if concepts share labels. With `reuse`, a deck that runs out is
    shuffled and dealt again, so that an image of a concept comes again only after all others have come.
    Pixels are standardised as in `label_swaps`.

    FedDrift's MNIST-L-4 (pattern F, 500 samples per step) needs `reuse`: its first concept has 34 batches,
    and MNIST 12,665 images of the two digits, enough for 25. Of the test images, 17.5 % have then been
    trained on before by some client. Without `reuse`, at most 372 samples per step fit.

    Source: FedDrift (Jothimurugesan et al., AISTATS 2023), MNIST-L-4.

    >>> LabelSubsets(LabelSubsetsSettings(folder="mnist", subsets=((0, 1), (2,)))).num_concepts
    2
    """

    Settings = LabelSubsetsSettings
    settings: LabelSubsetsSettings

    @property
    def num_concepts(self) -> int:
        return len(self.settings.subsets)

    def draw(self, pattern: Ints, samples: int, streams: RandomStreams, locate: Locate) -> ConceptSamples:
        folder = locate(self.settings.folder)
        pool = standardised(read_idx_folder(folder))
        decks = {}
        for concept in np.unique(pattern).tolist():
            labels = self.settings.subsets[concept]
            decks[concept] = np.flatnonzero(np.isin(pool.labels, labels))
            if len(decks[concept]) == 0:
                raise DataFileError(
                    folder,
                    f"no training image has any label of trace.concepts.subsets[{concept}], {list(labels)}",
                )
        if self.settings.reuse:
            image = _dealt_again(decks, pattern, samples, streams)
        else:
            image = self._dealt_once(decks, pattern, samples, streams, folder)
        return ConceptSamples(pool, image, pool.labels[image])

    def _dealt_once(
        self, decks: Mapping[int, Ints], pattern: Ints, samples: int, streams: RandomStreams, folder: Path
    ) -> Ints:
        """(batches, clients, samples) images of each cell's deck, none of them twice.

        Raises DataFileError if a deck has too few images that have not been dealt yet.
        """
        image = np.empty((*pattern.shape, samples), dtype=np.int64)
        left = {concept: _shuffled(deck, concept, 0, streams) for concept, deck in decks.items()}
        dealt = np.zeros(1 + max(int(deck.max()) for deck in decks.values()), dtype=bool)  # by image
        for cell in np.ndindex(*pattern.shape):
            concept = int(pattern[cell])
            undealt = left[concept][~dealt[left[concept]]]  # a concept with a common label may have had some
            if len(undealt) < samples:
                raise DataFileError(folder, self._too_few(len(decks[concept]), concept, pattern, samples))
            image[cell], left[concept] = undealt[:samples], undealt[samples:]
            dealt[image[cell]] = True
        return image

    def _too_few(self, images: int, concept: int, pattern: Ints, samples: int) -> str:
        """The error text for a concept whose `images` run out."""
        subsets = self.settings.subsets
        competing = [k for k, labels in enumerate(subsets) if not set(labels).isdisjoint(subsets[concept])]
        batches = int(np.isin(pattern, competing).sum())
        return (
            f"has {images} training images of the labels {list(subsets[concept])} of "
            f"trace.concepts.subsets[{concept}], and the {batches} batches of trace.samples_per_step = "
            f"{samples} that take from them need {batches * samples} different ones; lower samples_per_step, "
            f"or set trace.concepts.reuse = true"
        )


def _dealt_again(decks: Mapping[int, Ints], pattern: Ints, samples: int, streams: RandomStreams) -> Ints:
    """(batches, clients, samples) images of each cell's deck, which is dealt again when it runs out."""
    image = np.empty((*pattern.shape, samples), dtype=np.int64)
    for concept, deck in decks.items():
        cells = pattern == concept
        needed = int(cells.sum()) * samples
        laps = [_shuffled(deck, concept, lap, streams) for lap in range(-(-needed // len(deck)))]
        image[cells] = np.concatenate(laps)[:needed].reshape(-1, samples)
    return image


def _shuffled(deck: Ints, concept: int, lap: int, streams: RandomStreams) -> Ints:
    """The deck of that concept in the order in which it is dealt for the `lap`-th time, from 0."""
    return streams.generator("concept images", concept, lap).permutation(deck)


def standardised(images: ImageSet) -> ImageSet:
    """The training images only, each pixel with mean 0 and standard deviation 1, or less if it hardly varies.

    >>> pixels = np.array([[0], [10], [99]], dtype=np.uint8)
    >>> images = ImageSet(pixels, 1 / 255, np.array([0, 1, 0]), 2, np.array([0, 1]), np.array([2]))
    >>> standardised(images).pixels.round(2).tolist()
    [[-1.0], [1.0]]
    """
    pixels = images.pixels[images.train].astype(np.float32)
    # Summed in double precision: 60,000 values of a pixel are too many for single.
    mean = pixels.mean(axis=0, dtype=np.float64)
    deviation = pixels.std(axis=0, dtype=np.float64)
    pixels -= mean.astype(np.float32)
    pixels /= (deviation + STANDARDISE_FLOOR).astype(np.float32)
    everything = np.arange(len(pixels))
    return ImageSet(pixels, 1.0, images.labels[images.train], images.num_labels, everything, everything[:0])
