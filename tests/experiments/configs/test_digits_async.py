"""digits-async differs from digits by its rounds and its pacings alone, and all its arms have equal slots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import experiments
from coordinator.pacing import PACINGS, CohortSize
from experiments.reading import read_table

FOLDER = Path(experiments.__file__).parent / "configs"
SLOTS = 13


@pytest.fixture(scope="module")
def table() -> dict[str, Any]:
    return read_table(FOLDER / "digits-async.toml")


def test_data_devices_and_training_are_those_of_digits_but_for_the_round_of_the_event(
    table: dict[str, Any],
) -> None:
    digits = read_table(FOLDER / "digits.toml")
    (event,) = table["trace"]["drift"]["events"]
    assert {**event, "round": 50} == digits["trace"]["drift"]["events"][0]
    assert event["round"] == 95
    event["round"] = 50
    for key in ("seeds", "trace", "devices", "training"):
        assert table[key] == digits[key], key


def test_a_run_lasts_60_000_virtual_seconds_up_to_the_horizon(table: dict[str, Any]) -> None:
    assert table["round"]["rounds"] * table["round"]["seconds_per_round"] == 60_000
    assert table["report"]["horizon_s"] == 60_000


def test_every_arm_has_thirteen_slots(table: dict[str, Any]) -> None:
    cohort = CohortSize(table["round"]["participants"], table["round"]["over_commit"])
    assert cohort.over_committed(cohort.participants) == SLOTS
    for arm in table["arm"]:
        pacing = arm.get("pacing", {"kind": "sync"})
        assert "concurrency" not in pacing  # by default that of the cohort
        if pacing["kind"] != "buffered":
            part = PACINGS.find(pacing["kind"])
            settings = part.Settings(**{key: pacing[key] for key in pacing.keys() - {"kind"}})
            built = part(settings, cohort)
            assert built.cohort.over_committed(built.cohort.participants) == SLOTS, arm["name"]


def test_buffered_arms_discount_stale_updates_and_differ_in_nothing_else(table: dict[str, Any]) -> None:
    arms = {arm["name"]: arm for arm in table["arm"]}
    assert next(iter(arms)) == "sync"
    buffered = {"aggregator": "fedbuff", "pacing": {"kind": "buffered", "buffer": 10}}
    assert arms["fedbuff"] == {**arms["sync"], "name": "fedbuff", **buffered}
    assert arms["fielding-fedbuff"] == {**arms["fielding"], "name": "fielding-fedbuff", **buffered}
