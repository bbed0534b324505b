"""Labelled images, split into train and test before anything is drawn from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from emulator.arrays import Floats32, Ints
from emulator.ports import Split


@dataclass(frozen=True)
class ImageSet:
    """A pool of images, or other vectors of features, of one shape.

    `pixels` (images, *shape) uint8 or float32; times `scale` they are the features: for images as they were
    published, in [0, 1]. `labels` (images,) are 0 .. num_labels - 1. `train` and `test` are disjoint image
    indices. `label_names` is what a table of labels calls the first classes, where they come from one.
    """

    pixels: np.ndarray
    scale: float
    labels: Ints
    num_labels: int
    train: Ints
    test: Ints
    label_names: tuple[str, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(int(size) for size in self.pixels.shape[1:])

    def features(self, images: Ints) -> Floats32:
        """(n, *shape) pixels times scale."""
        # NOTE: `take` gathers short rows several times faster than an index does.
        pixels: Floats32 = self.pixels.take(images, axis=0).astype(np.float32, copy=False)
        if self.scale != 1.0:
            # NOTE: in place, `pixels` being a copy: a second array of that size costs more than the product.
            pixels *= np.float32(self.scale)
        return pixels

    def by_label(self, split: Split) -> tuple[Ints, Ints]:
        """Image indices of a split in order of label, and where each label starts (num_labels + 1,)."""
        images = self.train if split == "train" else self.test
        order = np.argsort(self.labels[images], kind="stable")
        sizes = np.bincount(self.labels[images], minlength=self.num_labels)
        return images[order], np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)


def stratified_split(labels: Ints, test_share: float, generator: np.random.Generator) -> tuple[Ints, Ints]:
    """(train, test) image indices: of every label, `test_share` of the images (at least one) goes to test."""
    test = []
    for label in np.unique(labels):
        images = generator.permutation(np.flatnonzero(labels == label))
        test.append(images[: max(1, round(test_share * len(images)))])
    test_images = np.sort(np.concatenate(test))
    train_images = np.setdiff1d(np.arange(len(labels)), test_images)
    return train_images.astype(np.int64), test_images.astype(np.int64)
