from __future__ import annotations

from typing import Any

import pytest

from emulator.errors import ConfigurationError
from experiments.results.reading.deciding import run_identities
from tests.experiments.small import small, small_table

NUMBER = {"clusterer.max_clusters": [4, 2, 3]}


def with_tune(tune: dict[str, Any], number: dict[str, Any]) -> dict[str, Any]:
    first, second = small_table()["arm"]
    return small_table(tune=tune, arm=[first, {**second, "tune": number}])


def test_values_that_are_tried_are_read_ascending_and_are_not_recorded() -> None:
    experiment = small(**with_tune({"learning_rate": [0.2, 0.05]}, NUMBER))
    assert experiment.tune is not None
    assert experiment.tune.learning_rate == (0.05, 0.2)
    assert experiment.find_arm("fielding").tune == {"clusterer.max_clusters": (4, 2, 3)}
    assert "tune" not in experiment.to_toml()
    assert run_identities(experiment.resolved()) == run_identities(small().resolved())


@pytest.mark.parametrize(
    ("tune", "number", "rule"),
    [
        ({"learning_rate": []}, {}, "tune.learning_rate"),
        ({"learning_rate": [1, 2, 3, 4, 5, 6]}, {}, "tune.learning_rate"),
        ({"learning_rate": [0.1, 0.1]}, {}, "must be different"),
        ({"learning_rate": [True]}, {}, "tune.learning_rate.0 = True: must be a number"),
        ({"learning_rate": [float("inf")]}, {}, "should be a finite number"),
        ({"learning_rate": ["fast"]}, {}, "= 'fast': must be a number"),
        ({"learning_rate": [0.1], "use": {}}, {}, "did you mean 'uses'?"),
        ({"learning_rate": [0.1], "uses": {"tuned": {"again": []}}}, {}, "tune.uses.tuned.again"),
        ({"learning_rate": [0.1]}, {"a": [1], "b": [2]}, "arm.fielding.tune"),
    ],
)
def test_other_values_are_refused_in_one_line(
    tune: dict[str, Any], number: dict[str, Any], rule: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        small(**with_tune(tune, number))
    assert rule in str(refused.value)
    assert "\n" not in str(refused.value)
