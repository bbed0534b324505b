from __future__ import annotations

from collections.abc import Sequence

import pytest

from benchmarks.figures import Target
from benchmarks.jobs import (
    FROZEN_DIGITS,
    JOBS,
    LONG_RUNS,
    Contest,
    Turn,
    command_figures,
    play,
    start_figure,
)
from emulator.errors import RunError
from experiments.reading import load_experiment

TINY = ("--set", "round.rounds=4", "--set", "trace.clients=20", "--set", "trace.drift.events=[]")


def ignore(text: str) -> None:
    pass


def test_the_frozen_digits_are_15_runs_of_250_rounds() -> None:
    experiment = load_experiment(FROZEN_DIGITS)
    assert [arm.name for arm in experiment.arm] == ["global", "static", "fielding"]
    assert (list(experiment.seeds), experiment.round.rounds) == ([0, 1, 2, 3, 4], 250)


def test_the_frozen_digits_are_their_own_and_follow_no_shipped_configuration() -> None:
    assert "extends" not in FROZEN_DIGITS.read_text()
    assert FROZEN_DIGITS.parent.name == "benchmarks"


def test_the_long_runs_are_eight() -> None:
    options = dict(zip(LONG_RUNS[::2], LONG_RUNS[1::2], strict=True))
    first, last = map(int, options["--seeds"].split(".."))
    assert len(options["--arms"].split(",")) * (last - first + 1) == 8


def turns(*pairs: tuple[float, float, float]) -> list[Turn]:
    return [Turn(*pair) for pair in pairs]


def test_figures_compare_turns_that_were_played_beside_each_other() -> None:
    contest = Contest()
    contest.turns[1] = turns((30.0, 26.0, 400e6), (60.0, 50.0, 410e6), (33.0, 26.0, 400e6))
    contest.turns[JOBS] = turns((20.0, 28.6, 420e6), (40.0, 55.0, 420e6), (20.0, 26.0, 460e6))
    wall, cpu, memory = command_figures("runs", contest, Target("ratio", 1.4, 1.65))
    assert (wall.name, wall.value, wall.unit, wall.ratio, wall.verdict) == (
        "runs",
        20.0,
        "s",
        pytest.approx(1.5),
        "reached",
    )
    assert (cpu.name, cpu.value, cpu.unit, cpu.verdict) == ("runs-cpu", pytest.approx(1.1), "x", "reached")
    assert (memory.name, memory.value, memory.unit, memory.verdict) == ("runs-memory", 20.0, "MB", "reached")


def test_more_cpu_or_memory_than_the_target_is_missed() -> None:
    contest = Contest()
    contest.turns[1] = turns((30.0, 26.0, 400e6))
    contest.turns[JOBS] = turns((25.0, 31.2, 481e6))
    assert [item.verdict for item in command_figures("runs", contest, Target("ratio", 1.4))] == ["missed"] * 3


def test_commands_take_turns_in_alternating_order(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[int, Sequence[str]]] = []

    def record_call(jobs: int, options: Sequence[str]) -> Turn:
        calls.append((jobs, options))
        return Turn(1.0, 1.0, 1.0)

    monkeypatch.setattr("benchmarks.jobs.play", record_call)
    contest = Contest(("--arms", "global"))
    contest.play(2, ignore)
    assert [jobs for jobs, _ in calls] == [JOBS, 1, 1, JOBS]
    assert {options for _, options in calls} == {("--arms", "global")}
    assert {jobs: len(played) for jobs, played in contest.turns.items()} == {1: 2, JOBS: 2}


@pytest.mark.sweep
@pytest.mark.slow
def test_a_turn_is_a_whole_command_with_the_costs_of_its_runs() -> None:
    turn = play(JOBS, (*TINY, "--seeds", "0,1", "--arms", "global"))
    assert 0 < turn.cpu_s < JOBS * turn.wall_s
    assert turn.peak_bytes > 50e6


@pytest.mark.slow
def test_a_command_that_fails_ends_the_bench_with_its_last_line() -> None:
    with pytest.raises(RunError, match=r"bench: the command with --jobs 1 failed: error: .*nobody"):
        play(1, ("--arms", "nobody"))


@pytest.mark.sweep
def test_the_start_is_the_time_until_two_workers_are_ready() -> None:
    start = start_figure(1)
    assert (start.name, start.unit, start.better) == ("runs-2-jobs-start", "s", "lower")
    assert 0 < start.value < 60
    assert start.target == Target("value", 3.0)
