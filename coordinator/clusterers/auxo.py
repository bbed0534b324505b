"""Auxo: a cluster is split in two at given rounds, by the sides that its participants' updates have taken.

Liu et al. 2023, in the form of the example in FedScale's repository, whose constants are not the paper's.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
from pydantic import Field, field_validator

from coordinator.assignment import Assignment
from coordinator.clusterers.affinities import Affinities, centred
from coordinator.clusterers.base import Clusterer
from coordinator.view import RunFacts, View
from emulator.arrays import Ints
from emulator.counts import exact
from emulator.errors import ConfigurationError
from emulator.numbers import Count, CountOrZero, PositiveFactor, PositiveShare, Share, TwoOrMore
from emulator.plugins import Settings


class AuxoSettings(Settings):
    """When clusters are split, and how affinities grow; the defaults are FedScale's."""

    split_rounds: tuple[Count, ...] | Literal["automatic"] = Field(
        (50, 100),
        description="a cluster is split in these of its own clustering rounds, which have at least "
        'min_participants updates; a child inherits their number; or "automatic"',
    )
    min_expected: CountOrZero = Field(
        100, description="automatic: its members x the share of all clients that sent updates reach this"
    )
    min_participants: TwoOrMore = Field(5, description="fewer updates of a cluster in a round change nothing")
    gradient_share: PositiveShare = Field(0.1, description="updates are compared by this last part of them")
    base_reward: PositiveFactor = Field(5.0, description="the reward of an update at its cluster's centre")
    explore: Share = Field(0.01, description="probability that a client goes to a random cluster")
    explore_decay: Share = Field(0.99, description="factor of `explore` after each client's decision")

    @field_validator("split_rounds", mode="before")
    @classmethod
    def _are_rounds_or_automatic(cls, value: Any) -> Any:
        if value != "automatic" and not (isinstance(value, list | tuple) and 1 <= len(value) <= 9):
            raise ValueError('must be a list of 1 to 9 rounds, each of which splits clusters, or "automatic"')
        return value


class Auxo(Clusterer):
    """Splits clusters; each client goes to that of largest affinity, to whose centre its updates were near.

    Only participants are moved, and at a split all clients; nothing looks for drift. It needs whole rounds:
    updates are compared as if all began at one model, and `split_rounds` count server steps.

    Source: Liu et al. 2023, "Auxo", in the form of the example in FedScale's repository.

    >>> from types import SimpleNamespace
    >>> from emulator.messages import ArrayUpdates
    >>> deltas, ones = np.array([[1], [1.5], [-1], [-1.5]], dtype=np.float32), np.ones(4, dtype=np.int64)
    >>> view = SimpleNamespace(
    ...     assignment=None,
    ...     num_clients=4,
    ...     holding=ones > 0,
    ...     num_parameters=1,
    ...     model_ids=ones[:1],
    ...     members=0 * ones[:, None],
    ...     updates=ArrayUpdates(np.arange(4), ones, ones, ones, deltas),
    ...     initial=lambda number: np.zeros(1, dtype=np.float32),
    ...     rng=lambda purpose, *key: np.random.default_rng(0),
    ... )
    >>> auxo = Auxo(AuxoSettings(split_rounds=(1,), min_participants=4))
    >>> together = auxo.on_data(view)
    >>> auxo.on_updates(view).members.ravel().tolist()
    [0, 0, 1, 1]
    """

    Settings = AuxoSettings
    settings: AuxoSettings
    needs_whole_rounds = True
    reads_updates = True
    state_fields = ("_affinities",)

    def __init__(self, settings: AuxoSettings) -> None:
        super().__init__(settings)
        self._affinities = Affinities(0, settings.explore)

    @property
    def watches_data(self) -> bool:
        return False

    def check_run(self, run: RunFacts) -> None:
        named, most = self.settings.split_rounds, run.participants
        if not isinstance(named, str):
            run.refuse_late_round("clusterer.split_rounds", max(named))
        for key in ("min_participants", *(["min_expected"] if isinstance(named, str) else [])):
            if (value := getattr(self.settings, key)) > most:
                rule = f"must not be above round.participants = {most}, or no cluster is ever split"
                raise ConfigurationError(f"clusterer.{key} = {value}: {rule}")

    def on_data(self, view: View) -> Assignment | None:
        if view.assignment is not None:
            return None
        self._affinities = Affinities(view.num_clients, self.settings.explore)
        return Assignment.fresh(np.zeros(view.num_clients, dtype=np.int64), 1, view.initial(0))

    def on_joined(self, view: View) -> Assignment | None:
        self._affinities.forget(view.joined)
        return super().on_joined(view)

    def on_updates(self, view: View) -> Assignment | None:
        assert view.updates is not None
        settings, updates, affinities = self.settings, view.updates, self._affinities
        usable, end = updates.num_samples > 0, view.num_parameters
        gradients = updates.rows(slice(end - max(1, math.floor(exact(settings.gradient_share) * end)), end))
        last = math.inf if isinstance(settings.split_rounds, str) else max(settings.split_rounds) + 1
        num_updated = len(np.unique(updates.client[usable]))
        before, members, parents = len(view.model_ids), view.members[:, 0].copy(), []
        for row, model in enumerate(view.model_ids.tolist()):
            rows = np.flatnonzero(usable & (updates.model == model))
            if len(rows) < settings.min_participants:
                continue
            clients, points = updates.client[rows], centred(gradients[rows])
            affinities.rounds[row] += 1
            if affinities.rounds[row] <= last:
                affinities.take_sides(row, clients, points, view.rng("sides", row))
            if not affinities.reward(row, clients, points, settings.base_reward):
                continue
            if self._is_to_split(row, np.flatnonzero(members == row), num_updated, int(view.holding.sum())):
                affinities.split(row)
                parents.append(row)
                clients = np.flatnonzero(view.holding)
            members[clients] = affinities.decide(clients, settings.explore_decay, view.rng("decisions", row))
        if not parents and np.array_equal(members, view.members[:, 0]):
            return None
        copies, none = np.eye(before)[[*range(before), *parents]], np.zeros((0, 0), dtype=np.float32)
        return Assignment(copies, none, successor=np.arange(before), members=members[:, None])

    def _is_to_split(self, row: int, inside: Ints, num_updated: int, num_clients: int) -> bool:
        """Whether the cluster `row` of members `inside` (n,) is split, if `num_updated` clients took part."""
        settings, affinities = self.settings, self._affinities
        if not isinstance(settings.split_rounds, str):
            return int(affinities.rounds[row]) in settings.split_rounds
        reached = len(inside) * num_updated >= settings.min_expected * num_clients
        return reached and affinities.divides(row, inside, num_clients)
