"""Labelled images, split into train and test before anything is drawn from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from emulator.arrays import Floats32, Ints
from emulator.ports import Split, Tokens


@dataclass(frozen=True)
class ImageSet:
    """A pool of images, or other feature vectors, of one shape.

    `pixels` (images, *shape) are uint8 or float32; `pixels` times `scale` are the features: for published
    images, in [0, 1]. `labels` (images,) are 0 .. num_labels - 1. `train` and `test` are disjoint arrays of
    image indices. `label_names` are the names of the first classes, if the labels come from a table. Features
    that are `tokens` are ids, and models take them as whole numbers. `numbers` (images, K) float32 are
    targets that samples have beside their label. `objective` is that which comes with them, as a table of a
    configuration; None: their labels.
    """

    pixels: np.ndarray
    scale: float
    labels: Ints
    num_labels: int
    train: Ints
    test: Ints
    label_names: tuple[str, ...] = ()
    tokens: Tokens | None = None
    numbers: Floats32 | None = None
    objective: Mapping[str, Any] | None = None

    def __len__(self) -> int:
        """The number of images."""
        return len(self.pixels)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one image."""
        return tuple(int(size) for size in self.pixels.shape[1:])

    def features(self, images: Ints) -> Floats32:
        """Compute the features of some images.

        Args:
            images: image indices of shape (n,).

        Returns:
            `pixels` times `scale`, float32 of shape (n, *shape).
        """
        # NOTE: `take` gathers short rows several times faster than indexing.
        pixels: Floats32 = self.pixels.take(images, axis=0).astype(np.float32, copy=False)
        if self.scale != 1.0:
            # NOTE: in place, as `pixels` is a copy: a second array of that size costs more than the product.
            pixels *= np.float32(self.scale)
        return pixels

    @property
    def num_targets(self) -> int:
        """K, the number of targets of a sample."""
        return 0 if self.numbers is None else self.numbers.shape[1]

    def targets(self, images: Ints) -> Floats32:
        """(n, K) the targets of some images (n,)."""
        assert self.numbers is not None, "samples have targets"
        return self.numbers.take(images, axis=0)

    def by_label(self, split: Split) -> tuple[Ints, Ints]:
        """Sort the images of a split by label.

        Args:
            split: "train" or "test".

        Returns:
            The image indices of the split in order of label, of shape (images of the split,), and the
            position at which each label starts, of shape (num_labels + 1,).
        """
        images = self.train if split == "train" else self.test
        order = np.argsort(self.labels[images], kind="stable")
        sizes = np.bincount(self.labels[images], minlength=self.num_labels)
        return images[order], np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)


def has_every_label(images: object) -> bool:
    """Whether `images` are an image set that has an image of each label in each split."""
    return isinstance(images, ImageSet) and all(
        len(np.unique(images.labels[split])) == images.num_labels for split in (images.train, images.test)
    )


def with_labels(images: ImageSet, labels: Sequence[int]) -> ImageSet:
    """The images of some labels, in their order, which stay in their split.

    Args:
        images: the pool of images, without `label_names`.
        labels: the labels to keep, none of them twice; the i-th one becomes label i.

    Returns:
        A pool with a copy of these images, of `len(labels)` labels.

    >>> images = ImageSet(np.arange(4.0), 1.0, np.array([0, 1, 2, 2]), 3, np.array([0, 2]), np.array([1, 3]))
    >>> kept = with_labels(images, [2, 0])
    >>> kept.pixels.tolist(), kept.labels.tolist(), kept.train.tolist(), kept.test.tolist()
    ([0.0, 2.0, 3.0], [1, 0, 0], [0, 1], [2])
    """
    renumbered = np.full(images.num_labels, -1)
    renumbered[list(labels)] = np.arange(len(labels))
    kept = renumbered[images.labels] >= 0
    place = np.cumsum(kept) - 1  # of an image that is kept, among those
    return replace(
        images,
        pixels=images.pixels[kept],
        labels=renumbered[images.labels[kept]],
        num_labels=len(labels),
        train=place[images.train[kept[images.train]]],
        test=place[images.test[kept[images.test]]],
        numbers=None if images.numbers is None else images.numbers[kept],
    )


def stratified_split(labels: Ints, test_share: float, generator: np.random.Generator) -> tuple[Ints, Ints]:
    """Split images into train and test, with the same share of each label.

    Args:
        labels: the label of each image, of shape (images,).
        test_share: the share of each label's images that goes to test, in (0, 1); at least one image does.
        generator: the source of the random draw.

    Returns:
        The image indices of train and of test, each ascending.

    >>> train, test = stratified_split(np.array([0, 0, 0, 0, 1, 1]), 0.5, np.random.default_rng(0))
    >>> len(train), len(test)
    (3, 3)
    """
    test = []
    for label in np.unique(labels):
        images = generator.permutation(np.flatnonzero(labels == label))
        test.append(images[: max(1, round(test_share * len(images)))])
    test_images = np.sort(np.concatenate(test))
    train_images = np.setdiff1d(np.arange(len(labels)), test_images)
    return train_images.astype(np.int64), test_images.astype(np.int64)


def stratified_parts(
    labels: Ints, shares: tuple[float, float], generator: np.random.Generator
) -> tuple[Ints, Ints]:
    """Draw images for train and others for test, with the same shares of each label; the rest is left out.

    Of a label's n images, round(shares[0] * n) are for train, and with those for test they are
    round((shares[0] + shares[1]) * n): shares that sum to 1 leave out no image.

    Args:
        labels: the label of each image, of shape (images,).
        shares: the shares of train and of test, each in (0, 1], with a sum of at most 1.
        generator: the source of the random draw.

    Returns:
        The image indices of train and of test, each ascending. Of a label with few images they may have none.

    >>> train, test = stratified_parts(np.repeat([0, 1], 5), (0.6, 0.2), np.random.default_rng(0))
    >>> len(train), len(test)
    (6, 2)
    """
    train_share, test_share = shares
    train, test = [], []
    for label in np.unique(labels):
        images = generator.permutation(np.flatnonzero(labels == label))
        trained, used = round(train_share * len(images)), round((train_share + test_share) * len(images))
        train.append(images[:trained])
        test.append(images[trained:used])
    return np.sort(np.concatenate(train)), np.sort(np.concatenate(test))


NUMBER_IMAGES = {"train": 60, "test": 30}
"""Images of each two-digit number, by split."""


def two_digit_numbers(digits: ImageSet, generator: np.random.Generator) -> ImageSet:
    """Images of the numbers 00 to 99: two images of digits side by side.

    The digits of an image are drawn with replacement from the same split of `digits`, so no image of a digit
    is in both splits.

    Args:
        digits: images of the digits 0 to 9, all of which both splits have.
        generator: the source of the random draw.

    Returns:
        Images of twice the width with labels 0 .. 99, as many of each number as `NUMBER_IMAGES` says.
    """
    numbers = np.arange(100)
    pixels, labels, splits = [], [], []
    for split, count in NUMBER_IMAGES.items():
        images, start = digits.by_label("train" if split == "train" else "test")
        label = np.repeat(numbers, count)
        halves = []
        for digit in (label // 10, label % 10):
            chosen = start[digit] + generator.integers(start[digit + 1] - start[digit])
            halves.append(digits.pixels[images[chosen]])
        pixels.append(np.concatenate(halves, axis=-1))
        labels.append(label)
        splits.append(np.full(len(label), split == "test"))
    is_test = np.concatenate(splits)
    return ImageSet(
        np.concatenate(pixels),
        digits.scale,
        np.concatenate(labels).astype(np.int64),
        num_labels=100,
        train=np.flatnonzero(~is_test),
        test=np.flatnonzero(is_test),
    )
