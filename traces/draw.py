"""Drawing a trace from label shares: each client's labels at each data step, and images of these labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from emulator.arrays import Floats, Ints
from emulator.errors import ConfigurationError, InputError
from emulator.numbers import Count, Number
from emulator.ports import Split
from emulator.seeding import RandomStreams
from traces.arrivals import SPLITS, STEPS_AHEAD, TestOn, num_noise_starts
from traces.changes.settings import ChangingSettings
from traces.images import ImageSet
from traces.tables.base import CHUNK_ROWS
from traces.tables.even import Block, EvenTable
from traces.trace import Trace

MAX_SAMPLES = 2**31
"""Most samples of a trace: enough for a million clients with 30 new ones at each of 70 steps."""

MAX_SAMPLES_IN_MEMORY = 2**27
"""Most samples of a trace whose arrivals are sorted in memory, where one takes some 40 bytes."""


SHARES_SUM_WITHIN = 1e-6
"""How far the label shares of a client may be from a sum of 1, by rounding."""

TEST_ON = (
    "what clients are tested on: present, the test samples that they hold, kept as long as training samples; "
    "next, those that arrive at the next data step"
)


class StreamSettings(ChangingSettings):
    """Settings common to all traces that are drawn from label shares by `draw_trace`."""

    rounds_per_step: Count = Field(10, description="rounds between two arrivals of data")
    retain_rounds: Count = Field(50, description="rounds for which a client keeps a sample")
    samples_per_step: Count = Field(20, description="training samples a client receives at each step")
    test_samples_per_step: Count = Field(10, description="its own test samples from the same windows")
    noise: Annotated[float, Number(ge=0, le=1e6)] = Field(
        0.0, description="sensor noise: standard deviation added to pixels in [0, 1]"
    )
    test_on: TestOn = Field("present", description=TEST_ON)

    @property
    def retain_steps(self) -> int:
        """Data steps for which a client keeps a sample, rounded up."""
        return -(-self.retain_rounds // self.rounds_per_step)

    def num_steps(self, rounds: int) -> int:
        """Count the data steps of a run, step 0 included.

        Args:
            rounds: the number of rounds of the run.

        Returns:
            The number of data steps.
        """
        return -(-rounds // self.rounds_per_step)


def draw_trace(
    images: ImageSet,
    shares: Iterable[Floats],
    *,
    num_clients: int,
    num_windows: int,
    settings: StreamSettings,
    streams: RandomStreams,
    scratch: Path | None = None,
) -> Trace:
    """Draw the samples of every client, window by window: a window is the data that arrives at one step.

    Window w arrives at step w - (retain_steps - 1): a client starts with its first `retain_steps` windows.
    Labels are drawn from the shares; images are drawn uniformly, with replacement, among the images of that
    label in the split. A large trace is laid out in a file in `scratch`.

    Args:
        images: the pool of images, split into train and test.
        shares: for each window the label shares of each client, of shape (num_clients, num_labels); rows sum
            to 1.
        num_clients: the number of clients.
        num_windows: the number of windows that `shares` yields.
        settings: sizes and times of the arrivals, and the sensor noise.
        streams: the random streams that all draws come from.
        scratch: folder for the file of a large trace; None uses the system's folder for temporary files.

    Returns:
        The trace.

    Raises:
        InputError: a drawn label has no images in a split, the images are too large, or the shares of a
            window are none, or there are those of another number of windows.
        RunError: there is no room for the file of a large trace.
    """
    return Trace(
        images,
        draw_table(
            images,
            shares,
            num_clients=num_clients,
            num_windows=num_windows,
            settings=settings,
            streams=streams,
            scratch=scratch,
        ),
        retain_steps=settings.retain_steps,
        rounds_per_step=settings.rounds_per_step,
        noise=settings.noise,
        generator=streams.generator("noise"),
        test_on=settings.test_on,
    )


def draw_table(
    images: ImageSet,
    shares: Iterable[Floats],
    *,
    num_clients: int,
    num_windows: int,
    settings: StreamSettings,
    streams: RandomStreams,
    scratch: Path | None = None,
) -> EvenTable:
    """Draw the table of `draw_trace`, with the same arguments and errors.

    Returns:
        The rows of all windows.
    """
    num_starts = num_noise_starts(images)
    sizes = (settings.samples_per_step, settings.test_samples_per_step)
    table = EvenTable(images, num_clients, num_windows, sizes, 1 - settings.retain_steps, scratch)
    pools = [ImagePool(images, split) for split in SPLITS]
    for window, share in enumerate(_checked_shares(shares, (num_clients, images.num_labels), num_windows)):
        for split, pool in enumerate(pools):
            # One stream per window, so that a shorter run is the beginning of a longer one.
            generator = streams.generator("data", split, window)
            block = table.block(split, window)
            pool.draw(block, share, generator)
            for rows in _chunks(len(block.noise_start), CHUNK_ROWS):
                size = rows.stop - rows.start
                block.noise_start[rows] = generator.integers(0, num_starts, size=size, dtype=np.int32)
            table.drop_pages()
    return table


def _checked_shares(shares: Iterable[Floats], shape: tuple[int, int], num_windows: int) -> Iterator[Floats]:
    """The arrays of `shares`; InputError for one that has no shares, and for another number of them.

    `shape` is (clients, labels); without the last labels there are shares of the others alone. Of too many
    arrays, one is read: they may have no end.
    """
    count = 0
    for given in shares:
        if count == num_windows:
            raise InputError(
                f"trace: there are label shares of more than {num_windows} windows; must be of {num_windows}"
            )
        count += 1
        share = np.asarray(given)
        found = share.shape
        if len(found) != 2 or found[0] != shape[0] or not 0 < found[1] <= shape[1]:
            raise InputError(
                f"trace: the label shares of window {count - 1} have shape {found}; must be "
                f"(clients, labels) = {shape}"
            )
        sums = share.sum(axis=1)
        good = (np.abs(sums - 1) <= SHARES_SUM_WITHIN) & (share.min(axis=1) >= 0)  # NaN is neither
        if not good.all():
            client = int(np.flatnonzero(~good)[0])
            raise InputError(
                f"trace: the label shares of client {client} in window {count - 1} sum to {sums[client]:g}, "
                f"the smallest is {share[client].min():g}; must sum to 1, and none be below 0"
            )
        yield share
    if count < num_windows:
        raise InputError(f"trace: there are label shares of {count} windows; must be of {num_windows}")


def num_windows(settings: StreamSettings, rounds: int) -> int:
    """Count the windows that a run needs: those owned from the start, and one for each later step.

    With `test_on` = "next" there is one more, on which clients are tested at the last step.

    Args:
        settings: the rounds per step, the retention, and what clients are tested on.
        rounds: the number of rounds of the run.

    Returns:
        The number of windows.
    """
    return settings.num_steps(rounds) + STEPS_AHEAD[settings.test_on] + settings.retain_steps - 1


def refuse_oversize(settings: StreamSettings, num_clients: int, num_windows: int) -> None:
    """Reject a trace that is too large, before anything of its size is allocated.

    Args:
        settings: the samples per step.
        num_clients: the number of clients.
        num_windows: the number of windows.

    Raises:
        ConfigurationError: the trace would have more than `MAX_SAMPLES` samples.
    """
    per_window = settings.samples_per_step + settings.test_samples_per_step
    if num_clients * num_windows * per_window > MAX_SAMPLES:
        raise ConfigurationError(
            f"trace: {num_clients} clients x {num_windows} steps of data x {per_window} samples are more "
            f"than the {MAX_SAMPLES} samples a trace may hold; lower samples_per_step, clients or "
            f"round.rounds"
        )


def refuse_oversize_in_memory(num_samples: int, advice: str) -> None:
    """Reject a trace with more samples than can be sorted in memory, before they are allocated.

    Args:
        num_samples: the samples of the trace.
        advice: which settings to lower, for the message.

    Raises:
        ConfigurationError: there are more than `MAX_SAMPLES_IN_MEMORY`.
    """
    if num_samples > MAX_SAMPLES_IN_MEMORY:
        raise ConfigurationError(
            f"trace: {num_samples} samples are more than the {MAX_SAMPLES_IN_MEMORY} of a trace with "
            f"drift.kind = 'buckets', shared, changes, samples = 'observed' or absent = 'leave'; "
            f"lower {advice}"
        )


class ImagePool:
    """The images of one split, by label, to draw from."""

    def __init__(self, images: ImageSet, split: Split) -> None:
        self._split = split
        self._images, self._start = images.by_label(split)
        self._available = np.diff(self._start)

    def draw(self, block: Block, shares: Floats, generator: np.random.Generator) -> None:
        """Fill `block` with labels drawn by `shares` (clients, num_labels), and with images of these labels.

        It works in chunks, which do not change the draws: first all labels, then all images. Raises
        InputError if the split has no image of a drawn label.
        """
        clients, num_labels = shares.shape
        size = len(block.label) // clients
        drawn = np.zeros(num_labels, dtype=np.int64)
        for chunk in _chunks(clients, max(1, CHUNK_ROWS // max(size, num_labels))):
            counts = generator.multinomial(size, shares[chunk])  # (clients of the chunk, labels)
            labels = np.tile(np.arange(num_labels, dtype=block.label.dtype), len(counts))
            block.label[chunk.start * size : chunk.stop * size] = np.repeat(labels, counts.ravel())
            drawn += counts.sum(axis=0)
        self.refuse_missing(drawn)
        for chunk in _chunks(len(block.label), CHUNK_ROWS):
            block.image[chunk] = self.images_of(block.label[chunk], generator)

    def refuse_missing(self, drawn: Ints) -> None:
        """InputError if the split has no image of a label of which `drawn` (num_labels,) has samples."""
        missing = np.flatnonzero((self._available[: len(drawn)] == 0) & (drawn > 0))
        if len(missing):
            raise InputError(
                f"trace: label {missing[0]} is drawn, but the {self._split} images have none of it"
            )

    def images_of(self, label: np.ndarray, generator: np.random.Generator) -> Ints:
        """(n,) an image of each of `label` (n,), drawn uniformly and with replacement among those it has."""
        number = (generator.random(len(label)) * self._available[label]).astype(np.int64)
        drawn: Ints = self._images[self._start[label] + number]
        return drawn


def _chunks(length: int, size: int) -> Iterator[slice]:
    """Slices of `size`, the last one shorter, that partition [0, length)."""
    for first in range(0, length, size):
        yield slice(first, min(first + size, length))
