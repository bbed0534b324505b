from __future__ import annotations

import numpy as np
import pytest

from device_profiles import Fleet
from device_profiles.fleet import SOURCES, match_columns
from emulator.errors import InputError


def fleet(**changed: list[float]) -> Fleet:
    columns = {
        "seconds_per_sample": [0.1, 0.2],
        "download_bytes_per_s": [10.0, 20.0],
        "upload_bytes_per_s": [1.0, 2.0],
        "latency_s": [0.0, 0.5],
    }
    return Fleet(**{name: np.array(values) for name, values in (columns | changed).items()})


def test_taking_rows_gives_those_devices_and_repeats_them() -> None:
    taken = fleet().take(np.array([1, 0, 1]))
    assert len(taken) == 3
    assert taken.seconds_per_sample.tolist() == [0.2, 0.1, 0.2]
    assert taken.latency_s.tolist() == [0.5, 0.0, 0.5]


def test_quantiles_are_those_of_each_column() -> None:
    quantiles = fleet().quantiles([0.0, 0.5, 1.0])
    assert quantiles["download_bytes_per_s"].tolist() == [10.0, 15.0, 20.0]
    assert quantiles["latency_s"].tolist() == [0.0, 0.25, 0.5]


@pytest.mark.parametrize(
    ("column", "values", "rule"),
    [
        ("seconds_per_sample", [0.1, 0.0], "is 0 for client 1; it must lie between 1e-15 and 1e"),
        ("upload_bytes_per_s", [np.inf, 1.0], "upload_bytes_per_s is inf for client 0"),
        ("latency_s", [0.0, -1.0], "latency_s is -1 for client 1; it must lie between 0 and 1e"),
        ("latency_s", [0.0, 1e10], "latency_s is 1e.10 for client 1; it must lie between 0 and 1e"),
        ("download_bytes_per_s", [np.nan, 1.0], "download_bytes_per_s is nan for client 0"),
        ("latency_s", [0.0], r"latency_s has shape \(1,\); all must be"),
    ],
)
def test_a_fleet_that_no_clock_could_run_is_refused(column: str, values: list[float], rule: str) -> None:
    with pytest.raises(InputError, match=rule):
        fleet(**{column: values})


def test_one_bandwidth_gives_both_directions_and_latency_may_be_left_out() -> None:
    assert match_columns(["compute_ms_per_sample", "bandwidth_kibit_per_s"]) == {
        "seconds_per_sample": "compute_ms_per_sample",
        "download_bytes_per_s": "bandwidth_kibit_per_s",
        "upload_bytes_per_s": "bandwidth_kibit_per_s",
    }


def test_a_mixture_draws_what_it_has_always_given_in_the_order_that_it_always_had() -> None:
    assert list(SOURCES)[:10] == [
        "seconds_per_sample",
        "download_bytes_per_s",
        "upload_bytes_per_s",
        "latency_s",
        "compute_ms_per_sample",
        "download_kbps",
        "upload_kbps",
        "download_kibit_per_s",
        "upload_kibit_per_s",
        "bandwidth_kibit_per_s",
    ]


@pytest.mark.parametrize("device", [[0, 2], [-1, 0], [0]])
def test_a_device_that_has_no_id_is_refused(device: list[int]) -> None:
    columns = fleet().columns()
    with pytest.raises(InputError, match="fleet column device must have one of 2 rows for each client"):
        Fleet(**columns, device=np.array(device), ids=["a", "b"])
