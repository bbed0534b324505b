"""Base class of trace sources: settings in, a `Trace` out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from emulator.numbers import Seed
from emulator.plugins import Configured, returns
from emulator.seeding import RandomStreams

if TYPE_CHECKING:  # neither is needed to read a configuration
    from traces.changes.changed import Rule
    from traces.holders import Holders
    from traces.inspection.observations import Observations
    from traces.trace import Trace


def _is_a_seed(seed: Any) -> Any:
    if isinstance(seed, str) and seed != "run":
        raise ValueError("must be a number, or 'run' for the run's own seed")
    return seed


DataSeed = Annotated[
    Seed | Literal["run"],
    BeforeValidator(_is_a_seed),
    Field(description="seed of the samples, the same in all runs; 'run' draws them with each run's own"),
]
"""The seed of data that a source makes."""


@dataclass(frozen=True)
class TraceContext:
    """The facts of a run that a source gets besides its own settings."""

    rounds: int
    streams: RandomStreams
    locate: Callable[[str], Path]  # resolves a path as it is written in a configuration
    scratch: Path | None = None  # folder for the file of a large trace; None: the system's temporary folder

    def data_streams(self, seed: DataSeed) -> RandomStreams:
        """The random streams of data of that seed."""
        return self.streams if seed == "run" else RandomStreams(seed)


class TraceSource(Configured, ABC):
    """Base class of trace sources, built with its own frozen settings."""

    chance: ClassVar[str] = 'draw from context.streams.generator("my purpose")'

    @abstractmethod
    @returns("traces.checks:trace")
    def build(self, context: TraceContext) -> Trace:
        """Build the trace of one seed.

        Args:
            context: the rounds of the run, its random streams, and where files are.

        Returns:
            The trace.

        Raises:
            ConfigurationError: the settings do not fit the run.
            DataFileError: a file of the settings cannot be used.
            InputError: a label that is drawn has no images, or the images are too large.
            RunError: there is no room for the file of a large trace.
        """

    def changed(
        self,
        trace: Trace,
        context: TraceContext,
        names: Sequence[str] = (),
        own: RandomStreams | None = None,
        rule: Rule | None = None,
    ) -> Trace:
        """Apply the changes of the settings to a trace; for sources whose settings have some.

        Args:
            trace: the trace without them.
            context: as for `build`.
            names: the names of the clients, if they have some.
            own: the random streams of its own data; None: those of the run.
            rule: what labels become by a rule that is drawn, where one makes them.

        Returns:
            The trace with the changes; `trace` itself if there are none.

        Raises:
            ConfigurationError: a change does not fit the run, the clients or the samples; or there are too
                many samples.
            RunError: there is no room for the file of a large table.
        """
        changes = self.settings.changes
        if not changes:
            return trace
        from traces.changes.changed import with_changes  # which most configurations do not need

        return with_changes(
            trace, changes, context.rounds, context.streams, context.scratch, names, own, rule
        )

    def certain_holders(self, trace: Trace, context: TraceContext) -> Holders | None:
        """Tell what is certain of the clients that hold samples with a seed, given the trace of another one.

        A check asks this of every seed but the first. It builds the trace of a seed if that is not enough.

        Args:
            trace: the trace of another seed, with the same settings.
            context: as for `build`, of the seed in question.

        Returns:
            Who is certain to hold samples, and when; `trace` itself if the same clients do. None, unless a
            source knows better: nothing is certain, not even that the trace can be built.

        Raises:
            ConfigurationError: the settings do not fit this seed.
        """
        return None

    def observations(self, context: TraceContext) -> Observations | None:
        """Count the observations that the trace is drawn from; for sources of real observations.

        Args:
            context: as for `build`.

        Returns:
            The counts of labels, all of them, also those without images; None if the source has no
            observations besides its samples.

        Raises:
            ConfigurationError: the settings contradict each other.
            DataFileError: a file of the settings cannot be used.
        """
        return None
