"""Clients that move between known concepts by a pattern: the test bed of FedDrift."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field, field_validator, model_validator

from emulator.arrays import Ints
from emulator.errors import ConfigurationError
from emulator.numbers import Count
from emulator.plugins import ChoiceOf, Chosen
from traces.arrivals import SPLITS
from traces.changes.settings import ChangingSettings
from traces.concepts import CONCEPT_SETS, ConceptSamples, ConceptSet
from traces.draw import MAX_SAMPLES
from traces.patterns import NUM_SEEDED, SEEDED, drift_cells, named_pattern, read_pattern
from traces.sources.base import DataSeed, TraceContext, TraceSource
from traces.tables.even import EvenTable
from traces.trace import Trace

if TYPE_CHECKING:
    from traces.holders import Holders


class ConceptsSettings(ChangingSettings):
    """The concepts, the clients' concepts over time, and the number of samples."""

    concepts: Annotated[Chosen[ConceptSet], ChoiceOf(CONCEPT_SETS)] = Field(
        description="how labels depend on features; see `driftscale parts concepts`", examples=["sine"]
    )
    pattern: str | tuple[str, ...] = Field(
        description="a FedDrift pattern (Y, Z, X, W, F, R0 to R9, or R: the one of the run's seed), or rows "
        "of digits: a row for each data step and one for the last test, a digit (a concept) for each client",
        examples=[("00", "01", "11")],
    )
    samples_per_step: Count = Field(500, description="samples a client receives at each step")
    rounds_per_step: Count = Field(100, description="rounds between two arrivals of data")
    data_seed: DataSeed = 0

    @field_validator("pattern", mode="before")
    @classmethod
    def _is_a_pattern(cls, pattern: Any) -> Any:
        if isinstance(pattern, str):
            if pattern != SEEDED:
                named_pattern(pattern)
            return pattern
        if not isinstance(pattern, list | tuple):
            raise ValueError("must be the name of a pattern, or a list of rows of digits")
        read_pattern(pattern)
        return pattern

    @model_validator(mode="after")
    def _has_its_concepts(self) -> ConceptsSettings:
        if problem := self._unknown_concept(self.matrix(0)):
            raise ValueError(problem)
        return self

    def refuse_unknown_concepts(self, pattern: Ints) -> None:
        """ConfigurationError if `pattern`, that of a seed, uses a concept that there is not."""
        if problem := self._unknown_concept(pattern):
            raise ConfigurationError(f"trace: {problem}")

    def _unknown_concept(self, pattern: Ints) -> str:
        highest, available = int(pattern.max()), self.concepts.build().num_concepts
        if highest < available:
            return ""
        return (
            f"pattern {self.pattern_name} uses concept {highest}, but the concepts of "
            f"{self.concepts.kind!r} are 0 to {available - 1}"
        )

    @property
    def pattern_name(self) -> str:
        """The pattern's name, or its rows if it has no name."""
        return repr(self.pattern if isinstance(self.pattern, str) else list(self.pattern))

    def matrix(self, seed: int) -> Ints:
        """(steps + 1, clients) the concepts in a run of that seed.

        Raises ConfigurationError if `pattern` is "R" and there is no pattern of that seed.
        """
        if not isinstance(self.pattern, str):
            return read_pattern(self.pattern)
        if self.pattern != SEEDED:
            return named_pattern(self.pattern)
        if seed >= NUM_SEEDED:
            raise ConfigurationError(
                f'trace.pattern = "{SEEDED}": stands for {SEEDED} and the run\'s seed, and there are '
                f"{SEEDED}0 to {SEEDED}{NUM_SEEDED - 1}; seed {seed} has none"
            )
        return named_pattern(f"{SEEDED}{seed}")


class Concepts(TraceSource):
    """Clients that move between known concepts by a pattern: FedDrift's test bed.

    Test, then train (Jothimurugesan et al. 2023): at a step, clients are tested on the samples that they
    receive for training at the next step. So a client that changes concept is first tested on data of a
    concept it has not trained on, and the batch of the pattern's last row is only used for tests. Training
    samples are kept for ever, test samples for one step.

    Whether a sample can be in several batches, and so be trained on before it is tested on, depends on the
    concept set: in `sine`, `circle`, `sea` (drawn anew for every batch) and `label_swaps` never, in
    `label_subsets` only with `reuse`, and in `tables` often.

    Source: FedDrift (Jothimurugesan et al., AISTATS 2023), its test bed.

    Client 1 changes concept at step 1:

    >>> from emulator.seeding import RandomStreams
    >>> sizes = {"samples_per_step": 5, "rounds_per_step": 1}
    >>> settings = ConceptsSettings(concepts="sine", pattern=("00", "01", "01"), **sizes)
    >>> trace = Concepts(settings).build(TraceContext(rounds=2, streams=RandomStreams(0), locate=Path))
    >>> trace.concepts.tolist()
    [[0, 0], [0, 1], [0, 1]]
    >>> trace.held(np.array([0, 1]), "train", step=1).counts().tolist()
    [10, 10]
    """

    Settings = ConceptsSettings
    settings: ConceptsSettings

    def build(self, context: TraceContext) -> Trace:
        settings = self.settings
        pattern = self._pattern(context)
        streams = context.data_streams(settings.data_seed)
        samples = settings.concepts.build().draw(pattern, settings.samples_per_step, streams, context.locate)
        trace = Trace(
            samples.pool,
            _table(samples, context.scratch),
            retain_steps=len(pattern) - 1,
            test_retain_steps=1,
            rounds_per_step=settings.rounds_per_step,
            noise=0.0,
            generator=streams.generator("noise"),
            concepts=pattern,
        )
        return self.changed(trace, context, own=streams)

    def certain_holders(self, trace: Trace, context: TraceContext) -> Holders | None:
        settings = self.settings
        if settings.changes:
            return None
        pattern = self._pattern(context)
        assert trace.concepts is not None, "the concepts are known"
        is_known = settings.pattern != SEEDED and settings.data_seed != "run"
        is_alike = pattern.shape == trace.concepts.shape and settings.concepts.build().same_holders
        return trace if is_known or is_alike else None

    def _pattern(self, context: TraceContext) -> Ints:
        """(steps + 1, clients) the concepts in this run; ConfigurationError if they do not fit it."""
        settings = self.settings
        pattern = settings.matrix(context.streams.seed)
        settings.refuse_unknown_concepts(pattern)
        steps = len(pattern) - 1
        if context.rounds > steps * settings.rounds_per_step:
            raise ConfigurationError(
                f"round.rounds = {context.rounds}: trace.pattern has {steps} steps of data, which at "
                f"trace.rounds_per_step = {settings.rounds_per_step} last for "
                f"{steps * settings.rounds_per_step} rounds"
            )
        last_change = int(np.flatnonzero(drift_cells(pattern).any(axis=1)).max(initial=-1))
        if context.rounds <= last_change * settings.rounds_per_step:
            raise ConfigurationError(
                f"round.rounds = {context.rounds}: at trace.rounds_per_step = {settings.rounds_per_step} "
                f"the run ends before data step {last_change}, at which trace.pattern still changes: "
                f"set round.rounds above {last_change * settings.rounds_per_step}, or lower "
                f"trace.rounds_per_step, or shorten the pattern"
            )
        if 2 * pattern.size * settings.samples_per_step > MAX_SAMPLES:
            raise ConfigurationError(
                f"trace.samples_per_step = {settings.samples_per_step}: twice this number for each of the "
                f"pattern's {pattern.size} cells exceeds the {MAX_SAMPLES} samples that a trace may hold"
            )
        return pattern


def _table(samples: ConceptSamples, scratch: Path | None) -> EvenTable:
    """The table of a trace from its batches of samples.

    Each batch but the last is trained on at its own step; each but the first is tested on one step earlier.
    """
    batches, clients, size = samples.image.shape
    steps = batches - 1
    table = EvenTable(samples.pool, clients, steps, (size, size), first_step=0, scratch=scratch)
    for step in range(steps):
        for split in range(len(SPLITS)):
            block = table.block(split, step)
            block.label[:] = samples.label[step + split].ravel()
            block.image[:] = samples.image[step + split].ravel()
            block.noise_start[:] = 0
    return table
