from __future__ import annotations

import errno
import json
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.errors import (
    CheckpointError,
    ConfigurationError,
    DataFileError,
    EmulatorError,
    ForeignFileError,
    ResumableError,
)
from executor.failures import PeerFaultError
from experiments.jobs.command import MEET_AGAIN_S, MET_S, run_in_parallel
from experiments.jobs.order import world_of
from experiments.jobs.pool import Ended, Facts, Met, Told
from experiments.jobs.workplace import Job
from experiments.results.reading.json_files import Command
from experiments.running.plan import Plan
from experiments.running.runner import FailedRunsError, Outcomes
from experiments.running.stop import Stop
from tests.experiments.jobs.fakes import (
    FakePool,
    Step,
    a_plan,
    dies,
    dies_and_returns,
    done,
    drawn,
    ends,
    evaluates,
    facts,
    fails_by,
    falls_silent,
    tells,
    waits,
)
from tests.experiments.small import Story


def play(pool: FakePool, *plans: Plan, story: Story | None = None, stop: Stop | None = None) -> Outcomes:
    return run_in_parallel(plans, pool, story or Story(), stop or Stop(), clock=pool.clock)


def plays(pool: FakePool) -> list[str]:
    """Which runs were given to which worker, in that order."""
    return [entry.removeprefix("play ") for entry in pool.log if entry.startswith("play ")]


def notes(story: Story) -> list[object]:
    return [told[1] for told in story.told if told[0] == "note"]


# -- who gets what ------------------------------------------------------------------------------------------


def test_the_first_world_is_drawn_alone_and_a_worker_keeps_the_one_that_it_has(tmp_path: Path) -> None:
    pool, story = FakePool(script={("a", 0): [evaluates(1.0), done()]}), Story()
    assert play(pool, a_plan(tmp_path, "abc"), story=story) == {"small": None}
    assert pool.log == [
        *("meet w0", "meet w1"),
        "draw a0 at w0",  # where the arms are checked
        "play a0 at w0",
        "draw a1 at w1",  # a0 is measured
        *("play a1 at w1", "play b0 at w0"),
        *("play c0 at w0", "play c1 at w1"),  # how long c takes is not known yet
        "play b1 at w0",  # no run of its own world is left
    ]
    assert sorted(story.ends) == [("done", arm, seed) for arm in "abc" for seed in (0, 1)]
    assert [job.check_arms for job in pool.given if job.is_draw] == [True, False]


def test_no_other_world_of_an_experiment_is_drawn_beside_its_first(tmp_path: Path) -> None:
    pool = FakePool(script={("a", 0): [waits, waits, done()]})
    pool.facts["w1"] = facts("w1", machine="other")  # where it need not wait for memory
    pool.draws[0] = deque([waits, waits, waits])
    play(pool, a_plan(tmp_path, "a"))
    assert pool.log[2:] == ["draw a0 at w0", "play a0 at w0", "draw a1 at w1", "play a1 at w1"]


def test_the_arm_that_took_longest_goes_first(tmp_path: Path) -> None:
    script = {("a", 0): [done(wall_s=2.0)], ("b", 0): [done(wall_s=9.0)], ("c", 0): [done(wall_s=5.0)]}
    pool = FakePool(["w0"], script)
    play(pool, a_plan(tmp_path, "abc"))
    assert plays(pool) == [f"{run} at w0" for run in ("a0", "b0", "c0", "b1", "c1", "a1")]


def test_experiments_of_a_folder_share_the_workers_and_each_is_finished_after_its_last_run(
    tmp_path: Path,
) -> None:
    plans = [a_plan(tmp_path, "ab", [0], "one"), a_plan(tmp_path, "c", [0], "two")]
    pool, finished = FakePool(), list[tuple[str, int]]()
    pool.facts["w1"] = facts("w1", machine="other")

    def finish(plan: Plan) -> None:
        finished.append((plan.experiment.name, len(plays(pool))))

    outcomes = run_in_parallel(plans, pool, Story(), Stop(), finish, pool.clock)
    assert outcomes == {"one": None, "two": None}
    assert pool.log[2:4] == ["draw a0 at w0", "draw c0 at w1"]  # as each is another experiment's first
    assert finished == [("two", 2), ("one", 3)]


def test_a_world_is_recorded_before_a_run_of_it_may_store_anything(tmp_path: Path) -> None:
    plan, pool = a_plan(tmp_path, "ab"), FakePool()
    recorded = []

    def look(job: Job) -> None:
        if not job.is_draw:
            manifest = json.loads(plan.directory.manifest_path.read_text())
            recorded.append(manifest["sha256"][str(job.run.seed)] == {"trace": str(job.run.seed)})

    pool.when_begun = look
    play(pool, plan)
    assert recorded == [True] * 4


def test_the_command_is_recorded_with_the_first_world_and_only_once(tmp_path: Path) -> None:
    command = Command(arguments=["driftscale", "run", "x.toml"], started="2026-01-31T12:00:00Z")
    plan = replace(a_plan(tmp_path, "ab"), command=command)
    play(FakePool(), plan)
    manifest = plan.directory.manifest()
    assert manifest is not None
    assert set(manifest.sha256) == {"0", "1"}
    assert manifest.commands == [command]


def test_runs_that_are_done_are_kept_and_nobody_is_met_for_them(tmp_path: Path) -> None:
    plan, story = a_plan(tmp_path, "ab", [0]), Story()
    for arm in "ab":
        plan.directory.start(arm, 0)
        plan.directory.mark_done(arm, 0, {"wall_s": 1.0})
    plan.directory.manifest_path.write_text("{}")
    pool = FakePool()
    assert play(pool, plan, story=story) == {"small": None}
    assert (story.told, pool.log) == ([("skipped", "a", 0), ("skipped", "b", 0)], [])


def test_no_run_begins_beside_one_of_which_nothing_is_known(tmp_path: Path) -> None:
    pool = FakePool(script={("a", 0): [waits, waits, evaluates(1.0), done()]})
    at_work: list[int] = []
    pool.when_begun = lambda job: at_work.append(len(pool.jobs))
    play(pool, a_plan(tmp_path, "a", [0, 1]))
    assert pool.log[2:] == ["draw a0 at w0", "play a0 at w0", "draw a1 at w1", "play a1 at w1"]
    assert at_work == [0, 0, 1, 0]


def test_when_memory_holds_fewer_runs_than_workers_a_line_says_so_once(tmp_path: Path) -> None:
    pool, story = FakePool(["w0", "w1", "w2"], {("a", 0): [evaluates(2.0 * 2**30), waits, done()]}), Story()
    for address in pool.present:
        pool.facts[address] = facts(address, available_bytes=7.0 * 2**30)  # of which 5.6 may be taken
    play(pool, a_plan(tmp_path, "a", [0, 1, 2]), story=story)
    assert notes(story) == [
        "host: memory for 2 runs at a time (the next needs about 2.5 GiB, and 5.6 GiB, 80% of what was "
        "available, may be taken)"
    ]
    assert len(plays(pool)) == 3


def test_runs_are_told_how_many_are_at_work_beside_them_on_their_machine(tmp_path: Path) -> None:
    pool = FakePool(["w0", "w1", "w2"], {("a", 0): [evaluates(1.0), *[waits] * 5, done()]})
    pool.facts["w2"] = facts("w2", machine="other")
    play(pool, a_plan(tmp_path, "a", [0, 1, 2]))
    beside = {job.run.seed: job.beside for job in pool.given if not job.is_draw}
    assert beside == {0: 0, 1: 0, 2: 1}
    assert pool.beside == [("w0", 1)]


# -- reports of workers -------------------------------------------------------------------------------------


def test_a_note_is_shown_once_whether_it_came_as_an_event_or_with_the_answer(tmp_path: Path) -> None:
    story = Story()
    step = ends("done", wall_s=1.0, peak_memory_bytes=1.0)

    def with_notes(pool: FakePool, address: str, job: Job) -> None:
        step(pool, address, job)
        ended = pool.events[-1]
        assert isinstance(ended, Ended)
        assert ended.result is not None
        ended.result["notes"].extend(["first", "second"])

    steps: list[Step] = [tells(note="first", number=1), with_notes]
    play(FakePool(script={("a", 0): steps}), a_plan(tmp_path, "a", [0]), story=story)
    assert notes(story) == ["first", "second"]


def test_a_resumed_run_and_its_rounds_are_reported(tmp_path: Path) -> None:
    story = Story()
    pool = FakePool(script={("a", 0): [tells(resumed=2), evaluates(1.0), done()]})
    play(pool, a_plan(tmp_path, "a", [0]), story=story)
    assert story.told == [("run", "a", 0), ("going on", "a", 0, 2)]
    assert [(reached.rounds, reached.closed_s, reached.accuracy) for reached in story.reached] == [
        (1, 10.0, 0.5)
    ]


def test_what_comes_late_is_dropped(tmp_path: Path) -> None:
    """Reports on the run before, the result of an earlier job, and events of a worker that is gone."""
    story, plan = Story(), a_plan(tmp_path, "ab", [0])
    pool = FakePool(["w0"], {("b", 0): [waits, done()]})
    first: list[Job] = []

    def send_late(job: Job) -> None:
        first.append(job)
        if job.run.arm == "b":
            pool.events.append(Told("w0", {"run": "small/a/0", "note": "late", "number": 1}))
            pool.events.append(Ended("w0", first[0], {"end": "failed", "why": "late", "notes": ["late"]}))
            pool.events.append(Ended("gone", job, None, "late"))
            pool.events.append(Told("gone", {"run": "small/b/0", "note": "late", "number": 1}))
            pool.events.append(Met("w0", facts("w0", refusal="late", is_busy=True)))

    pool.when_begun = send_late
    assert play(pool, plan, story=story) == {"small": None}
    assert story.ends == [("done", "a", 0), ("done", "b", 0)]
    assert notes(story) == []


# -- workers that are lost, silent, busy, refused ----------------------------------------------------------


def test_a_lost_worker_costs_its_own_run_only(tmp_path: Path) -> None:
    story = Story()
    script = {("a", 0): [evaluates(1.0), *[waits] * 8, done()], ("a", 1): [dies, done()]}
    pool = FakePool(["w0", "w1", "w2"], script)
    assert play(pool, a_plan(tmp_path, "a", [0, 1]), story=story) == {"small": None}
    assert plays(pool) == ["a0 at w0", "a1 at w1", "a1 at w2"]
    assert [(job.run.seed, job.lost) for job in pool.given if not job.is_draw] == [(0, 0), (1, 0), (1, 1)]
    assert notes(story) == [
        "a, seed 1: its worker was lost (its process ended); resuming from its last checkpoint"
    ]
    assert story.ends == [("left", "a", 1), ("done", "a", 1), ("done", "a", 0)]


def test_a_worker_that_is_lost_and_back_at_the_same_address_is_met_again(tmp_path: Path) -> None:
    pool = FakePool(["w0"], {("a", 0): [dies_and_returns, done()]})
    begun_s: list[float] = []
    pool.when_begun = lambda job: begun_s.append(pool.clock_s)
    assert play(pool, a_plan(tmp_path, "a", [0])) == {"small": None}
    assert begun_s[2] - begun_s[1] >= MEET_AGAIN_S  # until then the lost worker may still count as present
    assert pool.log == ["meet w0", "draw a0 at w0", "play a0 at w0", "meet w0", "play a0 at w0"]


def test_a_run_that_cost_three_workers_ends_all_and_can_be_resumed(tmp_path: Path) -> None:
    script: dict[tuple[str, int], list[Step]] = {
        ("a", 0): [evaluates(1.0), waits, dies_and_returns, dies_and_returns, dies_and_returns],
        ("a", 1): [waits] * 100,
    }
    pool, story = FakePool(["w0", "w1"], script), Story()
    with pytest.raises(ResumableError, match=r"^a, seed 0: 3 workers were lost over it, the last one: its p"):
        play(pool, a_plan(tmp_path, "ab"), story=story)
    assert [entry for entry in pool.log if entry.startswith("stop")] == ["stop w1"]
    assert ("left", "a", 1) in story.ends
    assert {run.split()[0] for run in plays(pool)} == {"a0", "a1"}
    assert len(notes(story)) == 2


def test_a_worker_lost_while_it_draws_is_forgiven_too(tmp_path: Path) -> None:
    pool, story = FakePool(["w0", "w1"]), Story()
    pool.draws[0] = deque([dies])
    assert play(pool, a_plan(tmp_path, "a", [0]), story=story) == {"small": None}
    assert pool.log[2:] == ["draw a0 at w0", "draw a0 at w1", "play a0 at w1"]
    assert story.ends == [("left", "a", 0), ("done", "a", 0)]


def test_a_silent_worker_is_replaced_after_its_time(tmp_path: Path) -> None:
    pool, story = FakePool(["w0"], {("a", 0): [falls_silent, done()]}), Story()
    replaced_s: list[float] = []

    def look(job: Job) -> None:
        replaced_s.append(pool.clock_s)

    pool.when_begun = look
    assert play(pool, a_plan(tmp_path, "a", [0], executor={"worker_timeout_s": 30}), story=story) == {
        "small": None
    }
    assert pool.log[-4:] == ["play a0 at w0", "replace w0", "meet w0'", "play a0 at w0'"]
    assert 30 < replaced_s[2] - replaced_s[1] < 31
    assert notes(story) == [
        "a, seed 0: its worker was lost (it gave no sign of life for 30 s); resuming from its last checkpoint"
    ]


def test_a_busy_worker_is_met_again_for_as_long_as_it_takes(tmp_path: Path) -> None:
    pool, story = FakePool(["w0"]), Story()
    pool.facts["w0"] = facts("w0", is_busy=True)

    def look() -> None:
        if pool.clock_s > 3600:
            pool.facts["w0"] = facts("w0")

    pool.when_waiting = look
    assert play(pool, a_plan(tmp_path, "a", [0], executor={"worker_timeout_s": 30}), story=story) == {
        "small": None
    }
    assert 3600 / (MEET_AGAIN_S + 1) < pool.log.count("meet w0") <= 3600 / MEET_AGAIN_S + 2
    assert notes(story) == ["worker w0 is busy with a run of another command until that ends"]


def test_a_worker_that_did_not_answer_is_met_again(tmp_path: Path) -> None:
    pool = FakePool(["w0"])
    answers: list[Facts | None] = [None, facts("w0")]
    pool.meet = lambda address: pool.events.append(Met(address, answers.pop(0)))  # type: ignore[method-assign]
    assert play(pool, a_plan(tmp_path, "a", [0])) == {"small": None}
    assert not answers
    assert pool.clock_s >= MEET_AGAIN_S


def test_a_worker_refused_at_the_start_is_bad_input_and_nothing_is_played(tmp_path: Path) -> None:
    """Also where it answers later than others."""
    pool, meet = FakePool(["w0", "w1"]), FakePool.meet
    late: list[str] = []
    pool.facts["w1"] = facts("w1", refusal="worker w1 has another driftscale")
    pool.meet = lambda address: late.append(address) if address == "w1" else meet(pool, address)  # type: ignore[method-assign]

    def look() -> None:
        if pool.clock_s > MET_S / 2 and late:
            meet(pool, late.pop())

    pool.when_waiting = look
    with pytest.raises(ConfigurationError, match=r"^worker w1 has another driftscale$"):
        play(pool, a_plan(tmp_path, "a"))
    assert pool.given == []


def test_a_worker_that_comes_while_the_first_world_is_drawn_and_is_refused_is_bad_input_too(
    tmp_path: Path,
) -> None:
    pool = FakePool(["w0"])
    pool.facts["w1"] = facts("w1", refusal="worker w1 has another driftscale")
    pool.draws[0] = deque([waits] * 9)
    pool.when_begun = lambda job: pool.present.append("w1")
    with pytest.raises(ConfigurationError, match=r"^worker w1 has another driftscale$"):
        play(pool, a_plan(tmp_path, "a"))
    assert plays(pool) == []


def test_a_worker_that_never_answers_holds_the_others_up_for_a_while_only(tmp_path: Path) -> None:
    pool, meet = FakePool(["w0", "w1"]), FakePool.meet
    pool.meet = lambda address: None if address == "w1" else meet(pool, address)  # type: ignore[method-assign]
    begun_s: list[float] = []
    pool.when_begun = lambda job: begun_s.append(pool.clock_s)
    assert play(pool, a_plan(tmp_path, "a", [0])) == {"small": None}
    assert MET_S <= begun_s[0] < MET_S + 1


def test_a_worker_that_comes_later_and_is_refused_is_left_out(tmp_path: Path) -> None:
    pool, story = FakePool(["w0"], {("a", 0): [waits, waits, waits, done()]}), Story()
    pool.facts["w1"] = facts("w1", refusal="worker w1 has another driftscale")
    pool.when_begun = lambda job: None if "w1" in pool.present else pool.present.append("w1")
    assert play(pool, a_plan(tmp_path, "a"), story=story) == {"small": None}
    assert pool.log.count("meet w1") == 1
    assert notes(story) == ["worker w1 has another driftscale; it is left out"]
    assert {at.split()[-1] for at in plays(pool)} == {"w0"}


def test_data_files_that_differ_on_a_worker_end_the_experiment_before_it_trains(tmp_path: Path) -> None:
    pool = FakePool()
    pool.refusal = "worker w1: labels.csv has changed"
    outcome = play(pool, a_plan(tmp_path, "ab"))["small"]
    assert isinstance(outcome, ConfigurationError)
    assert str(outcome) == "worker w1: labels.csv has changed"
    assert (pool.checked, plays(pool)) == (["w1"], [])


def test_other_libraries_are_noted_once(tmp_path: Path) -> None:
    pool, story = FakePool(["w0", "w1", "w2"]), Story()
    for address, torch in (("w0", "2.6"), ("w1", "2.7"), ("w2", "2.8")):
        pool.facts[address] = facts(address, rounding={"torch": torch, "CPU": "AVX2"})
    play(pool, a_plan(tmp_path, "a", [0]), story=story)
    assert notes(story) == [
        "worker w1 has torch 2.7, CPU AVX2, worker w0 torch 2.6, CPU AVX2: results may differ by rounding"
    ]


def test_without_any_worker_the_command_gives_up_resumably(tmp_path: Path) -> None:
    pool, story = FakePool([]), Story()
    plan = a_plan(tmp_path, "a", [0], executor={"worker_timeout_s": 40})
    with pytest.raises(ResumableError, match=r"^no worker came within 40 s \(executor\.worker_timeout_s\)"):
        play(pool, plan, story=story)
    assert 40 < pool.clock_s < 41
    assert notes(story) == ["no worker is present; waiting up to 40 s (executor.worker_timeout_s) for one"]


def test_a_run_that_another_process_is_at_is_tried_again(tmp_path: Path) -> None:
    held = ends("held", why="a, seed 0: another process (process 4711) is at work on it")
    pool, story = FakePool(["w0"], {("a", 0): [held, held, held, done()]}), Story()
    begun_s: list[float] = []
    pool.when_begun = lambda job: begun_s.append(pool.clock_s) if job.run.arm == "a" else None
    assert play(pool, a_plan(tmp_path, "ab", [0]), story=story) == {"small": None}
    assert plays(pool) == [f"{run} at w0" for run in ("a0", "b0", "a0", "a0", "a0")]
    assert all(later - earlier >= MEET_AGAIN_S for earlier, later in pairwise(begun_s[1:]))
    assert notes(story) == [
        "a, seed 0: another process (process 4711) is at work on it; it is tried again until that has ended"
    ]


# -- ends ---------------------------------------------------------------------------------------------------


def test_a_stop_reaches_every_worker_once_and_no_run_begins_after_it(tmp_path: Path) -> None:
    script: dict[tuple[str, int], list[Step]] = {
        ("a", 0): [evaluates(1.0), *[waits] * 9],
        ("a", 1): [waits] * 9,
    }
    pool, story, stop, finished = FakePool(script=script), Story(), Stop(), list[Plan]()
    pool.when_begun = lambda job: stop.leave_word() if (job.run.seed, job.is_draw) == (1, False) else None
    with pytest.raises(KeyboardInterrupt):
        run_in_parallel([a_plan(tmp_path, "ab")], pool, story, stop, finished.append, pool.clock)
    assert plays(pool) == ["a0 at w0", "a1 at w1"]
    assert pool.log[-2:] == ["stop w0", "stop w1"]
    assert sorted(story.ends) == [("left", "a", 0), ("left", "a", 1)]
    assert len(finished) == 1  # finished runs have results


def test_a_stop_while_a_world_is_drawn_begins_no_run_of_it(tmp_path: Path) -> None:
    pool, stop = FakePool(), Stop()
    pool.when_begun = lambda job: stop.leave_word()
    with pytest.raises(KeyboardInterrupt):
        play(pool, a_plan(tmp_path, "a"), stop=stop)
    assert pool.log[2:] == ["draw a0 at w0", "stop w0"]


def test_a_worker_that_is_shut_down_leaves_its_run_to_another(tmp_path: Path) -> None:
    pool, story = FakePool(["w0", "w1"], {("a", 0): [ends("stopped"), done()]}), Story()
    pool.when_begun = lambda job: pool.facts.update(w0=facts("w0", is_busy=True))
    assert play(pool, a_plan(tmp_path, "a", [0]), story=story) == {"small": None}
    assert plays(pool) == ["a0 at w0", "a0 at w1"]
    assert story.ends == [("left", "a", 0), ("done", "a", 0)]


MEETS_ALL = [
    ResumableError("out of memory"),
    MemoryError("2 GiB"),
    OSError(errno.ENOSPC, "No space left on device", "log.jsonl"),
    ZeroDivisionError("a part's mistake"),
]


@pytest.mark.parametrize("error", MEETS_ALL, ids=lambda error: type(error).__name__)
def test_an_error_that_would_meet_all_stops_those_at_work(tmp_path: Path, error: Exception) -> None:
    script: dict[tuple[str, int], list[Step]] = {
        ("a", 0): [evaluates(1.0), waits, fails_by(error)],
        ("a", 1): [waits] * 9,
    }
    pool, story = FakePool(script=script), Story()
    kind = PeerFaultError if isinstance(error, ZeroDivisionError) else type(error)
    with pytest.raises(kind, match=str(error.args[-1])):
        play(pool, a_plan(tmp_path, "ab"), story=story)
    assert plays(pool) == ["a0 at w0", "a1 at w1"]
    assert pool.log[-1] == "stop w1"
    assert sorted(story.ends) == [("left", "a", 0), ("left", "a", 1)]


def test_of_several_errors_that_meet_all_the_first_is_raised_and_each_worker_is_told_once(
    tmp_path: Path,
) -> None:
    def fail(pool: FakePool, address: str, job: Job) -> None:
        for number, at in enumerate(list(pool.jobs)[:2]):
            fails_by(ResumableError(f"number {number}"))(pool, at, pool.jobs[at])

    script: dict[tuple[str, int], list[Step]] = {
        ("a", 0): [evaluates(1.0), waits, waits, fail],
        ("a", 1): [waits] * 9,
        ("a", 2): [waits] * 9,
    }
    pool = FakePool(["w0", "w1", "w2"], script)
    with pytest.raises(ResumableError, match=r"^number 0$"):
        play(pool, a_plan(tmp_path, "a", [0, 1, 2]))
    stops = [entry for entry in pool.log if entry.startswith("stop")]
    assert stops == ["stop w1", "stop w2"]


def test_a_failed_run_leaves_the_others_and_is_named_at_the_end(tmp_path: Path) -> None:
    script = {("a", 1): [ends("failed", why="diverged")], ("b", 0): [ends("failed", why="all dropped")]}
    pool, story = FakePool(["w0"], script), Story()
    outcome = play(pool, a_plan(tmp_path, "ab"), story=story)["small"]
    assert isinstance(outcome, FailedRunsError)
    assert str(outcome).startswith("2 of 4 runs failed (b, seed 0; a, seed 1); finished runs are kept")
    assert len(plays(pool)) == 4
    assert ("failed", "a", 1, "diverged") in story.told
    assert sorted(story.ends) == [("done", "a", 0), ("done", "b", 1), ("left", "a", 1), ("left", "b", 0)]


OF_ONE = [CheckpointError("of another version"), ForeignFileError("log.jsonl: is a link")]


@pytest.mark.parametrize("error", OF_ONE, ids=lambda error: type(error).__name__)
def test_what_ends_one_experiment_leaves_the_others(tmp_path: Path, error: EmulatorError) -> None:
    """Its other runs are stopped and none is begun; those of a folder's other experiments continue."""
    bad, good = a_plan(tmp_path, "ab", name="bad"), a_plan(tmp_path, "c", [7], name="good")
    script: dict[tuple[str, int], list[Step]] = {
        ("a", 0): [evaluates(1.0), waits, waits, fails_by(error)],
        ("a", 1): [waits] * 9,
        ("c", 7): [evaluates(1.0), *[waits] * 9, done()],
    }
    pool, story, finished = FakePool(["w0", "w1", "w2"], script), Story(), list[Plan]()
    outcomes = run_in_parallel([bad, good], pool, story, Stop(), finished.append, pool.clock)
    assert outcomes["good"] is None
    assert (type(outcomes["bad"]), str(outcomes["bad"])) == (type(error), str(error))
    assert sorted(entry.split()[0] for entry in plays(pool)) == ["a0", "a1", "c7"]
    assert [entry for entry in pool.log if entry.startswith("stop")] == ["stop w1"]
    assert [plan.experiment.name for plan in finished] == ["bad", "good"]


@pytest.mark.parametrize("last", ["drawn", "lost", "held"])
def test_however_the_last_run_of_an_experiment_that_ended_leaves_it_is_finished_and_none_begins(
    tmp_path: Path, last: str
) -> None:
    steps: dict[str, list[Step]] = {
        "drawn": [],
        "lost": [waits, waits, waits, lambda pool, address, job: dies_and_returns(pool, address, job)],
        "held": [waits, waits, waits, ends("held", why="a, seed 1: another process is at work on it")],
    }
    pool = FakePool(script={("a", 0): [evaluates(1.0), waits, fails_by(CheckpointError("no"))]})
    finished: list[Plan] = []
    if last == "drawn":
        pool.draws[1] = deque([waits] * 4)
        pool.draws[1].append(lambda pool, address, job: pool.end_job(address, drawn(1)))
    else:
        pool.script["a", 1] = deque(steps[last])
    pool.stop = lambda addresses: None  # type: ignore[method-assign]  # it ends before the stop reaches it
    story = Story()
    outcomes = run_in_parallel([a_plan(tmp_path)], pool, story, Stop(), finished.append, pool.clock)
    assert isinstance(outcomes["small"], CheckpointError)
    assert not [note for note in notes(story) if "resuming from" in str(note)]
    assert sorted(plays(pool)) == (["a0 at w0"] if last == "drawn" else ["a0 at w0", "a1 at w1"])
    assert len(finished) == 1


def test_an_experiment_with_a_damaged_manifest_leaves_a_folders_others(tmp_path: Path) -> None:
    bad, good = a_plan(tmp_path, "a", name="bad"), a_plan(tmp_path, "b", name="good")
    bad.directory.start("a", 0)
    bad.directory.mark_done("a", 0, {"wall_s": 1.0})
    bad.directory.manifest_path.write_text('{"files": 3}')
    outcomes = play(FakePool(), bad, good)
    assert isinstance(outcomes["bad"], DataFileError)
    assert outcomes["good"] is None


def test_results_that_cannot_be_written_do_not_hide_why_the_command_ended(tmp_path: Path) -> None:
    def finish(plan: Plan) -> None:
        raise DataFileError("log.jsonl", "is damaged")

    pool = FakePool(script={("a", 0): [fails_by(ResumableError("the disk is full"))]})
    with pytest.raises(ResumableError, match="the disk is full"):
        run_in_parallel([a_plan(tmp_path)], pool, Story(), Stop(), finish, pool.clock)


# -- any order ----------------------------------------------------------------------------------------------

ENDS: dict[str, Callable[[], Step]] = {
    "done": done,
    "failed": lambda: ends("failed", why="diverged"),
    "held": lambda: ends("held", why="held"),
    "stopped": lambda: ends("stopped"),
    "waits": lambda: waits,
    "evaluates": lambda: evaluates(1.0),
    "silent": lambda: falls_silent,
    "dies": lambda: dies_and_returns,
}
"""What may happen to a run without ending others; three lost workers would (`silent`, `dies`)."""


@pytest.mark.slow
@given(data=st.data())
@settings(max_examples=30)
def test_whatever_happens_in_whatever_order_every_run_ends_once(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    plans = [
        a_plan(tmp_path_factory.mktemp("any"), "ab", [0, 1], name)
        for name in ("one", "two")[: data.draw(st.integers(1, 2))]
    ]
    runs = [("a", 0), ("a", 1), ("b", 0), ("b", 1)]
    kinds = st.lists(st.sampled_from([*ENDS]), max_size=5).filter(
        lambda names: sum(name in ("silent", "dies") for name in names) <= 2
    )
    workers = data.draw(st.integers(1, 3))
    pool = FakePool(
        [f"w{number}" for number in range(workers)],
        {run: [ENDS[name]() for name in data.draw(kinds)] for run in runs[: data.draw(st.integers(0, 4))]},
        one_by_one=lambda at_work: data.draw(st.sampled_from(at_work)),
    )
    for number in range(workers):
        pool.facts[f"w{number}"] = facts(f"w{number}", available_bytes=data.draw(st.sampled_from([2.0, 1e9])))
    story, finished = Story(), list[Plan]()
    worlds: list[tuple[str, int]] = []

    def look(job: Job) -> None:
        drawing = [world_of(other.run) for other in pool.jobs.values() if other.is_draw]
        assert world_of(job.run) not in drawing
        worlds.append(world_of(job.run))

    pool.when_begun = look
    outcomes = run_in_parallel(plans, pool, story, Stop(), finished.append, pool.clock)
    ended = [end[1:] for end in story.ends if end[0] == "done"]
    ended += [told[1:3] for told in story.told if told[0] == "failed"]
    assert sorted(ended) == sorted(runs * len(plans))
    assert all(outcome is None or isinstance(outcome, FailedRunsError) for outcome in outcomes.values())
    assert sorted(plan.experiment.name for plan in finished) == sorted(outcomes)
    assert not pool.jobs
