"""How long visits take before any run, by hand, and how many rounds `check` says that a run has.

A visit of 2 steps of 4 samples, and of a linear model of 8x8 digits: 65 x 10 parameters are 2,600 bytes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from coordinator.pacing import CohortSize, Pacing
from coordinator.pacing.buffered import Buffered, BufferedSettings
from coordinator.pacing.fixed import Fixed, FixedSettings
from coordinator.pacing.sync import Sync, SyncSettings
from experiments.build import build_emulation, build_executor, build_world
from experiments.cli.configurations.check_table import check_facts
from experiments.cli.configurations.visit_facts import SECONDS, round_s
from experiments.config import Experiment
from experiments.locating import locator
from experiments.stopwatch import Stopwatch
from tests.experiments.small import small
from tests.fakes import MemoryLog

HEADER = "device_id,seconds_per_sample,download_bytes_per_s,upload_bytes_per_s,latency_s\n"
ELEVEN = HEADER + "".join(f"d{n:02},{(2 + n) / 8},2600,1300,0.5\n" for n in range(11))
"""Down 1.5 s, eight samples 2, 3, ... 12 s, and up 2.5 s: 6, 7, ... 16 s in all, 15 s at 90 %."""

FACT = "6 at least, 11 in the median, 15 or more for the slowest tenth"


def experiment_of(folder: Path, fleet: str = ELEVEN, **changes: Any) -> Experiment:
    """One client for each device, in some order."""
    (folder / "fleet.csv").write_text(fleet, encoding="utf-8")
    devices = {"profile": "fleet.csv", "availability": "always", "model_factor": 1}
    changes = {"arm": [{"name": "global"}], "trace": {"clients": 11}, **changes}
    return small(**{**changes, "devices": {**devices, **changes.get("devices", {})}})


def facts_of(folder: Path, fleet: str = ELEVEN, **changes: Any) -> dict[str, object]:
    note = changes.pop("note", lambda _: None)
    experiment = experiment_of(folder, fleet, **changes)
    return check_facts(experiment, build_world(experiment, 0, locator(folder, None)), note)


# -- seconds of a visit -------------------------------------------------------------------------------------


def test_a_visit_is_told_by_its_least_its_median_and_its_slowest_tenth(tmp_path: Path) -> None:
    facts = facts_of(tmp_path)
    assert facts["seconds of a visit"] == FACT
    assert "rounds of a run" not in facts


def test_a_visit_takes_what_the_run_logs_of_it(tmp_path: Path) -> None:
    experiment = experiment_of(tmp_path, round={"participants": 11, "log_visits": True, "rounds": 1})
    world = build_world(experiment, 0, locator(tmp_path, None))
    arm, log = experiment.arm[0], MemoryLog()
    executor = build_executor(experiment, arm, world)
    build_emulation(experiment, arm, world, executor, log, (), Stopwatch()).run()
    (visits,) = log.visits
    seconds = sorted((visits.download_s + visits.compute_s + visits.upload_s).tolist())
    told = SECONDS.format(seconds[0], seconds[5], seconds[9])
    assert check_facts(experiment, world)["seconds of a visit"] == told == FACT


def test_with_fedscales_time_model_neither_latency_nor_the_second_bandwidth_counts(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, devices={"time_model": "fedscale"})
    assert facts["seconds of a visit"] == "4 at least, 9 in the median, 13 or more for the slowest tenth"


@pytest.mark.parametrize(
    ("training", "solver", "seconds"),
    [
        # An epoch over the 12 samples of a client is two batches of 8, filled, or of 8 and of 4.
        ({"local_epochs": 1}, "sgd", "8 at least, 18 in the median, 26 or more {} (over {})"),
        (
            {"local_epochs": 1, "last": "short"},
            "sgd",
            "7 at least, 14.5 in the median, 20.5 or more {} (over {})",
        ),
        ({"local_epochs": 4}, "sgd", "20 at least, 60 in the median, 92 or more {} (over {})"),
        (
            {"local_epochs": 4},
            "early_stopping",
            "8 at least, 18 in the median, 26 or more {} (of one epoch, {})",
        ),
    ],
)
def test_steps_that_are_not_known_before_a_run_are_told_with_what_was_assumed(
    tmp_path: Path, training: dict[str, Any], solver: str, seconds: str
) -> None:
    rules = ["sgd"] if solver == "sgd" else [solver, "sgd"]
    arm = {"name": "global", "solver": rules, "training": {**training, "batch_size": 8}}
    assumed = "the first data step's samples" if solver == "sgd" else "as clients stop early"
    assert facts_of(tmp_path, arm=[arm])["seconds of a visit"] == seconds.format(
        "for the slowest tenth", assumed
    )


def test_a_schedule_of_steps_is_told_and_one_of_the_learning_rate_changes_no_visit(tmp_path: Path) -> None:
    def arm(number: str, value: float) -> dict[str, Any]:
        schedule = {"kind": "by_cluster", "clusters": {"0": {number: value}}}
        return {"name": number, "clusterer": "single", "schedules": [schedule]}

    arms = [{"name": "plain"}, arm("learning_rate", 0.1), arm("local_steps", 9), arm("batch_size", 9)]
    assert facts_of(tmp_path, arm=arms)["seconds of a visit"] == (
        f"plain, learning_rate: {FACT}; local_steps: {FACT} (before schedules set local_steps); "
        f"batch_size: {FACT} (before schedules set batch_size)"
    )


def test_arms_whose_visits_differ_are_told_one_after_another(tmp_path: Path) -> None:
    longer = {"name": "longer", "training": {"local_steps": 4}}
    facts = facts_of(tmp_path, arm=[{"name": "global"}, longer, {"name": "other"}])
    assert facts["seconds of a visit"] == (
        f"global, other: {FACT}; longer: 8 at least, 18 in the median, 26 or more for the slowest tenth"
    )


# -- rounds of a run ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pacing", "rounds"),
    [
        ("sync", 360),  # 4,000 s / 11 s = 363.6
        ({"kind": "sync", "deadline_s": 8}, 500),
        ({"kind": "fixed", "duration_s": 50}, 80),
        ({"kind": "fixed", "duration_s": 8}, 500),
        ({"kind": "buffered", "concurrency": 6}, 730),  # three participants: two rounds in a visit
    ],
)
def test_the_rounds_of_a_run_follow_from_the_median_visit_and_the_pacing(
    tmp_path: Path, pacing: Any, rounds: int
) -> None:
    changes: dict[str, Any] = {"round": {"seconds_per_round": 1000}, "arm": [{"name": "a", "pacing": pacing}]}
    facts = facts_of(tmp_path, **changes)
    assert facts["virtual seconds of a run"] == 4000
    assert facts["rounds of a run"] == f"about {rounds}, if every visit takes the median"


@pytest.mark.parametrize(("seconds", "last_s"), [(5.0, 5.0), (50.0, 50.0), (51.0, 50.0)])
def test_a_round_lasts_as_long_as_a_visit_but_no_longer_than_the_deadline(
    seconds: float, last_s: float
) -> None:
    cohort = CohortSize(4)
    deadline: Pacing = Sync(SyncSettings(deadline_s=50), cohort)
    assert round_s(deadline, seconds) == last_s
    assert round_s(Sync(SyncSettings(), cohort), seconds) == seconds
    assert round_s(Fixed(FixedSettings(duration_s=50), cohort), seconds) == 50
    assert round_s(Buffered(BufferedSettings(concurrency=16), cohort), seconds) == seconds / 4


def test_a_run_shorter_than_a_visit_has_one_round(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, round={"seconds_per_round": 1})
    assert facts["rounds of a run"] == "about 1, if every visit takes the median"


@pytest.mark.parametrize(("run_s", "warns"), [(600_000, False), (600_004, True)])
def test_a_check_warns_if_the_shortest_visits_allow_more_than_a_hundred_thousand_rounds(
    tmp_path: Path, run_s: int, warns: bool
) -> None:
    """The least visit takes 6 s; of two arms the one with the shorter visits counts."""
    notes: list[str] = []
    arms = [{"name": "longer", "training": {"local_steps": 4}}, {"name": "global"}]
    facts = facts_of(tmp_path, arm=arms, round={"seconds_per_round": run_s / 4}, note=notes.append)
    assert str(facts["rounds of a run"]).endswith("global: about 55,000, if every visit takes the median")
    assert (
        notes
        == [
            "small: if every visit takes the least, a run has up to 100,001 rounds, over 100,000; raise "
            "devices.model_factor or shorten the run"
        ]
        * warns
    )
