"""What clients have said about their data, and which of them have news that nobody has looked at yet."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from coordinator.detectors import Detector
from emulator.arrays import Bools, Floats, Ints


class Reports:
    """`latest` (N, D): each client's last reported representation, NaN = never reported."""

    def __init__(self, num_clients: int, size: int) -> None:
        self.latest: Floats = np.full((num_clients, size), np.nan)
        self._has_news = np.zeros(num_clients, dtype=bool)

    def data_changed(self, ids: Ints) -> None:
        """These clients hold other samples than before; they have news until somebody looks."""
        self._has_news[ids] = True

    def with_news(self) -> Ints:
        """Ids, ascending, of the clients that have news."""
        return np.flatnonzero(self._has_news)

    def taken(self, ids: Ints) -> None:
        """Somebody has looked at the news of these clients."""
        self._has_news[ids] = False

    def hear(
        self, ids: Ints, signal: Floats, detectors: Mapping[str, Detector]
    ) -> tuple[Ints, dict[str, Bools]]:
        """Clients `ids` measure `signal` (n, D); those that a detector finds drifted since their last report,
        or that never made one, report it. Returns their ids, and who drifted by each detector, (N,)."""
        last = self.latest[ids]
        never = np.isnan(last).any(axis=1)
        reports = never.copy()
        drift = {}
        for name, detector in detectors.items():
            found = never | detector.detect(signal, last)
            drift[name] = np.zeros(len(self.latest), dtype=bool)
            drift[name][ids[found]] = True
            reports |= found
        self.latest[ids[reports]] = signal[reports]
        return ids[reports], drift
