"""Data sets whose samples are whole images: a client, a class and perhaps a time for each image."""

from __future__ import annotations

import numpy as np

from emulator.arrays import Ints
from traces.building.listing import Listing
from traces.building.pixels import Pixels

Coded = tuple[Ints, tuple[str, ...]]
"""A column of texts, as `codes` makes it: (n,) the index of each one's text, and the distinct texts."""


def whole_images(
    client: Coded,
    label: Coded,
    pixels: Pixels,
    *,
    at: Ints | None = None,
    split: np.ndarray | None = None,
    box: np.ndarray | None = None,
    notes: tuple[str, ...] = (),
) -> Listing:
    """List all images of `pixels` as samples, in their order.

    Args:
        client: whose each image is.
        label: the class of each.
        pixels: where they are.
        at: (n,) when each arrives, in microseconds since 1970; None: clients own all from the start.
        split: (n,) index into SPLITS; None: test samples are held out by seed.
        box: (n, 4) the part of each image that is taken instead of all of it, as in a listing.
        notes: what was left out or decided, for the user.
    """
    number = len(label[0])
    return Listing(
        client=client[0],
        clients=client[1],
        label=label[0],
        classes=label[1],
        when="step" if at is None else "time",
        at=np.zeros(number, np.int64) if at is None else at,
        image=np.arange(number),
        pixels=pixels,
        split=split,
        box=box,
        notes=notes,
    )
