from __future__ import annotations

from experiments.jobs.order import RunQueue, World, world_of
from experiments.running.plan import PlannedRun


def run(arm: str, seed: int, experiment: str = "e") -> PlannedRun:
    return PlannedRun(experiment, arm, seed, rounds=10)


RUNS = [run(arm, seed) for seed in (0, 1, 2) for arm in "abc"]
E0, E1, E2 = ("e", 0), ("e", 1), ("e", 2)


def names(queue: RunQueue, own: World | None = None, others: tuple[World, ...] = ()) -> list[str]:
    return [f"{run.arm}{run.seed}" for run in queue.runs_for(own, others)]


def test_what_has_not_been_measured_goes_in_the_order_given() -> None:
    queue = RunQueue(RUNS)
    assert names(queue) == ["a0", "b0", "c0", "a1", "b1", "c1", "a2", "b2", "c2"]
    assert (len(queue), run("b", 1) in queue, run("z", 1) in queue) == (9, True, False)
    assert world_of(run("b", 1)) == E1


def test_a_worker_stays_with_its_world_then_takes_one_that_nobody_has_then_another_ones() -> None:
    queue = RunQueue(RUNS)
    assert names(queue, E1, (E0,)) == ["a1", "b1", "c1", "a2", "b2", "c2", "a0", "b0", "c0"]
    assert names(queue, ("other", 1), (E0, E1)) == ["a2", "b2", "c2", "a0", "b0", "c0", "a1", "b1", "c1"]
    assert names(queue, E1, (E1,))[:3] == [
        "a1",
        "b1",
        "c1",
    ]  # its own world, although another worker has drawn it


def test_the_slowest_arm_goes_first_and_what_is_not_measured_before_it() -> None:
    queue = RunQueue(RUNS[:3])
    queue.took(run("a", 7), 5.0)  # of any run of the arm
    queue.took(run("b", 7), 9.0)
    assert names(queue) == ["c0", "b0", "a0"]
    queue.took(run("c", 8), 1.0)
    assert names(queue) == ["b0", "a0", "c0"]
    queue.took(run("b", 8), 2.0)  # the last one counts
    assert names(queue) == ["a0", "b0", "c0"]


def test_of_worlds_nobody_has_the_one_with_most_work_left_goes_first() -> None:
    queue = RunQueue(RUNS)
    for arm in "abc":
        queue.took(run(arm, 0), 1.0)
    queue.take(run("a", 0))
    queue.take(run("a", 1))
    queue.take(run("b", 1))
    assert names(queue) == ["a2", "b2", "c2", "b0", "c0", "c1"]


def test_how_long_an_arm_takes_is_its_own_experiments() -> None:
    queue = RunQueue([run("a", 0), run("b", 0), run("a", 0, "f"), run("b", 0, "f")])
    queue.took(run("a", 0), 9.0)
    queue.took(run("b", 0), 1.0)
    queue.took(run("a", 0, "f"), 2.0)
    queue.took(run("b", 0, "f"), 9.0)
    runs = [(item.experiment, item.arm) for item in queue.runs_for(None, ())]
    assert runs == [("f", "b"), ("f", "a"), ("e", "a"), ("e", "b")]


def test_a_run_that_is_taken_is_gone_until_it_is_put_back_and_an_experiment_is_dropped_whole() -> None:
    queue = RunQueue([*RUNS[:3], run("a", 0, "f")])
    queue.take(run("b", 0))
    assert names(queue) == ["a0", "c0", "a0"]
    queue.put_back(run("b", 0))
    assert names(queue, E0) == ["a0", "b0", "c0", "a0"]
    queue.drop("e")
    assert list(queue.runs_for(E0, ())) == [run("a", 0, "f")]
    queue.take(run("a", 0, "f"))
    assert not queue


def test_worlds_that_may_not_begin_are_left_out() -> None:
    queue = RunQueue(RUNS)
    runs = queue.runs_for(E0, (), lambda world: world == E2)
    assert [world_of(item) for item in runs] == [E2] * 3
