from __future__ import annotations

import numpy as np
import pytest

from emulator.errors import ConfigurationError
from traces.partitions import Samples
from traces.partitions.column import ByColumn, ByColumnSettings

SAMPLES = Samples(np.array([0, 1, 0, 1]), {"zone": np.array([31, -5, 31, 7]), "camera": np.array([*"bbab"])})


def by(column: str, num_clients: int | None = None, samples: Samples = SAMPLES) -> list[int]:
    partition = ByColumn(ByColumnSettings(column=column))
    return partition.divide(samples, num_clients, np.random.default_rng(0)).tolist()


def test_each_value_is_a_client_in_ascending_order() -> None:
    assert by("zone") == [2, 0, 2, 1]
    assert by("camera") == by("camera", 2) == [1, 1, 0, 1]


def test_another_number_of_clients_than_that_of_values_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="column = 'zone': has 3 values, each of which is a client"):
        by("zone", 4)


def test_a_column_that_is_not_there_is_refused_with_the_choices() -> None:
    with pytest.raises(ConfigurationError, match="column = 'time': no such column; choices: camera, zone"):
        by("time")
    with pytest.raises(ConfigurationError, match="the data have no columns, only images and labels; choose"):
        by("time", 2, Samples(SAMPLES.labels))
