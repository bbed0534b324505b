"""Observations as samples: dealt to the clients of their group, and split into training and test samples.

It knows counts of labels by group and window, and images to draw; it does not know where the counts are from.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from emulator.arrays import Ints
from emulator.seeding import RandomStreams
from traces.arrivals import SPLITS, Arrivals, arrivals_of, concatenated, num_noise_starts
from traces.draw import ImagePool
from traces.held_out import is_test
from traces.images import ImageSet
from traces.tables.sorted import SortedTable

DEALING, STARTS = len(SPLITS), len(SPLITS) + 1
"""Keys of the random streams for dealing and for test samples, beside those of the splits."""


def dealt_table(
    images: ImageSet,
    counts: Ints,
    *,
    clients_per_group: int,
    test_share: float,
    retain_steps: int,
    streams: RandomStreams,
    scratch: Path | None = None,
) -> SortedTable:
    """Make a sample of every observation: window w arrives at step w - (retain_steps - 1).

    The observations of a group in a window are shuffled and dealt in turn to its clients, of which a random
    one is the first. Client i belongs to group i // clients_per_group. Of each client's observations of a
    label every 1 / test_share-th one, in order of time and from a random start, is a test sample (`is_test`).
    Images are drawn uniformly, with replacement, among those of that label in the split. The windows of a
    shorter trace are those of a longer one.

    Args:
        images: the pool of images, split into train and test.
        counts: observations of shape (groups, windows, labels); a group may have none in a window.
        clients_per_group: the number of clients of each group.
        test_share: share of the observations that are test samples, in (0, 1).
        retain_steps: windows that clients own from the start, if they were observed in them.
        streams: the random streams that all draws come from.
        scratch: folder for the file of a large table; None uses the system's folder for temporary files.

    Returns:
        The rows. Clients receive unequally many, and some perhaps nothing at some steps, or ever.

    Raises:
        InputError: an observed label has no images in a split, or the images are too large.
        RunError: there is no room for the file of a large table.
    """
    groups, windows, labels = counts.shape
    num_clients = groups * clients_per_group
    start = streams.generator("data", STARTS).random((num_clients, labels))
    seen = np.zeros((num_clients, labels), dtype=np.int64)
    pools = [ImagePool(images, split) for split in SPLITS]
    num_starts = num_noise_starts(images)
    parts: list[Arrivals] = []
    for window in range(windows):
        client, label = _dealt(
            counts[:, window], clients_per_group, streams.generator("data", DEALING, window)
        )
        number = seen[client, label] + _number_among_equals(client, label)
        tested = is_test(number, start[client, label], test_share)
        np.add.at(seen, (client, label), 1)
        for split, pool in enumerate(pools):
            rows = np.flatnonzero(tested == (split == SPLITS.index("test")))
            pool.refuse_missing(np.bincount(label[rows], minlength=labels))
            # One stream per window, so that a shorter run is the beginning of a longer one.
            generator = streams.generator("data", split, window)
            parts.append(
                arrivals_of(
                    client=client[rows],
                    split=np.full(len(rows), split),
                    arrival=np.full(len(rows), window - retain_steps + 1),
                    label=label[rows],
                    image=pool.images_of(label[rows], generator),
                    noise_start=generator.integers(0, num_starts, size=len(rows)),
                )
            )
    return SortedTable(concatenated(parts), num_clients, scratch, last_step=windows - retain_steps)


def _dealt(counts: Ints, hands: int, generator: np.random.Generator) -> tuple[Ints, Ints]:
    """(n,) clients and (n,) labels of all observations of a window, in order of client and label.

    `counts` (groups, labels) are dealt to `hands` clients of each group.
    """
    group, label = np.nonzero(counts)
    times = counts[group, label]
    group, label = np.repeat(group, times), np.repeat(label, times)
    client = group
    if hands > 1:
        order = np.lexsort((generator.random(len(group)), group))
        group, label = group[order], label[order]
        sizes = np.bincount(group, minlength=len(counts))
        position = np.arange(len(group)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        first = generator.integers(hands, size=len(counts))
        client = group * hands + (position + first[group]) % hands
    order = np.lexsort((label, client))
    return client[order], label[order]


def _number_among_equals(client: Ints, label: Ints) -> Ints:
    """(n,) the number of earlier rows with the same client and label; the rows are sorted by both."""
    rows = np.arange(len(client))
    is_first = np.ones(len(client), dtype=np.bool_)
    is_first[1:] = (client[1:] != client[:-1]) | (label[1:] != label[:-1])
    numbers: Ints = rows - np.maximum.accumulate(np.where(is_first, rows, 0))
    return numbers
