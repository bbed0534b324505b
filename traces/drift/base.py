"""Base classes of what `trace.drift` names: which samples reach which client, and at which data step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from emulator.arrays import Floats
from emulator.plugins import Configured, returns
from emulator.seeding import RandomStreams
from traces.arrivals import STEPS_AHEAD
from traces.draw import StreamSettings, draw_table, refuse_oversize
from traces.images import ImageSet
from traces.onsets import Onsets, SharesWatch
from traces.tables.base import Table


@dataclass(frozen=True)
class PopulationContext:
    """The facts of a run that a population gets besides its own settings.

    With `static`, nothing arrives after step 0 and nothing expires: what would have arrived later must not
    be drawn.
    """

    settings: StreamSettings  # sizes and times of arrivals
    num_clients: int
    num_steps: int  # data steps of the run, step 0 included; with trace.test_on = "next" one more
    static: bool
    streams: RandomStreams
    scratch: Path | None = None  # folder for the file of a large trace; None: the system's temporary folder

    @property
    def last_step(self) -> int:
        """The last data step at which samples arrive."""
        return 0 if self.static else self.num_steps - 1

    @property
    def last_step_of_run(self) -> int:
        """The last data step that the run plays and at which samples arrive; onsets come no later."""
        return 0 if self.static else self.num_steps - 1 - STEPS_AHEAD[self.settings.test_on]


class Population(Configured, ABC):
    """Base class of all that `trace.drift` may name, built with its own frozen settings.

    Attributes:
        same_holders: Whether, if every label has images, the populations of all seeds can be drawn if that of
            one can, and each client holds samples of the same splits at the same data steps in all of them. A
            check draws the population of each seed where this is False.
    """

    chance: ClassVar[str] = "draw from the streams of the context, or the generator that it is given"
    same_holders: ClassVar[bool] = False

    @abstractmethod
    def draw(self, images: ImageSet, context: PopulationContext) -> Table:
        """Draw the samples of every client.

        Args:
            images: the pool of images, split into train and test.
            context: the clients, the data steps, and the random streams.

        Returns:
            The rows, arriving from some step up to 0 until `context.last_step`; every client holds training
            and test samples at step 0.

        Raises:
            ConfigurationError: the settings do not fit the images or the run, or there are too many samples.
            InputError: a drawn label has no images in a split, or the images are too large.
            RunError: there is no room for the file of a large trace.
        """

    def draw_with_onsets(self, images: ImageSet, context: PopulationContext) -> tuple[Table, Onsets | None]:
        """Draw the samples of every client, and tell who begins to receive others, and when.

        Args:
            images: as for `draw`.
            context: as for `draw`.

        Returns:
            The rows, those of `draw`; and the onsets at steps 1 to `context.last_step_of_run`, by default
            None: they are not known.

        Raises:
            ConfigurationError: as for `draw`.
            InputError: as for `draw`.
            RunError: as for `draw`.
        """
        return self.draw(images, context), None


class Drift(Population):
    """Base class of label drifts: the label shares of every client, window after window.

    Every client receives the same number of samples at each step, with labels drawn by its shares. It starts
    with the windows of a retention period. Whose shares differ from those of the window before has an onset.
    """

    def draw(self, images: ImageSet, context: PopulationContext) -> Table:
        """Draw the samples of every client by `shares`; see `Population.draw`."""
        return self.draw_with_onsets(images, context)[0]

    def draw_with_onsets(self, images: ImageSet, context: PopulationContext) -> tuple[Table, Onsets]:
        """Draw the samples of every client by `shares`, and compare these window by window."""
        settings = context.settings
        first_step = 1 - settings.retain_steps
        num_windows = context.last_step - first_step + 1
        refuse_oversize(settings, context.num_clients, num_windows)
        shares = self.shares(
            context.num_clients,
            num_windows,
            images.num_labels,
            first_step=first_step,
            rounds_per_step=settings.rounds_per_step,
            generator=context.streams.generator("drift"),
        )
        watch = SharesWatch(first_step, context.last_step_of_run)
        table = draw_table(
            images,
            watch.passed_on(shares),
            num_clients=context.num_clients,
            num_windows=num_windows,
            settings=settings,
            streams=context.streams,
            scratch=context.scratch,
        )
        return table, watch.onsets()

    @abstractmethod
    @returns("traces.checks:shares")
    def shares(
        self,
        num_clients: int,
        num_windows: int,
        num_labels: int,
        first_step: int,
        rounds_per_step: int,
        generator: np.random.Generator,
    ) -> Iterator[Floats]:
        """Yield the label shares of all clients, window after window.

        An array that was yielded is not modified afterwards; a drift keeps only the windows it needs to
        continue.

        Args:
            num_clients: the number of clients.
            num_windows: the number of windows, one for each data step.
            num_labels: the number of labels.
            first_step: the data step at which the first window arrives, <= 0.
            rounds_per_step: the number of rounds between two data steps.
            generator: the source of all randomness of the drift.

        Yields:
            For each window an array of shape (num_clients, num_labels) whose rows sum to 1.

        Raises:
            ConfigurationError: the settings do not fit the number of labels or of windows.
        """
