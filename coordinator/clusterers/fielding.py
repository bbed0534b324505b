"""Fielding: drifted clients move one by one; all clients are re-clustered only when a trigger fires.

Fielding, algorithms 1-3, and 4 with `partition = "kcenter"`, the trigger "pairwise" and `average =
"every_drift"`. The listing of algorithm 2 recomputes centres while clients move; the paper's prose holds them
still. We follow the prose, so the order of clients does not matter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Field, model_validator

from coordinator.assignment import Assignment
from coordinator.clusterers.base import Clusterer
from coordinator.clusterers.partition import (
    Partition,
    PartitionSettings,
    centers_of,
    nearest,
    partition_among,
)
from coordinator.distances import comparable
from coordinator.triggers import TRIGGERS, Moved, ReclusteringTrigger
from coordinator.triggers.centre_shift import CentreShiftSettings
from coordinator.view import RunFacts, View
from emulator.arrays import Floats
from emulator.messages import TaskMetric
from emulator.plugins import ChoiceOf, Chosen


def _centre_shift_by_default(value: Any) -> Any:
    """A table without a kind is one of `centre_shift`, so that one of its settings can be set alone."""
    return {"kind": "centre_shift", **value} if isinstance(value, Mapping) else value


class FieldingSettings(PartitionSettings):
    """When all clients are re-clustered, and what becomes of the models."""

    trigger: Annotated[
        Chosen[ReclusteringTrigger], ChoiceOf(TRIGGERS), BeforeValidator(_centre_shift_by_default)
    ] = Field(
        "centre_shift",
        validate_default=True,
        description="when all clients are re-clustered; see `driftscale parts trigger`",
    )
    average: Literal["reclustering", "every_drift"] = Field(
        "reclustering",
        description="when a model becomes the mean of its members' models: at a re-clustering, of the models "
        "of the clusters that they moved to; or at every drift, of the models that they had before",
    )
    reclustered_init: Literal["mean", "initial"] = Field(
        "mean",
        description="what a model starts from at a re-clustering: the mean of its members' models, as "
        "published, or the initial model, which needs whole rounds",
    )
    follow: Literal["drifted", "participants"] = Field(
        "drifted",
        description="clients that report a drift: all that drifted, or only those whose update arrived in "
        "the round before, as in Auxo and FedAC; of the others the last report counts",
    )

    @model_validator(mode="before")
    @classmethod
    def _refuse_settings_of_the_trigger(cls, values: Any) -> Any:
        for key in CentreShiftSettings.model_fields:
            if isinstance(values, Mapping) and key in values:
                trigger = values.get("trigger", "centre_shift")
                kind = trigger.get("kind", "centre_shift") if isinstance(trigger, Mapping) else trigger
                if kind != "centre_shift":
                    raise ValueError(
                        f"{key} is a setting of the trigger centre_shift, and the trigger is {kind!r}, which "
                        f"has its own; see `driftscale parts trigger`"
                    )
                value = values[key] if isinstance(values[key], int | float) else f'"{values[key]}"'
                raise ValueError(
                    f"{key} is a setting of the trigger; write "
                    f'trigger = {{ kind = "centre_shift", {key} = {value} }}, or trigger.{key} = {value}'
                )
        return values


class Fielding(Clusterer):
    """Drifted clients move to the nearest centre; all clients are re-clustered when a trigger fires.

    A client that joins counts as drifted: it moves to the nearest centre, and adds to the shift that the
    trigger sees, but has no part in a mean of the models that members had. A client that leaves takes its
    report with it: the centre of its cluster is the mean of the others at once, which is no shift; a cluster
    that all have left keeps its centre and its model.

    It needs whole rounds if its trigger does. State: the present centres (k, D), those of the last global
    clustering, and that of the trigger.

    Source: Fielding, algorithms 1 to 3; algorithm 4 by `partition`, `trigger` and `average`.

    Client 0 drifts from the first label to the second and moves to that cluster, whose centre stays where it
    was:

    >>> from types import SimpleNamespace
    >>> view = SimpleNamespace(
    ...     assignment=None,
    ...     reports=np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]),
    ...     distance="l1",
    ...     drifted=np.array([0]),
    ...     holding=np.ones(3, dtype=bool),
    ...     joined=[],
    ...     left=[],
    ...     rebased=False,
    ...     rng=lambda purpose: np.random.default_rng(0),
    ...     initial=lambda number: np.zeros(1, dtype=np.float32),
    ...     log_trigger=lambda trigger: print("shift", trigger.shift, "fired", trigger.fired),
    ... )
    >>> fielding = Fielding(FieldingSettings())
    >>> view.assignment = fielding.on_data(view)
    >>> view.assignment.members.ravel().tolist()
    [0, 0, 1]
    >>> view.reports[0] = [0.0, 1.0]
    >>> fielding.on_data(view).members.ravel().tolist()
    shift 0.0 fired False
    [1, 0, 1]
    """

    Settings = FieldingSettings
    settings: FieldingSettings
    late_modules = (*Clusterer.late_modules, "scipy.optimize")
    state_fields = ("_centers", "_last_global", "_trigger")
    needs_reports = True

    def __init__(self, settings: FieldingSettings) -> None:
        super().__init__(settings)
        self._centers: Floats | None = None
        self._last_global: Floats | None = None
        self._trigger = settings.trigger.build()
        # Updates of visits that began before a cold start would bring back what it forgets.
        is_cold = settings.reclustered_init == "initial"
        self.needs_whole_rounds = self._trigger.needs_whole_rounds or is_cold

    def check_run(self, run: RunFacts) -> None:
        self._trigger.check_run(run)

    def models_changed(self, assignment: Assignment) -> None:
        self._trigger.models_changed(assignment)

    @property
    def needs(self) -> frozenset[TaskMetric]:
        return self._trigger.needs

    @property
    def follows_participants(self) -> bool:
        return self.settings.follow == "participants"

    def on_data(self, view: View) -> Assignment | None:
        if self._centers is None or self._last_global is None or view.assignment is None:
            clustering = self._partition(view)
            return Assignment.fresh(
                clustering.members, len(clustering.centers), view.initial(0), fitted=clustering.fitted
            )
        distance, drifted = self.settings.distance or view.distance, view.drifted
        before = view.assignment.lane_of_client.copy()
        if len(view.joined) > 0:
            before[view.joined] = -1
            drifted = np.union1d(drifted, view.joined)
        if len(view.left) > 0:
            self._centers = centers_of(comparable(view.reports, distance), before, self._centers, distance)
        if len(drifted) == 0:
            return None
        reports = comparable(view.reports, distance)
        if view.rebased:
            # The reports of other models say nothing about where these clusters are now.
            self._centers = self._last_global = centers_of(reports, before, self._centers, distance)
        moved = before.copy()
        moved[drifted] = nearest(reports[drifted], self._centers, distance)
        centers = centers_of(reports, moved, self._centers, distance)
        held = slice(None) if view.holding.all() else view.holding
        trigger = self._trigger.evaluate(
            Moved(reports[held], moved[held], centers, self._centers, self._last_global, distance, view.rng)
        )
        view.log_trigger(trigger)
        # Algorithm 2 averages the models of the clusters that clients have moved to, algorithm 4 those that
        # they had.
        every_drift = self.settings.average == "every_drift"
        if trigger.fired:
            clustering = self._partition(view)
            reclustered = Assignment.reclustered_from(
                before if every_drift else moved,
                clustering.members,
                len(centers),
                len(clustering.centers),
                clustering.fitted,
            )
            is_cold = self.settings.reclustered_init == "initial"
            return reclustered.anew(view.initial(0)) if is_cold else reclustered
        self._centers = centers
        if np.array_equal(moved, before):
            return None
        if every_drift:
            return Assignment.averaged(before, moved, len(centers))
        return Assignment.moved(moved, len(centers))

    @property
    def reads_updates(self) -> bool:
        return super().reads_updates or self._trigger.reads_updates

    def on_updates(self, view: View) -> None:
        assert view.updates is not None
        self._trigger.observe(view.updates)

    def _partition(self, view: View) -> Partition:
        generator, distance = view.rng("clustering"), self.settings.distance or view.distance
        clustering = partition_among(view.reports, view.holding, self.settings, generator, distance)
        self._centers = self._last_global = clustering.centers
        return clustering
