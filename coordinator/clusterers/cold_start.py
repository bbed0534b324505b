"""Cold start: clients train the initial model, and are grouped by the direction of their update (FlexCFL)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pydantic import Field

from coordinator.assignment import Assignment
from coordinator.clusterers.directions import grouped_by_direction, mean_of_each, nearest_direction
from coordinator.view import RunFacts, View
from emulator.arrays import NO_IDS, Floats, Ints
from emulator.errors import ConfigurationError
from emulator.numbers import Count, LocalSteps, ModelCount
from emulator.plugins import Settings

AT_ONCE = 256
"""Clients of one training request, which bounds the memory of their updates."""


class ColdStartSettings(Settings):
    """How many groups there are, and how clients are trained before they are grouped."""

    num_groups: ModelCount = Field(3, description="groups, at most as many as clients", examples=[4])
    sampled_per_group: Count = Field(
        20, description="clients per group, drawn at random, whose updates make the groups"
    )
    pretrain_steps: LocalSteps = Field(
        50, description="local steps for which a client trains the initial model before it is grouped"
    )

    def check_run(self, run: RunFacts) -> None:
        """Raises ConfigurationError if there are more groups than clients."""
        if self.num_groups > run.num_clients:
            raise ConfigurationError(
                f"clusterer.num_groups = {self.num_groups}: must be at most {run.num_clients}, the number of "
                f"clients"
            )


@dataclass(frozen=True)
class ColdStart:
    """The clients (n,) that had a cold start, the group of each, and the directions (k, P) of all groups.

    `directions` are the mean updates of the clients that the groups were made from, and None if there are no
    groups yet; `made` tells whether this cold start has made them.
    """

    clients: Ints
    groups: Ints
    directions: Floats | None
    made: bool

    def assignment(self, view: View) -> Assignment | None:
        """These clients are in their groups, and all others stay where they are; None if nobody moves.

        Before there are groups there is a single model. Groups that have been made now start from the mean
        of the models that their clients trained, and the other clients are put into the largest one, the
        lowest of equals.
        """
        if self.directions is None:
            together = np.zeros(view.num_clients, dtype=np.int64)
            return Assignment.fresh(together, 1, view.initial(0)) if view.assignment is None else None
        if self.made:
            return self._of_new_groups(self.directions, view)
        members = view.members[:, 0].copy()
        members[self.clients] = self.groups
        if np.array_equal(members, view.members[:, 0]):
            return None
        return Assignment.moved(members, len(view.model_ids))

    def _of_new_groups(self, directions: Floats, view: View) -> Assignment:
        old, k, largest = len(view.model_ids), len(directions), np.bincount(self.groups).argmax()
        models = np.repeat(view.initial(0)[None], k, axis=0).astype(np.float64)
        models[:, : directions.shape[1]] += directions  # statistics of batch norm are the initial ones
        members = np.full(view.num_clients, largest)
        members[self.clients] = self.groups
        return Assignment(
            mixing=np.hstack([np.zeros((k, old)), np.eye(k)]),
            extra=models.astype(np.float32),
            successor=np.full(old, largest),
            members=members[:, None],
            reclustered=old > 0,
        )


NOT_YET = ColdStart(NO_IDS, NO_IDS, None, made=False)
"""There are no groups yet: too few clients responded."""


def cold_start(
    waiting: Ints, directions: Floats | None, view: View, settings: ColdStartSettings
) -> ColdStart:
    """Group those of the clients `waiting` (n,), ascending, that are online by `directions` (k, Q).

    Each trains the initial model, and joins the group whose direction is nearest to that of its update.

    If there are no directions yet, a random sample of the clients is trained first, and those of them that
    are online are grouped with each other; if they are fewer than the groups, there are no groups yet, and
    the next cold start tries again.
    """
    initial, steps = view.initial(0), settings.pretrain_steps
    clients, groups, made = [NO_IDS], [NO_IDS], directions is None
    if directions is None:
        num_groups = settings.num_groups
        most = min(num_groups * settings.sampled_per_group, len(waiting))
        if most < num_groups:
            return NOT_YET
        sample = np.sort(view.rng("cold start").choice(waiting, most, replace=False))
        updates = view.train(sample, initial, steps)
        if len(updates) < num_groups:
            return NOT_YET
        found = grouped_by_direction(updates.gram(), num_groups, view.rng("clustering"))
        directions = updates.weighted_sum(mean_of_each(found))
        clients, groups, waiting = [updates.client], [found], np.setdiff1d(waiting, sample)
    for start in range(0, len(waiting), AT_ONCE):
        updates = view.train(waiting[start : start + AT_ONCE], initial, steps)
        clients.append(updates.client)
        groups.append(nearest_direction(updates, directions))
    return ColdStart(np.concatenate(clients), np.concatenate(groups), directions, made)
