"""Fielding's decisions, written a second time from the specification, to be compared with the engine's.

Plain numpy; k-means and silhouettes are scikit-learn's. It is given what the clients hold, when they are
online and when rounds open, and none of a run's decisions. Shapes: N clients, reports of D numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score

from tests.golden.second_geometry import Array, distances, k_center, nearest, unit

Outcome = tuple[int, int, tuple[float, ...] | None, bool | None, Array, int]
"""Clients that checked, reports, the trigger's numbers, whether it fired, members (N,), clusters."""


class SecondFielding:
    """Algorithms 1 to 3.

    Of `facts`, `opened_s`, `step` and `completed` (ids, read if participants are followed) have an entry for
    each round, `arrives` (steps, N) says whose data change, `online` and `next_online_s` take (ids, time),
    and `measure(ids, step, round)` gives (n, D) reports at the model of the round. `losses` has the mean
    `loss_before` of each round and `order(round, n)` an order of n thresholds, both read if thresholds are
    learned. `setup` has the settings of an arm.
    """

    def __init__(self, facts: SimpleNamespace, setup: SimpleNamespace) -> None:
        self.facts, self.setup, self.distance = facts, setup, setup.distance
        self.ids = np.arange(facts.arrives.shape[1])
        self.unchecked = np.zeros(len(self.ids), dtype=bool)  # with data that they have not checked yet
        self.reports = facts.measure(self.ids, 0, 0)
        self.delta, self.fired = setup.trigger.get("delta"), False
        self.events: list[int] = []  # the rounds in which the events of a learned threshold began
        self.at_global = setup.representation.get("at") == "global"
        self.recluster()

    def rounds(self) -> Iterator[Outcome]:
        """The outcome of each round."""
        yield len(self.ids), len(self.ids), None, None, self.members, len(self.centres)
        for now in range(1, len(self.facts.step)):
            numbers, fired, drifted = None, None, np.zeros(len(self.ids), dtype=bool)
            # Clients check in during the last round, with the data of its step.
            checked, reported = np.sum([self.hear(at, now, drifted) for at in (now - 1, now)], axis=0)
            if drifted.any():
                numbers, fired = self.follow(drifted, now)
            yield checked, reported, numbers, fired, self.members, len(self.centres)

    def hear(self, at: int, now: int, drifted: Array) -> tuple[int, int]:
        """The numbers of checks and of reports, heard in round `at`; marks in `drifted` who reports."""
        facts, (before, step) = self.facts, self.facts.step[now - 1 : now + 1]
        if at == now:
            self.unchecked |= facts.arrives[step] & (step > before)
            heard = facts.online(self.ids, facts.opened_s[now]) | (self.setup.hear == "everyone")
        else:
            back = facts.next_online_s(self.ids, facts.opened_s[at]) < facts.opened_s[now]
            heard = back & self.unchecked & (self.setup.hear == "check_in") & (not self.at_global)
        if self.setup.follow == "participants":
            heard &= np.isin(self.ids, facts.completed[at - 1] if at else [])
        checks = heard & self.unchecked
        # Reports at different models are not comparable: after one, all the others report anew.
        told = self.ids[heard] if self.at_global and checks.any() else self.ids[checks]
        self.unchecked &= ~checks
        if len(told) == 0:
            return 0, 0
        fresh, (eps, name) = facts.measure(told, facts.step[at], now), self.setup.eps or (0, "l1")
        differs = np.diag(distances(fresh, self.reports[told], name)) > eps
        self.reports[told[differs]], drifted[told[differs]] = fresh[differs], True
        return checks.sum(), differs.sum()

    def follow(self, drifted: Array, now: int) -> tuple[tuple[float, ...], bool]:
        """Move the drifted clients; re-cluster all if the trigger fires. Returns its numbers, and that."""
        if self.at_global:  # nor are centres comparable: an old one is where its members are now
            self.centres = self.anchors = self.means(self.centres)
        self.members = self.members.copy()
        self.members[drifted] = nearest(self.reports[drifted], self.centres, self.distance)
        old, self.centres = self.centres, self.means(self.centres)
        kind, threshold = self.setup.trigger["kind"], self.setup.trigger.get("threshold")
        if kind == "learned":
            if not self.events or len(self.observed(self.events[-1], now)) >= 2:
                self.events.append(now)
            threshold = self.learned()
        *numbers, fired = self.pairwise() if kind == "pairwise" else self.centre_shift(old, threshold)
        if fired:
            self.recluster()
        return tuple(numbers), fired

    def observed(self, start: int, end: int) -> Array:
        """The mean losses of the rounds from `start` to before `end`, of those that have one."""
        losses = np.array(self.facts.losses[start:end])
        return losses[np.isfinite(losses)]

    def learned(self) -> float:
        """The threshold in force in the last event, from all events of its exploration."""
        trigger, last = self.setup.trigger, len(self.events) - 1
        each, thresholds = trigger["explore_events"], trigger["thresholds"]
        trials = each * len(thresholds)
        first = last - last % (trials + trigger["keep_events"])
        rows = np.repeat(self.facts.order(self.events[first], len(thresholds)), each)
        if last - first < trials:
            return float(thresholds[rows[last - first]])
        falls: list[list[float]] = [[] for _ in thresholds]
        for event, row in enumerate(rows, first):
            losses = self.observed(self.events[event], self.events[event + 1])
            falls[row].append(losses[0] - losses[-1])
        return float(thresholds[int(np.argmax(np.mean(falls, axis=1)))])

    def centre_shift(self, old: Array, threshold: float) -> tuple[float, float, float, bool]:
        trigger, new = self.setup.trigger, self.centres
        origin = {"previous": old, "last_global": self.anchors}[trigger["shift_from"]]
        shift = np.diag(distances(new, origin, self.distance)).max()
        theta = distances(new, new, self.distance)[np.triu_indices(len(new), 1)].mean()
        power = 2 if self.distance == "squared_euclidean" else 1
        return shift, theta, threshold, shift >= threshold**power * theta

    def pairwise(self) -> tuple[float, float, bool]:
        same = self.members[:, None] == self.members
        apart, delta = distances(self.reports, self.reports, self.distance)[same].max(), self.delta
        step, rule, fired = self.setup.trigger["delta"], self.setup.trigger["rule"], apart > delta
        if rule != "fixed":
            shrunk = {"mended": max, "printed": min}[rule](step, delta - step)
            self.delta = 2 * delta if fired and self.fired else shrunk
        self.fired = fired
        return apart, delta, fired

    def recluster(self) -> None:
        """The partition with the largest silhouette."""
        rows, best = unit(self.reports) if self.distance == "cosine" else self.reports, -np.inf
        between = distances(rows, rows, self.distance) * (1 - np.eye(len(rows)))
        for k in range(2, min(self.setup.max_clusters, len(rows) - 1, len(np.unique(rows, axis=0))) + 1):
            if self.setup.partition == "kcenter":
                centres = k_center(rows, k, self.distance)
            else:
                centres = KMeans(k, n_init=10, random_state=0).fit(rows).cluster_centers_
            members = nearest(rows, centres, self.distance)
            silhouette = silhouette_score(between, members, metric="precomputed")
            if silhouette > best:
                best, self.members = silhouette, members
        self.centres = self.anchors = self.means(np.empty((self.members.max() + 1, rows.shape[1])))

    def means(self, old: Array) -> Array:
        """(k, D) the centres of the present members; a cluster without members keeps its `old` one."""
        rows = unit(self.reports) if self.distance == "cosine" else self.reports
        inside = [self.members == k for k in range(len(old))]
        centres = [rows[each].mean(axis=0) if each.any() else old[k] for k, each in enumerate(inside)]
        return unit(np.array(centres)) if self.distance == "cosine" else np.array(centres)
