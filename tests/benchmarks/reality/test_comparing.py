from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchmarks.reality.comparing import (
    BAR,
    EMULATOR,
    LATENCY,
    MEAN,
    MUTANTS,
    RATE,
    error,
    predictions,
    refuse,
)
from device_profiles import Fleet
from emulator.errors import RunError

# Per client: bytes per second down and up, and latency.
FLEET = Fleet(np.ones(2), np.array([100.0, 50.0]), np.array([50.0, 20.0]), np.array([0.5, 0.0]))


def visits(*clients: int) -> pd.DataFrame:
    """Visits that transfer 100 bytes each way."""
    return pd.DataFrame({"client": clients, "download_bytes": 100.0, "upload_bytes": 100.0})


def errors(**median: float) -> dict[str, dict[str, dict[str, float]]]:
    """The errors of one fleet, `missed` by all mutants but for those given."""
    by_name = {EMULATOR: 0.01, **dict.fromkeys(MUTANTS, 0.06), **median}
    return {"alike": {name: {"median": size, "sum": 0.0, "worst": 1.0} for name, size in by_name.items()}}


def test_a_round_takes_as_long_as_its_longest_visit() -> None:
    # Client 0: 0.5 + 1 down, 0.5 + 2 up; client 1: 2 down, 5 up.
    seconds = predictions(FLEET, visits(0, 1, 0, 1), np.array([[1.0, 2.0], [9.0, 3.0]]))
    assert seconds[EMULATOR].tolist() == [9.0, 13.0]


def test_a_mutant_differs_in_one_thing() -> None:
    seconds = predictions(FLEET, visits(0, 1, 0, 1), np.array([[1.0, 2.0], [9.0, 3.0]]))
    assert seconds[RATE].tolist() == [6.0, 12.0]
    assert seconds[LATENCY].tolist() == [9.0, 12.0]
    assert seconds[MEAN].tolist() == [7.0, 11.5]


def test_errors_of_opposite_signs_cancel_in_the_sum_alone() -> None:
    assert error(np.array([15.0, 5.0]), np.array([10.0, 10.0])) == {"median": 0.5, "sum": 0.0, "worst": 0.5}


def test_an_emulator_that_is_close_and_mutants_that_are_not_are_accepted() -> None:
    refuse(errors())


def test_an_emulator_that_is_off_is_refused_with_the_fleet() -> None:
    with pytest.raises(RunError, match="reality: the emulator: off by more than 5% in alike"):
        refuse(errors(**{EMULATOR: BAR + 0.001}))


def test_the_sum_has_the_bar_too() -> None:
    off = errors()
    off["alike"][EMULATOR]["sum"] = -0.051
    with pytest.raises(RunError, match="the emulator"):
        refuse(off)


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_that_no_fleet_tells_from_the_emulator_is_refused(mutant: str) -> None:
    with pytest.raises(RunError, match=f"{mutant}: off by more than 5% in no fleet"):
        refuse(errors(**{mutant: 0.04}))
