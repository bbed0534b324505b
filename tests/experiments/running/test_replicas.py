"""Ranks as threads, each with a world of its own: one leads, the others follow."""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from emulator.errors import CheckpointError, ConfigurationError, ResumableError, RunError
from executor.executor import LocalExecutor
from executor.ranks import Ranks
from experiments.build import World, build_world
from experiments.config import Experiment
from experiments.results.reading.json_files import Until
from experiments.results.reading.run_directory import RunDirectory
from experiments.running import replicas
from experiments.running.plan import Plan, PlannedRun, Reached, plan_run
from experiments.running.replicas import follow
from experiments.running.runner import FailedRunsError, run_plan
from tests.executor.meeting import together
from tests.experiments.small import Story, drifting, small

TWO_SEEDS = {"seeds": [0, 1], "executor": {"chunk": 1}}


def lead(ranks: Ranks | None, experiment: Experiment, out: Path, progress: Story | None = None) -> Story:
    story = progress or Story()
    run_plan(plan_run(experiment, out, None, Path, fresh=False), story, ranks=ranks)
    return story


def by_ranks(
    size: int,
    experiment: Experiment,
    out: Path,
    progress: Story | None = None,
    following: Callable[[Ranks], None] | None = None,
    **options: Any,
) -> list[Any]:
    """How each rank ended: its error, or the story of rank 0 and None for the others."""
    follower = following or (lambda ranks: follow(ranks, Path, out.parent))

    def play(ranks: Ranks) -> Story | None:
        return lead(ranks, experiment, out, progress) if ranks.rank == 0 else follower(ranks)

    return together(size, play, **options)


def logs(out: Path) -> dict[str, bytes]:
    """The bytes of the log of each run, and of its models."""
    names = ("log.jsonl", "models.safetensors")
    files = (file for name in names for file in out.glob(f"*/seed-*/{name}"))
    return {str(file.relative_to(out)): file.read_bytes() for file in files}


@pytest.mark.parametrize("size", [1, 2, 3])
def test_logs_are_those_of_one_process_and_only_rank_0_has_a_run_directory(size: int, tmp_path: Path) -> None:
    experiment = small(**TWO_SEEDS)
    lead(None, experiment, tmp_path / "alone")
    story, *others = by_ranks(size, experiment, tmp_path / "together")
    assert isinstance(story, Story), story
    assert others == [None] * (size - 1)
    assert logs(tmp_path / "together") == logs(tmp_path / "alone")
    assert len(logs(tmp_path / "alone")) == 2 * 4
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"alone", "together"}


def test_what_clients_have_of_their_own_is_kept_by_ranks_as_by_one_process(tmp_path: Path) -> None:
    arms = [{"name": "ditto", "solver": ["ditto", "sgd"]}, {"name": "alone", "adaptation": "alone"}]
    experiment = small(arm=arms, round={"over_commit": 1}, executor={"chunk": 1})
    lead(None, experiment, tmp_path / "alone")
    story, other = by_ranks(2, experiment, tmp_path / "together")
    assert (type(story), other) == (Story, None)
    assert logs(tmp_path / "together") == logs(tmp_path / "alone")
    assert sum(b'"clients/' in content for content in logs(tmp_path / "alone").values()) == len(arms)


def test_several_uses_of_a_training_are_evaluated_by_ranks_as_by_one_process(tmp_path: Path) -> None:
    kept = {"kind": "tuned", "again": "data"}
    arms = [{"name": name, "adaptation": use} for name, use in (("a", "none"), ("b", "prior"), ("c", kept))]
    experiment = small(arm=arms, executor={"chunk": 1})
    lead(None, experiment, tmp_path / "alone")
    by_ranks(2, experiment, tmp_path / "together")
    assert logs(tmp_path / "together") == logs(tmp_path / "alone")
    plan = plan_run(experiment, tmp_path / "resumed", None, Path, fresh=False)
    assert [run.arms for run in plan.runs()] == [("a", "b", "c")]
    run_plan(replace(plan, until=2), Story())
    story, other = by_ranks(2, experiment, tmp_path / "resumed")
    assert (("going on", "a", 0, 2) in story.told, other) == (True, None)
    assert logs(tmp_path / "resumed") == logs(tmp_path / "alone")


def test_models_that_ranks_measure_by_concept_are_measured_as_by_one_process(tmp_path: Path) -> None:
    experiment = drifting(seeds=[0], round={"log_model_accuracy": True})
    lead(None, experiment, tmp_path / "alone")
    by_ranks(2, experiment, tmp_path / "together")
    written = logs(tmp_path / "alone").items()
    counts = {log.count(b'"accuracy_by_concept":{"0":[') for name, log in written if name.endswith("jsonl")}
    assert counts == {2}  # at the end of each data step
    assert logs(tmp_path / "together") == logs(tmp_path / "alone")


def test_a_run_that_was_stored_is_resumed_by_ranks_and_the_other_way_round(tmp_path: Path) -> None:
    experiment = small(**TWO_SEEDS)
    lead(None, experiment, tmp_path / "alone")
    out = tmp_path / "out"

    class Stopping(Story):
        stop_requested = False

        def round_done(self, run: PlannedRun, reached: Reached) -> None:
            super().round_done(run, reached)
            self.stop_requested = self.rounds % 3 == 0

    stories = []
    for attempt in range(20):
        progress = Stopping()
        size = 1 + attempt % 3
        wants_stop = [lambda progress=progress: progress.stop_requested, *[lambda: False] * 2]
        ended = by_ranks(size, experiment, out, progress, wants_stop=wants_stop)
        stories.append(progress)
        if isinstance(ended[0], Story):
            break
        assert [type(error) for error in ended] == [KeyboardInterrupt] * size
    assert logs(out) == logs(tmp_path / "alone")
    resumed = [told for story in stories for told in story.told if told[0] == "going on"]
    assert len(resumed) >= 3


def test_all_ranks_stop_at_the_same_round_and_go_on(tmp_path: Path) -> None:
    experiment, directory = small(), RunDirectory(tmp_path / "out")
    lead(None, experiment, tmp_path / "alone")
    for until in (2, 3, 3, None):
        plan = replace(plan_run(experiment, directory.path, None, Path, fresh=False), until=until)

        def play(ranks: Ranks, plan: Plan = plan) -> None:
            run_plan(plan, Story(), ranks=ranks) if ranks.rank == 0 else follow(ranks, Path, tmp_path)

        assert together(3, play) == [None] * 3
        stopped = None if until is None else Until(rounds=until, planned=4)
        assert [directory.until(arm, 0) for arm in directory.arms()] == [stopped] * 2
    assert logs(directory.path) == logs(tmp_path / "alone")


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_any_rank_stops_all_and_the_run_is_stored(rank: int, tmp_path: Path) -> None:
    counts = iter(range(1000))
    wants_stop = [lambda: False] * 3
    wants_stop[rank] = lambda: next(counts) > 6
    ended = by_ranks(3, small(**TWO_SEEDS), tmp_path / "out", wants_stop=wants_stop)
    assert [type(error) for error in ended] == [KeyboardInterrupt] * 3
    assert RunDirectory(tmp_path / "out").checkpoints("global", 0).files()


@pytest.mark.parametrize("what", ["trace", "fleet", "availability"])
def test_a_rank_with_another_world_is_named_in_all(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Other(World):
        def fingerprint(self) -> dict[str, str]:
            return {**super().fingerprint(), what: "another"}

    def build(*arguments: Any) -> World:
        return Other(**vars(build_world(*arguments)))

    monkeypatch.setattr(replicas, "build_world", build)
    for error in by_ranks(2, small(), tmp_path / "out"):
        assert isinstance(error, ConfigurationError)
        assert str(error).startswith(f"rank 1: the {what} of seed 0 is not that of rank 0")


def test_a_run_that_diverges_is_marked_failed_and_all_ranks_play_the_next(tmp_path: Path) -> None:
    arms = [
        {
            "name": "bad",
            "training": {"learning_rate": 1e30},
            "solver": [{"kind": "sgd", "weight_decay": 1e30}],
        },
        {"name": "good"},
    ]
    experiment = small(arm=arms, seeds=[0, 1], executor={"chunk": 1})
    ended = by_ranks(3, experiment, tmp_path / "out")
    assert isinstance(ended[0], FailedRunsError)
    assert "2 of 4 runs failed" in str(ended[0])
    assert ended[1:] == [None, None]
    directory = RunDirectory(tmp_path / "out")
    assert directory.reported_pairs() == [("good", 0), ("good", 1)]
    assert "diverged" in str(directory.failure("bad", 0))


def failing(error: BaseException) -> Callable[..., LocalExecutor]:
    """Builds executors that fail in their third wave."""
    build = replicas.build_executor
    waves = iter(range(100))

    def build_failing(*arguments: Any) -> LocalExecutor:
        local = build(*arguments)
        train = local.train_groups

        def fail(*given: Any) -> Any:
            if next(waves) == 2:
                raise error
            return train(*given)

        local.train_groups = fail  # type: ignore[method-assign]
        return local

    return build_failing


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (OSError(errno.EIO, "Input/output error", "images"), ResumableError, "images: Input/output error"),
        (MemoryError(), ResumableError, "stopped in round 2: out of memory"),
        (CheckpointError("no state"), CheckpointError, "no state"),
        (ZeroDivisionError("by zero"), Exception, "in rank 1 of 2: ZeroDivisionError: by zero"),
    ],
)
def test_what_the_machine_does_to_a_rank_ends_all_and_rank_0_reports_it(
    error: Exception, kind: type[Exception], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicas, "build_executor", failing(error))
    first, second = by_ranks(2, small(**TWO_SEEDS), tmp_path / "out")
    assert isinstance(first, kind)
    assert text in str(first)
    assert isinstance(second, type(error))
    assert not RunDirectory(tmp_path / "out").run_file("global", 0, "FAILED").exists()


def test_a_mistake_in_a_part_of_one_rank_marks_the_run_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicas, "build_executor", failing(RunError("of this run")))
    ended = by_ranks(2, small(**TWO_SEEDS), tmp_path / "out")
    assert isinstance(ended[0], FailedRunsError)
    assert "1 of 4 runs failed (global, seed 0)" in str(ended[0])
    assert ended[1] is None


def test_what_rank_0_alone_meets_ends_the_others(tmp_path: Path) -> None:
    class Full(Story):
        def round_done(self, run: PlannedRun, reached: Reached) -> None:
            super().round_done(run, reached)
            if self.rounds == 3:
                raise OSError(errno.ENOSPC, "No space left on device", "log.jsonl")

    ended = by_ranks(3, small(**TWO_SEEDS), tmp_path / "out", Full())
    for error in ended:
        assert isinstance(error, ResumableError)
        assert "global, seed 0 stopped in round 3: log.jsonl: No space left on device" in str(error)


def test_what_ends_rank_0_between_runs_ends_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise ConfigurationError("files changed since")

    monkeypatch.setattr("experiments.running.runner.write_manifest", refuse)
    for error in by_ranks(2, small(), tmp_path / "out"):
        assert type(error) is ConfigurationError
        assert str(error) == "files changed since"


def test_a_rank_that_is_gone_stops_the_run_which_can_be_resumed(tmp_path: Path) -> None:
    def leave(ranks: Ranks) -> None:
        exchange, calls = ranks.exchange, iter(range(100))

        def leaving(*arguments: Any, **named: Any) -> Any:
            if next(calls) == 9:
                raise SystemExit
            return exchange(*arguments, **named)

        ranks.exchange = leaving  # type: ignore[method-assign]
        ranks.telling = lambda **_: nullcontext()  # type: ignore[method-assign, assignment]
        follow(ranks, Path, tmp_path)

    first, _ = by_ranks(2, small(**TWO_SEEDS), tmp_path / "out", following=leave)
    assert isinstance(first, ResumableError)
    assert "rank 1 is gone" in str(first)
    assert "when the command is given again" in str(first)


def test_what_all_ranks_spend_is_counted_and_the_timeout_is_that_of_the_configuration(tmp_path: Path) -> None:
    experiment = small(executor={"chunk": 1, "worker_timeout_s": 77.0})
    timeouts = []

    def following(ranks: Ranks) -> None:
        follow(ranks, Path, tmp_path)
        timeouts.append(ranks.timeout_s)

    seconds = iter(range(10_000))
    spent = [lambda: (0.0, 0.0), lambda: (float(next(seconds)), 7e12)]
    by_ranks(2, experiment, tmp_path / "out", following=following, spent=spent)
    timing = RunDirectory(tmp_path / "out").read_timing("global", 0)
    assert timing.cpu_s > 5
    assert 7e12 < timing.peak_memory_bytes < 8e12
    assert timeouts == [77.0]


def test_a_finished_run_directory_leads_to_nothing(tmp_path: Path) -> None:
    experiment = small(**TWO_SEEDS)
    lead(None, experiment, tmp_path / "out")
    story, other = by_ranks(2, experiment, tmp_path / "out")
    assert {told[0] for told in story.told} == {"skipped"}
    assert other is None
