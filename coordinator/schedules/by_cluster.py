"""The schedule that gives the tasks of each cluster numbers of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import numpy as np
from pydantic import Field, field_validator

from coordinator.schedules.base import TASK_SETTINGS, Schedule
from coordinator.view import RunFacts, View
from emulator.arrays import Floats, Ints
from emulator.errors import ConfigurationError, naming
from emulator.numbers import LARGEST, MOST_STEPS, Number
from emulator.plugins import Settings

WHOLE = frozenset({"batch_size", "local_steps"})
"""The numbers of a task that are whole."""


class ByClusterSettings(Settings):
    """The numbers of the tasks of each cluster."""

    clusters: dict[str, dict[str, Annotated[float, Number(ge=0, le=LARGEST)]]] = Field(
        min_length=1,
        description="by the number of a cluster: learning_rate, local_steps, batch_size, or a number that a "
        "local rule reads, as `adam.beta1`; all others stay as they are",
        examples=[{"2": {"adam.beta1": 0.6}}],
    )

    @field_validator("clusters")
    @classmethod
    def _clusters_have_numbers(cls, clusters: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
        for cluster, numbers in clusters.items():
            if not (cluster.isascii() and cluster.isdecimal() and str(int(cluster)) == cluster):
                raise ValueError(f"{cluster!r}: must be the number of a cluster, from 0 on")
            if not numbers:
                raise ValueError(f"{cluster} = {{}}: sets nothing; give a number, or leave it out")
            for name in WHOLE & numbers.keys():
                number = numbers[name]
                if not (float(number).is_integer() and 1 <= number <= MOST_STEPS):
                    raise ValueError(
                        f"{cluster}.{name} = {number:g}: must be a whole number from 1 to {MOST_STEPS:,}"
                    )
            if numbers.get("learning_rate") == 0:
                raise ValueError(f"{cluster}.learning_rate = 0: must be above 0")
        return clusters


class ByCluster(Schedule):
    """Sets numbers of tasks by the cluster whose model they train, named by its label.

    Labels are those of the log and of reports. Those of `drift_groups` are 0 for the clients that have not
    drifted, and then the groups.

    Source: Detect-Adapt-Overcome, section on adaptation, where a group trains with other betas of Adam. [A]

    >>> from types import SimpleNamespace
    >>> schedule = ByCluster(ByClusterSettings(clusters={"1": {"learning_rate": 0.01}}))
    >>> tasks, base = np.array([0, 1, 1]), {"learning_rate": np.full(3, 0.1)}
    >>> view = SimpleNamespace(cluster_labels=np.array([0, 1]))
    >>> schedule.task_settings(np.arange(3), tasks, base, view)["learning_rate"].tolist()
    [0.1, 0.01, 0.01]
    """

    Settings = ByClusterSettings
    settings: ByClusterSettings

    @property
    def sets(self) -> frozenset[str]:  # type: ignore[override]  # of an instance: its settings say
        return frozenset(name for numbers in self.settings.clusters.values() for name in numbers)

    def check_run(self, run: RunFacts) -> None:
        for cluster, numbers in self.settings.clusters.items():
            with naming(f"clusters.{cluster}"):
                for name in sorted(numbers.keys() - set(TASK_SETTINGS)):
                    run.check_number(name, numbers[name])
                if run.clusters is not None and int(cluster) >= run.clusters:
                    raise ConfigurationError(
                        f"there is no such cluster; in the whole run, those of this arm are "
                        f"{'0' if run.clusters == 1 else f'0 to {run.clusters - 1}'}"
                    )

    def task_settings(
        self, client: Ints, model: Ints, base: Mapping[str, Floats], view: View
    ) -> Mapping[str, Floats]:
        columns = {name: base[name].copy() for name in self.sets}
        labels = view.cluster_labels[model]
        for cluster, numbers in self.settings.clusters.items():
            of_cluster = labels == int(cluster)
            for name, number in numbers.items():
                np.copyto(columns[name], number, where=of_cluster)
        return columns
