"""How long visits take before any run, by hand, and how many rounds `check` says that a run has.

A visit of 2 steps of 4 samples, and of a linear model of 8x8 digits: 65 x 10 parameters are 2,600 bytes.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from coordinator.pacing import CohortSize, Pacing
from coordinator.pacing.buffered import Buffered, BufferedSettings
from coordinator.pacing.fixed import Fixed, FixedSettings
from coordinator.pacing.sync import Sync, SyncSettings
from emulator.arrays import Bools, Floats, Ints
from emulator.errors import ConfigurationError
from experiments.build import build_emulation, build_executor, build_world
from experiments.checks.arms import check_arms
from experiments.checks.fleet import limit_of, round_s
from experiments.cli.configurations.check_table import check_facts
from experiments.config import Experiment
from experiments.locating import locator
from experiments.stopwatch import Stopwatch
from tests.experiments.small import small
from tests.fakes import MemoryLog

HEADER = "device_id,seconds_per_sample,download_bytes_per_s,upload_bytes_per_s,latency_s\n"
ELEVEN = HEADER + "".join(f"d{n:02},{(2 + n) / 8},2600,1300,0.5\n" for n in range(11))
"""Down 1.5 s, eight samples 2, 3, ... 12 s, and up 2.5 s: 6, 7, ... 16 s in all, 15 s at 90 %."""

FACT = "11 in the median, 7 to 15 for 10 to 90 %"


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


def test_a_visit_is_told_by_its_median_and_its_tenths_and_by_phase(tmp_path: Path) -> None:
    facts = facts_of(tmp_path)
    assert facts["fleet: seconds of a visit"] == FACT
    assert "fleet: rounds of a run" not in facts


def test_a_visit_takes_what_the_run_logs_of_it(tmp_path: Path) -> None:
    experiment = experiment_of(tmp_path, round={"participants": 11, "log_visits": True, "rounds": 1})
    world = build_world(experiment, 0, locator(tmp_path, None))
    arm, log = experiment.arm[0], MemoryLog()
    executor = build_executor(experiment, arm, world)
    build_emulation(experiment, arm, world, executor, log, (), Stopwatch()).run()
    (visits,) = log.visits
    seconds = sorted((visits.download_s + visits.compute_s + visits.upload_s).tolist())
    told = f"{seconds[5]:g} in the median, {seconds[1]:g} to {seconds[9]:g} for 10 to 90 %"
    assert check_facts(experiment, world)["fleet: seconds of a visit"] == told == FACT


def test_with_fedscales_time_model_neither_latency_nor_the_second_bandwidth_counts(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, devices={"time_model": "fedscale"})
    assert facts["fleet: seconds of a visit"] == "9 in the median, 5 to 13 for 10 to 90 %"


@pytest.mark.parametrize(
    ("training", "solver", "seconds"),
    [
        # An epoch over the 12 samples of a client is two batches of 8, filled, or of 8 and of 4.
        ({"local_epochs": 1}, "sgd", "18 in the median, 10 to 26 {} (over {})"),
        (
            {"local_epochs": 1, "last": "short"},
            "sgd",
            "14.5 in the median, 8.5 to 20.5 {} (over {})",
        ),
        ({"local_epochs": 4}, "sgd", "60 in the median, 28 to 92 {} (over {})"),
        (
            {"local_epochs": 4},
            "early_stopping",
            "18 in the median, 10 to 26 {} (of one epoch, {})",
        ),
    ],
)
def test_steps_that_are_not_known_before_a_run_are_told_with_what_was_assumed(
    tmp_path: Path, training: dict[str, Any], solver: str, seconds: str
) -> None:
    rules = ["sgd"] if solver == "sgd" else [solver, "sgd"]
    arm = {"name": "global", "solver": rules, "training": {**training, "batch_size": 8}}
    assumed = "the first data step's samples" if solver == "sgd" else "as clients stop early"
    assert facts_of(tmp_path, arm=[arm])["fleet: seconds of a visit"] == seconds.format(
        "for 10 to 90 %", assumed
    )


def test_a_schedule_of_steps_is_told_and_one_of_the_learning_rate_changes_no_visit(tmp_path: Path) -> None:
    def arm(number: str, value: float) -> dict[str, Any]:
        schedule = {"kind": "by_cluster", "clusters": {"0": {number: value}}}
        return {"name": number, "clusterer": "single", "schedules": [schedule]}

    arms = [{"name": "plain"}, arm("learning_rate", 0.1), arm("local_steps", 9), arm("batch_size", 9)]
    assert facts_of(tmp_path, arm=arms)["fleet: seconds of a visit"] == (
        f"plain, learning_rate: {FACT}; local_steps: {FACT} (before schedules set local_steps); "
        f"batch_size: {FACT} (before schedules set batch_size)"
    )


def test_arms_whose_visits_differ_are_told_one_after_another(tmp_path: Path) -> None:
    longer = {"name": "longer", "training": {"local_steps": 4}}
    facts = facts_of(tmp_path, arm=[{"name": "global"}, longer, {"name": "other"}])
    assert facts["fleet: seconds of a visit"] == (
        f"global, other: {FACT}; longer: 18 in the median, 10 to 26 for 10 to 90 %"
    )


def test_phases_are_told_beside_the_limit_and_who_can_finish_in_it(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, arm=[{"name": "a", "pacing": {"kind": "fixed", "duration_s": 8}}])
    assert facts["fleet: seconds of download"] == "1.5 in the median, 1.5 to 1.5 for 10 to 90 %"
    assert facts["fleet: seconds of compute"] == "7 in the median, 3 to 11 for 10 to 90 %"
    assert facts["fleet: seconds of upload"] == "2.5 in the median, 2.5 to 2.5 for 10 to 90 %"
    assert facts["fleet: can finish in time"] == "3 of 11 clients (27.3 %), by pacing.duration_s = 8"
    assert facts["fleet: speeds"] == "fleet.csv, 11 devices, drawn"
    assert facts["fleet: hours"] == "always"
    assert facts["fleet: online from"] == (
        "the first at 0 s, a tenth of all by 0 s; a run ends at about 32 s, round.max_wait_days = 30"
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
    assert facts["fleet: rounds of a run"] == f"about {rounds}, if every visit takes the median"


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
    assert facts["fleet: rounds of a run"] == "about 1, if every visit takes the median"


@pytest.mark.parametrize(("run_s", "warns"), [(600_000, False), (600_004, True)])
def test_a_check_warns_if_the_shortest_visits_allow_more_than_a_hundred_thousand_rounds(
    tmp_path: Path, run_s: int, warns: bool
) -> None:
    """The least visit takes 6 s; of two arms the one with the shorter visits counts."""
    notes: list[str] = []
    arms = [{"name": "longer", "training": {"local_steps": 4}}, {"name": "global"}]
    facts = facts_of(tmp_path, arm=arms, round={"seconds_per_round": run_s / 4}, note=notes.append)
    assert str(facts["fleet: rounds of a run"]).endswith(
        "global: about 55,000, if every visit takes the median"
    )
    assert (
        notes
        == [
            "small: if every visit takes the least, a run has up to 100,001 rounds, over 100,000; raise "
            "devices.model_factor or shorten the run"
        ]
        * warns
    )


# -- warnings, and what no client can do --------------------------------------------------------------------


def warned(folder: Path, fleet: str = ELEVEN, **changes: Any) -> list[str]:
    notes: list[str] = []
    facts_of(folder, fleet, note=notes.append, **changes)
    return [note.removeprefix("small: ") for note in notes]


def test_a_fleet_in_order_warns_of_nothing(tmp_path: Path) -> None:
    assert warned(tmp_path) == []


@pytest.mark.parametrize(
    ("row", "warning"),
    [
        ("450,1e6,1e6,0", "seconds_per_sample = 450 in the median: milliseconds? Name it ms_per_sample"),
        (
            "0.1,4,1e6,0",
            "download_bytes_per_s = 4 in the median: kilobits or megabits? Name it",
        ),
        ("0.1,1e6,4,0", "upload_bytes_per_s = 4 in the median: kilobits or megabits? Name it"),
        ("0.1,1e6,1e6,50", "latency_s = 50 in the median: milliseconds? Name it latency_ms"),
    ],
)
def test_a_column_in_another_unit_is_named_with_its_remedy(tmp_path: Path, row: str, warning: str) -> None:
    [note] = warned(tmp_path, f"{HEADER}d,{row}\n")
    assert note.startswith(f"devices.profile: {warning}")


def hours(folder: Path, start_s: float) -> str:
    (folder / "hours.csv").write_text(f"device_id,start_s,end_s\na,{start_s},{start_s + 900}\n")
    return "hours.csv"


@pytest.mark.parametrize(
    ("start_s", "warnings"),
    [
        (4_000, []),
        (
            5_001,
            [
                "not a tenth of the clients are online before 5,001 s, after report.horizon_s = 5,000; begin "
                "the hours earlier"
            ],
        ),
        (
            3e6,
            [
                "nobody is online before 3e+06 s, and a run waits round.max_wait_days = 30; begin the hours "
                "earlier"
            ],
        ),
        (
            1.7e9,
            [
                "nobody is online before 1.7e+09 s, and a run waits round.max_wait_days = 30; Unix seconds? "
                "Name the columns start and end"
            ],
        ),
    ],
)
def test_hours_that_begin_too_late_are_told_with_what_helps(
    tmp_path: Path, start_s: float, warnings: list[str]
) -> None:
    devices = {"availability": hours(tmp_path, start_s)}
    notes = warned(tmp_path, devices=devices, report={"horizon_s": 5000})
    assert notes == [f"devices.availability: {warning}" for warning in warnings]


def test_hours_without_a_horizon_only_delay_a_run(tmp_path: Path) -> None:
    assert warned(tmp_path, devices={"availability": hours(tmp_path, 20_000)}) == []


def test_a_limit_that_hardly_a_client_keeps_is_told_with_the_key(tmp_path: Path) -> None:
    slow = HEADER + "".join(f"d{n:02},{4 + n / 8},2600,1300,0.5\n" for n in range(11))
    [note] = warned(tmp_path, slow, arm=[{"name": "a", "pacing": {"kind": "sync", "timeout_s": 36}}])
    assert note == (
        "arm 'a': 9.1 % of the clients can finish a visit within pacing.timeout_s = 36; the median takes 41 "
        "s, by devices.profile; raise the limit, or lower training.local_steps or devices.model_factor"
    )


@pytest.mark.parametrize(
    ("changes", "warning"),
    [
        (
            {"round": {"evaluate_every": 500}},
            "arm 'global': round.evaluate_every = 500: only the end of a run of 4 rounds is evaluated; lower "
            "it",
        ),
        (
            {"round": {"evaluate_every_s": 500}},
            "arm 'global': round.evaluate_every_s = 500: only the end of a run of 4 rounds is evaluated; "
            "lower it",
        ),
        (
            {"round": {"evaluate_every": 2}, "report": {"horizon_s": 5}},
            "arm 'global': report.horizon_s = 5: no evaluation is due before 12 s, by "
            "round.evaluate_every = 2, and no figure has anything to show; raise the horizon, or evaluate "
            "earlier",
        ),
    ],
)
def test_a_run_without_an_evaluation_in_its_horizon_is_told(
    tmp_path: Path, changes: dict[str, Any], warning: str
) -> None:
    assert warned(tmp_path, **changes) == [warning]


@pytest.mark.parametrize(("limit_s", "is_refused"), [(4.4, True), (4.5, False)])
@pytest.mark.parametrize(
    ("pacing", "key"),
    [("fixed", "duration_s"), ("sync", "deadline_s"), ("sync", "timeout_s"), ("buffered", "timeout_s")],
)
def test_a_limit_below_every_visit_is_refused_before_any_round(
    tmp_path: Path, pacing: str, key: str, limit_s: float, is_refused: bool
) -> None:
    experiment = experiment_of(tmp_path, arm=[{"name": "a", "pacing": {"kind": pacing, key: limit_s}}])
    world = build_world(experiment, 0, locator(tmp_path, None))
    if not is_refused:
        check_arms(experiment, ["a"], world)
        return
    with pytest.raises(ConfigurationError) as refused:
        check_arms(experiment, ["a"], world)
    assert str(refused.value) == (
        f"arm 'a': pacing.{key} = 4.4: no client can finish a visit in it: without its download the shortest "
        f"takes 4.5 s, by devices.profile = 'fleet.csv'; raise it, or lower training.local_steps or "
        f"devices.model_factor"
    )


def test_with_jitter_of_visits_a_limit_below_every_visit_is_a_warning(tmp_path: Path) -> None:
    arm = {"name": "a", "pacing": {"kind": "sync", "deadline_s": 4.4}}
    for jitter, is_refused in (({"model": 1e-9}, True), ({"network": 0.1}, False), ({"compute": 0.1}, False)):
        experiment = experiment_of(tmp_path, arm=[arm], devices={"jitter": jitter})
        world = build_world(experiment, 0, locator(tmp_path, None))
        with pytest.raises(ConfigurationError, match="no client can finish") if is_refused else nullcontext():
            check_arms(experiment, ["a"], world)
    (warning,) = warned(tmp_path, arm=[arm], devices={"jitter": {"compute": 0.1}})
    assert "arm 'a': 0 % of the clients can finish a visit within pacing.deadline_s = 4.4" in warning
    assert "by devices.profile before jitter; raise the limit" in warning


def test_the_facts_have_the_factors_of_devices_and_the_deviations(tmp_path: Path) -> None:
    """A factor moves computing alone, which is 2 to 12 s."""
    plain = facts_of(tmp_path)
    assert "fleet: jitter" not in plain
    facts = facts_of(tmp_path, devices={"jitter": {"model": 0.4}})
    assert facts["fleet: jitter"] == "sd of the logs of factors: compute 0, network 0, model 0.4"
    assert facts["fleet: seconds of upload"] == plain["fleet: seconds of upload"]
    assert facts["fleet: seconds of compute"] != plain["fleet: seconds of compute"]
    of_visits = facts_of(tmp_path, devices={"jitter": {"network": 0.3}})
    assert of_visits["fleet: jitter"] == (
        "sd of the logs of factors: compute 0, network 0.3, model 0; that of visits is not in these seconds"
    )
    assert of_visits["fleet: seconds of a visit"] == plain["fleet: seconds of a visit"]


def test_where_steps_are_not_certain_only_the_upload_is_held_against_a_limit(tmp_path: Path) -> None:
    for duration_s, is_refused in ((2.5, False), (2.4, True)):
        arm = {"name": "a", "pacing": {"kind": "fixed", "duration_s": duration_s}}
        experiment = experiment_of(tmp_path, arm=[{**arm, "training": {"local_epochs": 2}}])
        world = build_world(experiment, 0, locator(tmp_path, None))
        with pytest.raises(ConfigurationError, match="no client can finish") if is_refused else nullcontext():
            check_arms(experiment, ["a"], world)


class Patient(Sync):
    """Closes at its deadline only once a visit is back."""

    def full(self, quota: Ints, out: Ints, back: Ints, elapsed_s: Floats) -> Bools:
        return super().full(quota, out, back, elapsed_s) & (back > 0)


def test_a_deadline_at_which_a_pacing_goes_on_waiting_is_no_limit() -> None:
    cohort = CohortSize(4)
    assert limit_of(Patient(SyncSettings(deadline_s=2), cohort)) == (math.inf, "")
    assert limit_of(Sync(SyncSettings(deadline_s=2), cohort)) == (2, "pacing.deadline_s = 2")
    both = SyncSettings(deadline_s=3, timeout_s=2)
    assert limit_of(Sync(both, cohort)) == (2, "pacing.timeout_s = 2")


def test_neither_a_slow_client_nor_a_late_start_makes_a_check_warn_of_evaluations(tmp_path: Path) -> None:
    """Most devices take 6 s, one 100 s, which a round may wait for; hours begin at 4,000 s."""
    fleet = HEADER + "".join(f"d{n:02},{0.25 if n else 12},2600,1300,0.5\n" for n in range(11))
    assert warned(tmp_path, fleet, round={"evaluate_every_s": 300}) == []
    devices = {"availability": hours(tmp_path, 4000)}
    assert warned(tmp_path, devices=devices, round={"evaluate_every_s": 3000}) == []
