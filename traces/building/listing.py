"""A listing: the samples of a data set as columns, before any pixel is read."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from emulator.arrays import Bools, Ints
from emulator.errors import InputError
from emulator.seeding import RandomStreams
from traces.arrivals import SPLITS
from traces.building.pixels import Pixels
from traces.files.arrivals import When
from traces.held_out import held_out

TRAIN = SPLITS.index("train")


@dataclass(frozen=True)
class Listing:
    """The samples of a data set as columns of shape (n,), one row for each sample.

    Attributes:
        client: Index of each row's client into `clients`.
        clients: The names of the clients, ascending.
        label: Index of each row's class into `classes`.
        classes: The names of the classes.
        when: What `at` is: a data step; a time in microseconds since 1970; or a rank within the client.
        at: When the row arrives.
        image: The image of each row, a number of `pixels`; several rows may be crops of one image.
        pixels: Where the images are.
        split: Index into SPLITS; None: test samples are held out by seed.
        box: (n, 4) the corners x0, y0, x1, y1 of each row's crop in pixels; None: whole images.
        notes: What was left out or decided, for the user.
    """

    client: np.ndarray
    clients: tuple[str, ...]
    label: np.ndarray
    classes: tuple[str, ...]
    when: When
    at: Ints
    image: Ints
    pixels: Pixels
    split: np.ndarray | None = None
    box: np.ndarray | None = None
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.client)

    def take(self, rows: Ints) -> Listing:
        """The rows with these numbers (k,), in that order; clients without rows are dropped."""
        used = np.bincount(self.client[rows], minlength=len(self.clients)) > 0
        number = np.cumsum(used) - 1
        names = tuple(name for name, has_rows in zip(self.clients, used.tolist(), strict=True) if has_rows)
        return replace(
            self,
            client=number[self.client[rows]],
            clients=names,
            label=self.label[rows],
            at=self.at[rows],
            image=self.image[rows],
            split=None if self.split is None else self.split[rows],
            box=None if self.box is None else self.box[rows],
        )

    def noting(self, note: str) -> Listing:
        """This listing with one more note."""
        return replace(self, notes=(*self.notes, note))

    def digest(self) -> str:
        """The sha256 of all columns and names, and of what `pixels` states about itself."""
        state = hashlib.sha256()
        for column in (self.client, self.label, self.at, self.image, self.split, self.box):
            if column is not None:
                state.update(np.ascontiguousarray(column.astype(column.dtype.newbyteorder("<"))).data)
            state.update(b"|")
        for names in (self.clients, self.classes, (self.when,)):
            state.update("\0".join(names).encode("utf-8", "surrogateescape"))
            state.update(b"|")
        for piece in self.pixels.identity():
            state.update(piece)
        return state.hexdigest()


def codes(texts: Sequence[str]) -> tuple[Ints, tuple[str, ...]]:
    """(n,) the rank of each text among the distinct ones, and these, ascending.

    >>> codes(["b", "a", "b"])
    (array([1, 0, 1]), ('a', 'b'))
    """
    names = sorted(set(texts))
    rank = {name: number for number, name in enumerate(names)}
    return np.fromiter((rank[text] for text in texts), np.int64, len(texts)), tuple(names)


def ordered(listing: Listing, limit: int | None, seed: int, test_share: float) -> Listing:
    """The rows in the order of a trace: by (client, split, time, image), with test samples chosen.

    With `limit`, rows are evenly spread ones of that order, so that clients keep their proportions and their
    spans of time; a client with few samples may be dropped. Clients that have test samples only are dropped.

    Raises InputError if no rows are left.
    """
    if len(listing) == 0:
        raise InputError("the data set has no samples that fit the options")
    rows = _in_order(listing)
    if limit is not None and limit < len(listing):
        rows = rows[((np.arange(limit) + 0.5) * len(rows) / limit).astype(np.int64)]
        listing = listing.noting(f"--limit {limit}: {limit:,} of {len(listing):,} samples, evenly spread")
    listing = listing.take(rows)
    if listing.split is None:
        generator = RandomStreams(seed).generator("split")
        test = held_out(listing.client, listing.label, listing.at, test_share, generator)
        listing = replace(listing, split=test.astype(np.int8))
        return listing.take(_in_order(listing))
    trained = trained_clients(listing)
    if not trained.all():
        number = int((~trained).sum())
        listing = listing.take(np.flatnonzero(trained[listing.client])).noting(
            f"{number} client(s) with test samples only are left out"
        )
    if len(listing) == 0:
        raise InputError("the data set has no training samples that fit the options")
    return listing


def _in_order(listing: Listing) -> Ints:
    """(n,) the rows by client, split if it is known, time and image."""
    split = np.zeros(len(listing), np.int8) if listing.split is None else listing.split
    order: Ints = np.lexsort((listing.image, listing.at, split, listing.client))
    return order


def trained_clients(listing: Listing, rows: Bools | None = None) -> Bools:
    """(clients,) whether each client has training samples, among `rows` (n,) if given; needs a split."""
    assert listing.split is not None
    train = listing.split == TRAIN
    if rows is not None:
        train = train & rows
    has: Bools = np.bincount(listing.client[train], minlength=len(listing.clients)) > 0
    return has


def interval_of(rank: Ints, size: Ints | int, intervals: int) -> Ints:
    """(n,) the interval of each rank in [0, size), if they are cut into equal intervals, counted from 0.

    >>> interval_of(np.arange(5), 5, 2)
    array([0, 0, 0, 1, 1])
    """
    interval: Ints = rank * intervals // np.maximum(size, 1)
    return interval
