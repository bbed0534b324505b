"""Numbers of tasks by cluster."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from coordinator.schedules.by_cluster import ByCluster, ByClusterSettings
from coordinator.view import RunFacts
from emulator.errors import ConfigurationError


def test_only_the_named_numbers_of_the_named_clusters_change() -> None:
    schedule = ByCluster(
        ByClusterSettings(clusters={"7": {"local_steps": 5}, "9": {"local_steps": 6, "adam.beta1": 0.5}})
    )
    assert schedule.sets == {"local_steps", "adam.beta1"}
    base = {"local_steps": np.full(4, 20.0), "adam.beta1": np.full(4, 0.9), "learning_rate": np.ones(4)}
    view: Any = SimpleNamespace(cluster_labels=np.array([3, 9, 7]))
    settings = schedule.task_settings(np.arange(4), np.array([0, 1, 2, 1]), base, view)
    assert {name: column.tolist() for name, column in settings.items()} == {
        "local_steps": [20, 6, 5, 6],
        "adam.beta1": [0.9, 0.5, 0.9, 0.5],
    }


@pytest.mark.parametrize(
    ("clusters", "problem"),
    [
        ({}, "at least 1 item"),
        ({"first": {"learning_rate": 1}}, "'first': must be the number of a cluster, from 0 on"),
        ({"1": {}}, "1 = {}: sets nothing"),
        ({"1": {"local_steps": 2.5}}, r"1.local_steps = 2.5: must be a whole number"),
        ({"1": {"learning_rate": 0}}, "1.learning_rate = 0: must be above 0"),
        ({"1": {"local_steps": 1e12}}, "must be a whole number from 1 to 100,000"),
        ({"01": {"learning_rate": 1}}, "'01': must be the number of a cluster"),
    ],
)
def test_what_sets_nothing_or_no_number_is_refused(clusters: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        ByClusterSettings(clusters=clusters)


def test_a_cluster_that_never_is_there_is_refused() -> None:
    schedule = ByCluster(ByClusterSettings(clusters={"0": {"local_steps": 2}, "3": {"local_steps": 5}}))
    for clusters in (None, 4):
        schedule.check_run(RunFacts(8, rounds=5, participants=2, clusters=clusters))
    with pytest.raises(ConfigurationError, match=r"clusters\.3: there is no such cluster; .* are 0 to 2$"):
        schedule.check_run(RunFacts(8, rounds=5, participants=2, clusters=3))
