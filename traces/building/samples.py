"""The samples of images: what a kind of data set says of each, as rows."""

from __future__ import annotations

import numpy as np

from emulator.arrays import Ints
from traces.building.pixels import Pixels
from traces.building.rows import Rows

Coded = tuple[Ints, tuple[str, ...]]
"""A column of texts, as `codes` makes it: (n,) the index of each one's text, and the distinct texts."""


def samples_of(
    pixels: Pixels,
    client: Coded,
    label: Coded,
    *,
    at: Ints | None = None,
    image: Ints | None = None,
    split: np.ndarray | None = None,
    box: np.ndarray | None = None,
    notes: tuple[str, ...] = (),
) -> Rows:
    """List the samples of some images.

    Args:
        pixels: where the images are.
        client: whose each sample is.
        label: the class of each.
        at: (n,) when each arrives, in microseconds since 1970; None: clients own all from the start.
        image: (n,) the number of each one's image; None: sample i is image i.
        split: (n,) index into SPLITS; None: test samples are held out by seed.
        box: (n, 4) the corners x0, y0, x1, y1 of each one's part of its image; None: whole images.
        notes: what was left out or decided, for the user.
    """
    number = len(label[0])
    return Rows(
        client=client[0],
        clients=client[1],
        label=label[0],
        classes=label[1],
        when="step" if at is None else "time",
        at=np.zeros(number, np.int64) if at is None else at,
        value=np.arange(number) if image is None else image,
        pixels=pixels,
        split=split,
        box=box,
        notes=notes,
    )
