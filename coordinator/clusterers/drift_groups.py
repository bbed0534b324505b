"""Detect-Adapt-Overcome's adaptation: clients that drifted in the same way share a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from pydantic import Field, field_validator

from coordinator.assignment import Assignment
from coordinator.clusterers.base import Clusterer
from coordinator.view import View
from emulator.arrays import Bools, Ints
from emulator.numbers import Count
from emulator.plugins import Settings


class DriftGroupsSettings(Settings):
    """The groups, and when clients move."""

    groups: dict[str, tuple[str, ...]] = Field(
        min_length=1,
        description="by group, the detectors on training whose flags lead into it; of several groups a "
        "client is in that with most detectors, the first of equals",
        examples=[{"sudden": ("jump",), "incremental": ("trend",), "both": ("jump", "trend")}],
    )
    sticky: bool = Field(
        True, description="whether a flag counts for good; if not, a client leaves a group with its flags"
    )
    after: Count = Field(
        1,
        description="how many flags of a detector count; without `sticky`, in visits in a row",
        examples=[3],
    )

    @field_validator("groups")
    @classmethod
    def _groups_differ(cls, groups: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        seen: dict[frozenset[str], str] = {}
        for name, detectors in groups.items():
            if not detectors:
                raise ValueError(f"{name} = []: must have the name of a detector")
            if len(set(detectors)) < len(detectors):
                raise ValueError(f"{name} = {list(detectors)}: has a detector twice")
            other = seen.setdefault(frozenset(detectors), name)
            if other != name:
                raise ValueError(f"{name} = {list(detectors)}: has the detectors of {other}")
        return groups


class DriftGroups(Clusterer):
    """Clients that detectors on training flag move to the group of these detectors, and train its model.

    Cluster 0 has the clients that have not drifted; the groups are clusters 1 and on, in the order of
    `groups`. A group begins as a copy of the model that most of its first members trained, and they train it
    from the next round on; as published, it would be the mean of what they had trained in this one.

    State: the flags (N, detectors) of each client that count, and which groups have begun.

    Source: Detect-Adapt-Overcome, algorithm 3, without its mixture of parameters for newcomers. [A]

    >>> from types import SimpleNamespace
    >>> groups = DriftGroups(DriftGroupsSettings(groups={"sudden": ["jump"]}))
    >>> start = SimpleNamespace(
    ...     assignment=None, num_clients=3, initial=lambda number: np.full(1, number, dtype=np.float32)
    ... )
    >>> first = groups.on_data(start)
    >>> flags = {"jump": np.array([False, False, True])}
    >>> updates = SimpleNamespace(client=np.arange(3), num_steps=np.ones(3))
    >>> moved = groups.on_updates(SimpleNamespace(members=first.members, drift=flags, updates=updates))
    >>> moved.members.ravel().tolist(), moved.mixing.tolist()  # the group is a copy of model 0
    ([0, 0, 1], [[1.0, 0.0], [1.0, 0.0]])
    """

    Settings = DriftGroupsSettings
    settings: DriftGroupsSettings
    state_fields = ("_flags", "_begun")

    def __init__(self, settings: DriftGroupsSettings) -> None:
        super().__init__(settings)
        self._names = tuple(dict.fromkeys(name for group in settings.groups.values() for name in group))
        self._flags: Ints = np.zeros((0, len(self._names)), dtype=np.int64)
        self._begun: Bools = np.zeros(len(settings.groups), dtype=bool)

    @property
    def fixed_clusters(self) -> int:
        return 1 + len(self.settings.groups)

    @property
    def watches_data(self) -> bool:
        return False

    @property
    def reads_detectors(self) -> Mapping[str, Sequence[str]]:
        return {f"groups.{name}": detectors for name, detectors in self.settings.groups.items()}

    def on_data(self, view: View) -> Assignment | None:
        if view.assignment is None:
            self._flags = np.zeros((view.num_clients, len(self._names)), dtype=np.int64)
            together = np.zeros(view.num_clients, dtype=np.int64)
            return Assignment.fresh(together, 1 + len(self._begun), view.initial(0))
        if len(view.left) > 0:
            self._flags[view.left] = 0
        return None

    def on_joined(self, view: View) -> Assignment | None:
        self._flags[view.joined] = 0
        members = view.members[:, 0].copy()
        members[view.joined] = 0
        return Assignment.moved(members, 1 + len(self._begun))

    def on_updates(self, view: View) -> Assignment | None:
        assert view.updates is not None, "there are updates"
        before = view.members[:, 0]
        trained = np.unique(view.updates.client[view.updates.num_steps > 0])
        trained = trained[before[trained] >= 0]  # others hold no data any more
        for column, name in enumerate(self._names):
            flagged = view.drift[name][trained] if name in view.drift else np.zeros(len(trained), dtype=bool)
            counted = self._flags[trained, column]
            kept = counted if self.settings.sticky else np.where(flagged, counted, 0)
            self._flags[trained, column] = np.minimum(kept + flagged, self.settings.after)
        members = before.copy()
        members[trained] = self._group_of(trained)
        if (members == before).all():
            return None
        return self._moved(before, members)

    def _group_of(self, clients: Ints) -> Ints:
        """(n,) the cluster that each of `clients` (n,) belongs to by its flags."""
        counts = self._flags[clients] >= self.settings.after
        found, detectors = np.zeros(len(clients), dtype=np.int64), np.zeros(len(clients), dtype=np.int64)
        for number, group in enumerate(self.settings.groups.values(), 1):
            columns = [self._names.index(name) for name in group]
            better = counts[:, columns].all(axis=1) & (len(group) > detectors)
            found[better], detectors[better] = number, len(group)
        return found

    def _moved(self, before: Ints, members: Ints) -> Assignment:
        """The same models with other members; groups that begin are copies."""
        mixing = np.eye(1 + len(self._begun))
        for number in range(1, len(mixing)):
            first = members == number
            if not self._begun[number - 1] and first.any():
                self._begun[number - 1] = True
                mixing[number] = np.eye(len(mixing))[np.bincount(before[first]).argmax()]
        rows = np.arange(len(mixing))
        return Assignment(mixing, np.zeros((0, 0), dtype=np.float32), rows, members[:, None])
