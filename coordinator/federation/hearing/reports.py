"""The clients' last reports about their data, and the clients with new data not yet checked for drift."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from coordinator.detectors import Detector
from emulator.arrays import Bools, Floats, Ints
from emulator.ports import Availability
from emulator.storage.state_tree import Tree
from emulator.storage.stateful import Stateful


class Reports(Stateful):
    """The last reports, and which clients have news: data that have changed since they were last checked.

    `latest` (N, D): each client's last reported representation, NaN = never reported, or forgotten since.

    `among` (n,), ids ascending, restricts a query to the clients that are followed; None: all are. The others
    keep their news.
    """

    state_fields = ("latest", "_due_s")

    def __init__(self, num_clients: int, size: int) -> None:
        # A broadcast NaN takes no memory before the first report.
        self.latest: Floats = np.broadcast_to(np.float64(np.nan), (num_clients, size))
        # When a client with news, found offline, next comes online; -inf = not looked up since its data
        # changed; inf = no news.
        self._due_s = np.full(num_clients, np.inf)

    def state(self) -> dict[str, Tree]:
        """The state, in which `latest` is None before the first report."""
        return {**super().state(), "latest": self.latest if self.latest.flags.writeable else None}

    def restore(self, state: Mapping[str, Tree]) -> None:
        super().restore({**state, "latest": self.latest if state["latest"] is None else state["latest"]})

    def data_changed(self, ids: Ints) -> None:
        """Mark the data of these clients as changed: they have news until they are checked."""
        self._due_s[ids] = -np.inf

    def forget(self, ids: Ints) -> None:
        """Forget the reports and the news of these clients, as if they had never been."""
        self._due_s[ids] = np.inf
        if self.latest.flags.writeable:
            self.latest[ids] = np.nan

    def all_with_news(self, among: Ints | None = None) -> Ints:
        """Ids, ascending, of the clients that have news."""
        has_news = self._due_s < np.inf
        return np.flatnonzero(has_news) if among is None else among[has_news[among]]

    def checked_in(self, now_s: float) -> tuple[Ints, Floats]:
        """The clients that `online_with_news` found offline, and that came online before `now_s`.

        Their data have not changed since then. Returns their ids (n,), ascending, and the instants (n,) at
        which they came online.
        """
        ids = np.flatnonzero((self._due_s > -np.inf) & (self._due_s < now_s))
        return ids, self._due_s[ids]

    def online_with_news(self, availability: Availability, now_s: float, among: Ints | None = None) -> Ints:
        """Ids, ascending, of the clients that have news and are online; `now_s` must not decrease.

        A client found offline is not looked up again before it comes online.
        """
        if among is None:
            due = np.flatnonzero(self._due_s <= now_s)
        else:
            followed = np.zeros(len(self._due_s), dtype=bool)
            followed[among] = True
            # Clients that are not followed any more do not check in.
            self._due_s[~followed & (self._due_s < np.inf)] = -np.inf
            due = among[self._due_s[among] <= now_s]
        if len(due) == 0:
            return due
        online = availability.online(due, now_s)
        offline = due[~online]
        if len(offline) > 0:
            # A client that never comes online again has no news from now on: the instant is inf.
            self._due_s[offline] = availability.next_online_s(offline, now_s)
        return due[online]

    def taken(self, ids: Ints) -> None:
        """Mark these clients as checked: they have no news any more."""
        self._due_s[ids] = np.inf

    def hear(
        self, ids: Ints, signal: Floats, detectors: Mapping[str, Detector]
    ) -> tuple[Ints, dict[str, Bools], Ints]:
        """Evaluate `detectors` on the `signal` (n, D) that clients `ids` (n,) measure, and store the reports.

        A client reports if a detector finds it drifted since its last report, or if it has never reported.
        Returns the ids of the reporting clients, for each detector (N,) which clients drifted, and the ids of
        those that were tested; a client that has never reported counts as drifted, untested.
        """
        if len(ids) == 0:
            no_drift = np.broadcast_to(np.False_, len(self.latest))
            return ids, dict.fromkeys(detectors, no_drift), ids
        last = self.latest[ids]
        never: Bools = np.asarray(np.isnan(last).any(axis=1))
        known = slice(None) if not never.any() else np.flatnonzero(~never)
        reports = never.copy()
        drift = {}
        for name, detector in detectors.items():
            drifted: Bools = np.array(never)
            if not never.all():
                drifted[known] = detector.detect(ids[known], signal[known], last[known])
            drift[name] = np.zeros(len(self.latest), dtype=bool)
            drift[name][ids[drifted]] = True
            reports |= drifted
        self.replace(ids[reports], signal[reports])
        return ids[reports], drift, ids[known]

    def replace(self, ids: Ints, signal: Floats) -> None:
        """Store `signal` (n, D) as the reports of clients `ids` (n,)."""
        if not self.latest.flags.writeable:
            self.latest = self.latest.copy()
        self.latest[ids] = signal
