from __future__ import annotations

import pytest

from experiments.jobs.admission import Admission, jobs_at_once
from experiments.running.plan import PlannedRun

GIB = 2.0**30


def run(arm: str, seed: int = 0, experiment: str = "e") -> PlannedRun:
    return PlannedRun(experiment, arm, seed, rounds=10)


def one_machine(available: float, **peaks: float) -> Admission:
    """One machine with `available` bytes; `peaks` of arms of `e` in earlier runs."""
    return Admission({"m": available}, {("e", arm): peak for arm, peak in peaks.items()})


# -- how many workers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("unfinished", "cores", "threads", "available", "peaks", "number"),
    [
        (15, 8, 1, 100.0, [], 8),  # cores
        (15, 8, 2, 100.0, [], 4),
        (15, 7, 2, 100.0, [], 3),
        (3, 8, 1, 100.0, [], 3),  # runs that are left
        (15, 8, 1, 100.0, [10.0, 16.0], 5),  # 80 of memory, and the largest needs 16
        (15, 8, 1, 100.0, [90.0], 1),  # one is played however large it is
        (15, 1, 4, 100.0, [], 1),
        (0, 8, 1, 100.0, [], 1),
    ],
)
def test_auto_is_the_least_of_runs_cores_and_memory(
    unfinished: int, cores: int, threads: int, available: float, peaks: list[float], number: int
) -> None:
    assert jobs_at_once(None, unfinished, cores, threads, available, peaks) == number


@pytest.mark.parametrize(
    ("requested", "unfinished", "number"), [(4, 15, 4), (4, 3, 3), (1, 15, 1), (4, 0, 1)]
)
def test_a_requested_number_is_used_up_to_the_number_of_runs(
    requested: int, unfinished: int, number: int
) -> None:
    assert jobs_at_once(requested, unfinished, 2, 8, 10.0, [9.0]) == number


# -- which run may begin ------------------------------------------------------------------------------------


def test_the_second_run_waits_for_the_first_ones_first_evaluated_round() -> None:
    memory = one_machine(1000.0)
    assert memory.admits(run("a"), "m")
    memory.begins(run("a"), "m")
    assert not memory.admits(run("b"), "m")
    memory.saw(run("a"), 100.0, evaluated=False)
    assert not memory.admits(run("b"), "m")
    assert memory.held_back(run("b"), "m") is None  # it waits for a measurement, not for memory
    memory.saw(run("a"), 100.0, evaluated=True)
    assert memory.admits(run("b"), "m")


def test_until_it_is_done_a_run_counts_with_a_quarter_more_than_it_has_held() -> None:
    memory = one_machine(1000.0)  # of which 800 may be taken
    memory.begins(run("a"), "m")
    memory.saw(run("a"), 320.0, evaluated=True)  # 400, and as much for the next
    assert memory.admits(run("b"), "m")
    memory.saw(run("a"), 320.1, evaluated=False)
    assert not memory.admits(run("b"), "m")
    memory.saw(run("a"), 300.0, evaluated=True)  # a peak does not fall
    assert not memory.admits(run("b"), "m")


def test_the_next_seed_of_an_arm_counts_with_its_last_ones_peak() -> None:
    memory = one_machine(1000.0)
    memory.begins(run("a", 0), "m")
    memory.saw(run("a", 0), 400.0, evaluated=True)
    memory.ends(run("a", 0), 400.0)
    memory.begins(run("a", 1), "m")
    assert memory.admits(run("a", 2), "m")  # 400 and 400, no quarter more
    memory.saw(run("a", 1), 401.0, evaluated=True)  # it holds more than the last one did
    assert not memory.admits(run("a", 2), "m")


def test_an_arm_that_is_not_measured_counts_as_the_largest_that_is() -> None:
    memory = one_machine(1000.0, a=500.0, b=100.0)
    memory.begins(run("b"), "m")
    assert memory.admits(run("c"), "m")  # 100 + 500
    memory.begins(run("c"), "m")
    assert memory.admits(run("b", 1), "m")
    assert not memory.admits(run("a"), "m")  # 100 + 500 + 500
    memory.saw(run("c"), 40.0, evaluated=True)  # 50
    assert memory.admits(run("a"), "m")


def test_runs_known_from_earlier_need_no_waiting_and_as_many_begin_as_fit() -> None:
    memory = one_machine(1000.0, a=200.0)
    for seed in range(4):
        assert memory.admits(run("a", seed), "m")
        memory.begins(run("a", seed), "m")
    assert not memory.admits(run("a", 4), "m")
    memory.ends(run("a", 0))  # stopped, or lost
    assert memory.admits(run("a", 4), "m")


def test_a_line_says_that_memory_holds_fewer_runs_than_could_be_at_work() -> None:
    memory = one_machine(10 * GIB, a=5 * GIB)
    memory.begins(run("a", 0), "m")
    assert memory.held_back(run("a", 1), "m") == (
        "m: memory for 1 run at a time (the next needs about 5.0 GiB, and 8.0 GiB, 80% of what was "
        "available, may be taken)"
    )
    memory = one_machine(10 * GIB, a=3 * GIB)
    assert memory.held_back(run("a", 0), "m") is None
    for seed in (0, 1):
        memory.begins(run("a", seed), "m")
    line = memory.held_back(run("a", 2), "m")
    assert line is not None
    assert line.startswith("m: memory for 2 runs at a time")


def test_with_nothing_at_work_a_run_may_begin_however_large() -> None:
    memory = one_machine(1000.0, a=5000.0)
    assert memory.admits(run("a"), "m")
    assert memory.held_back(run("a"), "m") is None


def test_each_machine_has_its_own_memory() -> None:
    memory = one_machine(1000.0, a=700.0)
    memory.begins(run("a", 0), "m")
    memory.joins("n", 500.0)
    memory.joins("m", 1e9)  # the memory at the start counts: its runs have taken some since
    assert not memory.admits(run("a", 1), "m")
    assert memory.admits(run("a", 1), "n")
    memory.begins(run("a", 1), "n")
    assert not memory.admits(run("a", 2), "n")


def test_beside_a_run_of_which_nothing_is_known_none_begins_not_even_one_that_is_known() -> None:
    """It could grow beyond all others: a folder's second experiment beside runs of its first."""
    memory = one_machine(1000.0, a=100.0)
    memory.begins(run("a", 0), "m")
    assert memory.admits(run("z", experiment="f"), "m")
    memory.begins(run("z", experiment="f"), "m")
    assert not memory.admits(run("a", 1), "m")
    assert memory.held_back(run("a", 1), "m") is None
    memory.saw(run("z", experiment="f"), 480.0, evaluated=True)
    assert memory.admits(run("a", 1), "m")  # 100 + 600 + 100
    assert not memory.admits(run("y", experiment="f"), "m")  # 100 + 600 + 600


def test_a_run_of_an_unknown_experiment_needs_as_much_as_the_largest_beside_it() -> None:
    memory = one_machine(1000.0, a=500.0)
    memory.begins(run("a", 0), "m")
    assert not memory.admits(run("z", experiment="f"), "m")
    assert (memory.held_back(run("z", experiment="f"), "m") or "").startswith("m: memory for 1 run at a time")


def test_a_report_on_a_run_that_has_ended_is_ignored() -> None:
    memory = one_machine(1000.0)
    memory.saw(run("a"), 900.0, evaluated=True)
    memory.ends(run("a"))
    memory.begins(run("b"), "m")
    assert not memory.admits(run("c"), "m")  # still not measured
