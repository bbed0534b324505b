"""A trace source whose samples have numbers beside their label: signs of their features."""

from __future__ import annotations

import numpy as np

from traces.changes.settings import ChangingSettings
from traces.draw import StreamSettings, draw_trace, num_windows
from traces.images import ImageSet, stratified_split
from traces.sources import TraceContext, TraceSource
from traces.trace import Trace

CLIENTS, LABELS = 6, 3


class NumberedSettings(StreamSettings, ChangingSettings):
    pass


class Numbered(TraceSource):
    """Two numbers of 0 or 1 for each sample, which say whether a feature is above 0."""

    Settings = NumberedSettings
    settings: NumberedSettings

    def build(self, context: TraceContext) -> Trace:
        rng = context.streams.generator("numbered")
        labels = np.repeat(np.arange(LABELS), 60)
        features = rng.standard_normal((len(labels), 4)).astype(np.float32)
        numbers = (features[:, :2] > 0).astype(np.float32)
        train, test = stratified_split(labels, 0.3, rng)
        windows = num_windows(self.settings, context.rounds)
        trace = draw_trace(
            ImageSet(features, 1.0, labels, LABELS, train, test, numbers=numbers),
            (np.full((CLIENTS, LABELS), 1 / LABELS) for _ in range(windows)),
            num_clients=CLIENTS,
            num_windows=windows,
            settings=self.settings,
            streams=context.streams,
            scratch=context.scratch,
        )
        return self.changed(trace, context)
