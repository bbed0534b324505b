"""What clients find at their visits in the samples that have arrived: the detectors that watch arrivals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from coordinator.detectors import Detector
from coordinator.federation.run import Run
from emulator.arrays import Bools, Floats, Floats32, Ints
from emulator.messages import SampleRanges
from emulator.storage.stateful import Stateful


@dataclass(frozen=True)
class Checked:
    """The participants that have scored what has arrived for them.

    `clients` (n,) are their ids, ascending, `samples` (n,) how many they predicted, and `drift` has by the
    name of each detector (N,) whom it flags.
    """

    clients: Ints
    samples: Ints
    drift: Mapping[str, Bools]


class Arriving(Stateful):
    """Has participants score the model that they receive on what has arrived since their last visit.

    At its first visit that is all that a client holds. A visit counts from its dispatch on, however it ends.

    State: the data step (N,) of each client's last visit, -1 before the first; nothing without detectors.
    """

    state_fields = ("_step",)

    def __init__(self, run: Run, detectors: Mapping[str, Detector]) -> None:
        """With `detectors` that watch arrivals, by name."""
        self._run = run
        self.is_watched = bool(detectors)  # if not, nobody scores anything
        self._detectors = detectors
        self._step: Ints = np.full(run.stream.num_clients if detectors else 0, -1)

    def forget(self, clients: Ints) -> None:
        """Forget the visits of clients (n,) that hold no data any more."""
        if self.is_watched:
            self._step[clients] = -1

    def check(self, clients: Ints, row: Ints, models: Floats32, shift: Ints) -> Checked:
        """Let `clients` (n,), ascending, score the model in their `row` (n,) of `models` (M, P).

        They read the table rows of their samples with `shift` (n,) added.
        """
        samples = self._arrived(clients).shifted(shift)
        counts = samples.counts()
        some = np.flatnonzero(counts > 0)
        clients, row, samples, counts = clients[some], row[some], samples.take(some), counts[some]
        correct = np.zeros(len(clients))
        with self._run.meter("score_s"):
            for model in np.unique(row).tolist():
                own = np.flatnonzero(row == model)
                scores = self._run.executor.score(
                    models[model : model + 1], samples.take(own), frozenset({"correct"})
                )
                assert scores.correct is not None
                correct[own] = scores.correct[:, 0]
        signal: Floats = np.stack([correct, counts], axis=1)
        drift = {}
        with self._run.meter("cluster_s"):
            for name, detector in self._detectors.items():
                drift[name] = np.zeros(self._run.stream.num_clients, dtype=bool)
                if len(clients) > 0:
                    drift[name][clients] = detector.detect(clients, signal, None)
        return Checked(clients, counts, drift)

    def _arrived(self, clients: Ints) -> SampleRanges:
        """The samples that have arrived for each of `clients` (n,) since its last visit, which is now."""
        since, step = self._step[clients] + 1, self._run.stream.step
        self._step[clients] = step
        first, last = np.zeros_like(clients), np.zeros_like(clients)
        for begin in np.unique(since).tolist():
            rows = np.flatnonzero(since == begin)
            arrived = self._run.stream.arrived(clients[rows], begin, step)
            first[rows], last[rows] = arrived.first, arrived.last
        return SampleRanges.one_each(first, last)
