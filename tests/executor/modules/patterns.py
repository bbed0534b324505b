"""A trace source: each label has a pattern of any shape, seen through noise; or tokens of its own."""

from __future__ import annotations

import numpy as np

from emulator.numbers import Count, CountOrZero
from emulator.ports import Tokens
from traces.draw import StreamSettings, draw_trace, num_windows
from traces.images import ImageSet, stratified_split
from traces.sources import TraceContext, TraceSource
from traces.trace import Trace

LIKELY = 5
"""Tokens of a label."""


class PatternsSettings(StreamSettings):
    clients: Count = 12
    shape: tuple[Count, ...] = (8, 8)
    labels: Count = 4
    vocabulary: CountOrZero = 0


class Patterns(TraceSource):
    """Patterns, of all labels for every client; tokens, if there is a `vocabulary`."""

    Settings = PatternsSettings
    settings: PatternsSettings

    def build(self, context: TraceContext) -> Trace:
        settings, rng = self.settings, context.streams.generator("patterns")
        labels = np.repeat(np.arange(settings.labels), 100)
        shape = (len(labels), *settings.shape)
        if settings.vocabulary:
            tokens = rng.integers(1, settings.vocabulary, (settings.labels, LIKELY))
            numbers = tokens[labels.reshape(-1, *[1] * len(settings.shape)), rng.integers(0, LIKELY, shape)]
        else:
            patterns = rng.standard_normal((settings.labels, *settings.shape))
            numbers = patterns[labels] + rng.standard_normal(shape)
        train, test = stratified_split(labels, 0.3, rng)
        windows = num_windows(settings, context.rounds)
        return draw_trace(
            ImageSet(
                *(numbers.astype(np.float32), 1.0, labels, settings.labels, train, test),
                tokens=Tokens(settings.vocabulary) if settings.vocabulary else None,
            ),
            (np.full((settings.clients, settings.labels), 1 / settings.labels) for _ in range(windows)),
            num_clients=settings.clients,
            num_windows=windows,
            settings=settings,
            streams=context.streams,
            scratch=context.scratch,
        )
