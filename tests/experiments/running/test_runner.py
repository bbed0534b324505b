from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from emulator.errors import ConfigurationError, RunError, UnknownNameError
from emulator.storage.runlog import read_log
from executor.capability import cpu_capability
from experiments.build import World, build_world
from experiments.config import Arm, Experiment, parse_experiment
from experiments.locating import locator
from experiments.reading import load_experiment
from experiments.results.reading.run_directory import RunDirectory
from experiments.running import runner
from experiments.running.locking import RunAtWorkError, seed_locked
from experiments.running.machine import host_name
from experiments.running.plan import Reached, plan_run
from experiments.running.runner import run_plan
from tests.experiments.running.played import FINISHED, logs, play, stamps
from tests.experiments.small import (
    DEVICES,
    NEVER_AGAIN,
    WINDOWS,
    Story,
    as_parquet,
    replay,
    shuffled_rows,
    small,
    write_idx_folder,
    write_label_trace,
    write_small,
)
from tests.reliability.kills import PATIENCE_S, Killing
from traces.trace import Trace

# -- the same bytes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["stacked", "loop"])
def test_the_same_run_twice_has_the_same_bytes(tmp_path: Path, strategy: str) -> None:
    experiment = small(executor={"strategy": strategy}, seeds=[0, 1])
    for out in ("one", "two"):
        play(experiment, tmp_path / out)
    assert logs(tmp_path / "one") == logs(tmp_path / "two")
    assert len(set(logs(tmp_path / "one").values())) == 4
    assert f'"strategy":"{strategy}"' in logs(tmp_path / "one")["global/seed-0/log.jsonl"].decode()


def test_what_else_is_run_beside_it_changes_no_byte_of_a_run(tmp_path: Path) -> None:
    play(small(seeds=[0, 1]), tmp_path / "both")
    play(small(seeds=[1]), tmp_path / "alone", arms=["fielding"])
    [(name, alone)] = logs(tmp_path / "alone").items()
    assert logs(tmp_path / "both")[name] == alone


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("permuted", ["profile", "availability"])
def test_permuted_rows_of_a_device_table_change_nothing(tmp_path: Path, permuted: str, suffix: str) -> None:
    experiment = small(
        seeds=[0, 1],
        devices={"profile": f"profile.{suffix}", "availability": f"availability.{suffix}"},
        round={"rounds": 6},
    )
    tables = {"profile": DEVICES, "availability": WINDOWS}
    for name, text in tables.items():
        as_parquet_if(suffix, tmp_path / f"{name}.csv", text)
    play(experiment, tmp_path / "one", tmp_path)
    as_parquet_if(suffix, tmp_path / f"{permuted}.csv", shuffled_rows(tables[permuted]))
    play(experiment, tmp_path / "two", tmp_path)
    assert logs(tmp_path / "one") == logs(tmp_path / "two")


def as_parquet_if(suffix: str, csv: Path, text: str) -> None:
    csv.write_text(text)
    if suffix == "parquet":
        as_parquet(csv)


def test_permuted_rows_of_a_label_trace_change_nothing(tmp_path: Path) -> None:
    write_idx_folder(tmp_path / "images")
    table = write_label_trace(tmp_path / "labels.csv")
    experiment = parse_experiment(replay(), "replay")
    play(experiment, tmp_path / "one", tmp_path)
    table.write_text(shuffled_rows(table.read_text()))
    play(experiment, tmp_path / "two", tmp_path)
    assert logs(tmp_path / "one") == logs(tmp_path / "two")


def test_another_seed_is_another_run(tmp_path: Path) -> None:
    play(small(seeds=[0, 1]), tmp_path / "run")
    bodies = {name: log.split(b"\n", 1)[1] for name, log in logs(tmp_path / "run").items()}
    assert bodies["global/seed-0/log.jsonl"] != bodies["global/seed-1/log.jsonl"]


def test_wall_times_are_in_the_timing_alone(tmp_path: Path) -> None:
    play(small(), tmp_path / "run")
    timing = json.loads((tmp_path / "run/global/seed-0/timing.json").read_text())
    assert {"wall_s", "train_s", "evaluate_s", "cluster_s", "peak_memory_bytes"} <= set(timing)
    assert timing.pop("host") == host_name()
    assert timing.pop("cpu_capability") == cpu_capability()
    assert all(value > 0 for value in timing.values())
    log = logs(tmp_path / "run")["global/seed-0/log.jsonl"].decode()
    assert "wall" not in log
    assert "train_s" not in log


def test_timing_counts_what_a_clusterer_does_with_participants_and_the_scores_it_asks_for(
    tmp_path: Path,
) -> None:
    arm = {"name": "ifca", "clusterer": {"kind": "ifca", "num_models": 6, "first": "choose"}}
    play(small(arm=[arm]), tmp_path / "run")
    timing = json.loads((tmp_path / "run/ifca/seed-0/timing.json").read_text())
    assert timing["cluster_s"] > 0
    assert timing["score_s"] > 0
    parts_s = sum(timing[name] for name in ("train_s", "evaluate_s", "score_s", "cluster_s"))
    assert parts_s < timing["wall_s"]
    assert timing["cpu_s"] > 0


def test_each_round_is_reported_with_the_last_accuracy_that_is_known(tmp_path: Path) -> None:
    story = play(small(round={"rounds": 5, "evaluate_every": 3}), tmp_path / "run", arms=["global"])
    _, records = read_log(RunDirectory(tmp_path / "run").run_file("global", 0, "log.jsonl"))
    accuracies = [record.accuracy for record in records]
    assert [accuracy is None for accuracy in accuracies] == [True, True, False, True, False]
    known = [None, None, accuracies[2], accuracies[2], accuracies[4]]
    assert story.reached == [
        Reached(number + 1, record.closed_s, accuracy)
        for number, (record, accuracy) in enumerate(zip(records, known, strict=True))
    ]
    assert story.ends == [("done", "global", 0)]


# -- what is finished is kept -------------------------------------------------------------------------------


def test_a_finished_run_is_neither_run_again_nor_touched(tmp_path: Path) -> None:
    out = tmp_path / "run"
    first = play(small(), out)
    assert first.told == [("run", "global", 0), ("run", "fielding", 0)]
    assert first.rounds == 8
    before = stamps(out)
    second = play(small(), out)
    assert second.told == [("skipped", "global", 0), ("skipped", "fielding", 0)]
    assert stamps(out) == before


def test_new_seeds_and_new_arms_are_added_to_what_is_there(tmp_path: Path) -> None:
    out = tmp_path / "run"
    play(small(), out)
    before, old = stamps(out), logs(out)
    arms = [{"name": "global"}, {"name": "static", "clusterer": "static"}]
    story = play(small(seeds=[1, 0], arm=arms), out)
    assert [told for told in story.told if told[0] == "run"] == [
        ("run", "global", 1),
        ("run", "static", 1),
        ("run", "static", 0),
    ]
    assert stamps(out).items() >= before.items()
    assert logs(out).items() >= old.items()
    directory = RunDirectory(out)
    assert (directory.arms(), directory.seeds()) == (["global", "static", "fielding"], [0, 1])
    assert set(directory.manifest().sha256) == {"0", "1"}


def test_only_the_arms_that_were_asked_for_are_run_and_the_others_later(tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert play(small(), out, arms=["fielding", "fielding"]).told == [("run", "fielding", 0)]
    assert RunDirectory(out).arms() == ["global", "fielding"]
    assert play(small(), out).told == [("run", "global", 0), ("skipped", "fielding", 0)]
    with pytest.raises(UnknownNameError, match="--arms: unknown arm 'nobody'; choices: fielding, global"):
        play(small(), out, arms=["nobody"])


def test_a_run_that_another_process_is_at_work_on_is_left_for_later_and_the_others_run(
    tmp_path: Path,
) -> None:
    out, whole = tmp_path / "run", tmp_path / "whole"
    play(small(), whole)
    plan, story = plan_run(small(), out, None, locator(None, None), fresh=False), Story()
    with seed_locked(plan.directory, "global", 0):
        with pytest.raises(RunError) as ended:
            run_plan(plan, story)
        assert str(ended.value) == (
            f"{out}: other processes are at work on 1 of 2 runs (global, seed 0); give the command again "
            f"when they have ended"
        )
        at_work = "global, seed 0: another call in this process is at work on it"
        assert story.told == [("note", f"{at_work}; its files are left alone"), ("run", "fielding", 0)]
        assert not plan.directory.seed_path("global", 0).exists()
    assert play(small(), out).told == [("run", "global", 0), ("skipped", "fielding", 0)]
    assert logs(out) == logs(whole)


def test_a_run_that_another_process_has_finished_meanwhile_is_not_begun_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, whole = tmp_path / "run", tmp_path / "whole"
    play(small(), whole)

    @contextmanager
    def late(directory: RunDirectory, arm: str, seed: int) -> Iterator[None]:
        shutil.copytree(whole / arm, out / arm)
        with seed_locked(directory, arm, seed):
            yield

    monkeypatch.setattr(runner, "seed_locked", late)
    assert play(small(), out).told == [("skipped", "global", 0), ("skipped", "fielding", 0)]
    assert logs(out) == logs(whole)


def test_a_run_is_locked_until_it_is_marked_done_or_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked: list[tuple[str, str]] = []
    for name in ("start", "mark_done", "mark_failed"):
        method = getattr(RunDirectory, name)

        def watched(
            directory: RunDirectory, arm: str, seed: int, *more: Any, name: str = name, method: Any = method
        ) -> Any:
            result = method(directory, arm, seed, *more)
            with pytest.raises(RunAtWorkError), seed_locked(directory, arm, seed):
                pytest.fail(f"not locked at {name}")
            locked.append((arm, name))
            return result

        monkeypatch.setattr(RunDirectory, name, watched)
    arms = [{"name": "good"}, {"name": "bad", "solver": [{"kind": "sgd", "weight_decay": 1e38}]}]
    with pytest.raises(RunError, match=r"^1 of 2 runs failed"):
        play(small(arm=arms), tmp_path / "run")
    assert locked == [("good", "start"), ("good", "mark_done"), ("bad", "start"), ("bad", "mark_failed")]
    assert not list(tmp_path.rglob("*.lock"))


def test_an_attempt_that_did_not_end_is_done_again_from_its_start(tmp_path: Path) -> None:
    out = tmp_path / "run"
    play(small(), out)
    whole = logs(out)
    folder = out / "global/seed-0"
    (folder / "DONE").unlink()
    log = folder / "log.jsonl"
    log.write_bytes(log.read_bytes()[:1000])
    (folder / ".timing.json.123").touch()
    assert play(small(), out).told == [
        ("run", "global", 0),
        ("note", "global, seed 0: was begun and left no checkpoint, starting over"),
        ("skipped", "fielding", 0),
    ]
    assert logs(out) == whole
    assert {path.name for path in folder.iterdir()} == FINISHED


def test_large_traces_lie_in_the_run_directory_one_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("traces.tables.columns.MAPPED_FROM_BYTES", 1)
    monkeypatch.setattr("tempfile.gettempdir", lambda: pytest.fail("the system's folder is not asked for"))
    alive: weakref.WeakSet[Trace] = weakref.WeakSet()
    most, plain = 0, build_world

    def counted(*args: Any) -> World:
        nonlocal most
        world = plain(*args)
        alive.add(world.trace)
        most = max(most, len(alive))
        return world

    monkeypatch.setattr("experiments.running.runner.build_world", counted)
    out = tmp_path / "run"
    play(small(seeds=[0, 1, 2]), out)
    play(small(seeds=[0]), out, fresh=True)
    assert most == 1


# -- runs that fail -----------------------------------------------------------------------------------------


def test_a_run_that_fails_is_marked_with_its_reason_and_the_others_still_run(tmp_path: Path) -> None:
    (tmp_path / "w.csv").write_text(NEVER_AGAIN)
    out, story = tmp_path / "run", Story()
    experiment = small(devices={"availability": "w.csv"})
    with pytest.raises(RunError) as failed:
        run_plan(plan_run(experiment, out, None, locator(tmp_path, None), fresh=False), story)
    assert [told[:3] for told in story.told] == [
        ("run", "global", 0),
        ("failed", "global", 0),
        ("run", "fielding", 0),
        ("failed", "fielding", 0),
    ]
    assert story.ends == [("left", "global", 0), ("left", "fielding", 0)]
    directory = RunDirectory(out)
    reason = directory.failure("global", 0)
    assert reason is not None
    assert "of 12 clients are online" in reason
    assert str(failed.value) == (
        f"2 of 2 runs failed (global, seed 0; fielding, seed 0); finished runs are kept in {out}"
    )
    assert not directory.is_done("global", 0)
    assert (out / "global/seed-0/log.jsonl").exists()


def test_one_arm_that_diverges_takes_no_other_down_and_is_tried_again(tmp_path: Path) -> None:
    out = tmp_path / "run"
    bad = {"name": "bad", "solver": [{"kind": "sgd", "weight_decay": 1e38}]}
    experiment = small(arm=[{"name": "global"}, bad, {"name": "static", "clusterer": "static"}])
    for attempt in ("first", "second"):
        with pytest.raises(RunError, match=r"^1 of 3 runs failed \(bad, seed 0\); finished runs are kept in"):
            play(experiment, out)
        directory = RunDirectory(out)
        assert directory.reported_pairs() == [("global", 0), ("static", 0)], attempt
        assert "diverged" in str(directory.failure("bad", 0))
        assert not (out / "global/seed-0/FAILED").exists()


def test_an_error_of_any_kind_within_a_run_marks_that_run_and_the_others_still_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = runner.build_emulation

    def refuse_global(experiment: Experiment, arm: Arm, *others: Any) -> Any:
        if arm.name == "global":
            raise ConfigurationError("found out too late")
        return build(experiment, arm, *others)

    monkeypatch.setattr(runner, "build_emulation", refuse_global)
    with pytest.raises(RunError, match=r"^1 of 2 runs failed \(global, seed 0\)"):
        play(small(), tmp_path / "out")
    directory = RunDirectory(tmp_path / "out")
    assert directory.failure("global", 0) == "found out too late"
    assert directory.reported_pairs() == [("fielding", 0)]


def test_a_run_that_never_absorbs_an_update_is_no_result(tmp_path: Path) -> None:
    hurried = {
        "kind": "sync",
        "deadline_s": 0.989,
    }  # a visit takes 0.9907 s, and 0.9873 s but for its download
    with pytest.raises(RunError, match=r"^2 of 2 runs failed"):
        play(small(parts={"pacing": hurried}), tmp_path / "out")
    directory = RunDirectory(tmp_path / "out")
    assert not directory.reported_pairs()
    assert "no update was absorbed in any of 4 rounds" in (directory.failure("global", 0) or "")


def test_updates_that_are_not_finite_are_reported_at_the_end_of_their_run(tmp_path: Path) -> None:
    story = play(small(faults={"corrupt": 0.3}), tmp_path / "out", arms=["global"])
    [note] = [str(told[1]) for told in story.told if told[0] == "note"]
    records = RunDirectory(tmp_path / "out").read_run("global", 0).records
    rejected = sum(len(record.rejected) for record in records)
    assert note.startswith(f"global, seed 0: {rejected} times clients sent updates that were not finite")


def test_a_run_whose_clients_train_several_models_has_learnt_if_any_of_their_updates_was_finite(
    tmp_path: Path,
) -> None:
    masked = {"model": {"kind": "masked", "inner": "linear"}}
    arms = [{"name": "kue", "clusterer": "kue", "training": masked}]
    play(small(faults={"corrupt": 0.5}, arm=arms, round={"rounds": 3}), tmp_path / "out")
    records = RunDirectory(tmp_path / "out").read_run("kue", 0).records
    # Each client has an update that is not finite, and others that are.
    assert all(record.rejected == record.completed for record in records)
    assert all(record.train_loss is not None for record in records)


def test_a_run_of_which_every_update_was_corrupted_says_what_may_help(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"^2 of 2 runs failed"):
        play(small(faults={"corrupt": 1.0}, round={"rounds": 2}), tmp_path / "out")
    reason = RunDirectory(tmp_path / "out").failure("global", 0) or ""
    assert "no update was absorbed in any of 2 rounds, 6 times clients sent some that were not" in reason
    assert "a lower training.learning_rate or fewer faults.corrupt may help" in reason


def test_a_run_that_fails_before_it_has_a_folder_is_marked_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise ConfigurationError("no such executor")

    monkeypatch.setattr("experiments.running.runner.build_executor", refuse)
    with pytest.raises(RunError, match="2 of 2 runs failed"):
        play(small(), tmp_path / "out")
    assert RunDirectory(tmp_path / "out").failure("global", 0) == "no such executor"


def test_a_run_that_diverges_in_its_last_evaluation_is_marked_failed(tmp_path: Path) -> None:
    exploding = {"local_steps": 1, "learning_rate": 1e21, "model": "mlp"}
    with pytest.raises(RunError, match=r"^2 of 2 runs failed"):
        play(small(training=exploding, round={"rounds": 1}), tmp_path / "out")
    assert "training diverged" in (RunDirectory(tmp_path / "out").failure("fielding", 0) or "")


# -- processes that are ended from outside ------------------------------------------------------------------


SEVERAL: dict[str, Any] = {"round": {"rounds": 12}, "seeds": [0, 1]}


def started(config: Path, out: Path) -> subprocess.Popen[str]:
    """A run in a process of its own that has stopped, with one run finished and others to come."""
    killing = Killing(config, out, every_round=False)
    process = killing.start(f"stop_in_round({SEVERAL['round']['rounds'] + 5})", is_real=True)
    killing.wait_until_stopped(process)
    return process


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    out = tmp_path_factory.mktemp("uninterrupted") / "run"
    play(small(**SEVERAL), out)
    return logs(out)


def test_a_killed_process_leaves_finished_runs_whole_and_the_same_command_completes(
    tmp_path: Path, uninterrupted: dict[str, bytes]
) -> None:
    out = tmp_path / "run"
    config = write_small(tmp_path, **SEVERAL)
    with started(config, out) as process:
        process.kill()
        process.communicate()
    assert process.returncode == -signal.SIGKILL
    done = RunDirectory(out).reported_pairs()
    assert len(done) == 1
    kept = {f"{arm}/seed-{seed}/log.jsonl" for arm, seed in done}
    assert {name: log for name, log in logs(out).items() if name in kept} == {
        name: uninterrupted[name] for name in kept
    }
    before = {name: stamp for name, stamp in stamps(out).items() if any(item in name for item in kept)}

    story = play(load_experiment(config), out)
    assert [told for told in story.told if told[0] == "skipped"] == [
        ("skipped", arm, seed)
        for seed in SEVERAL["seeds"]
        for arm in ("global", "fielding")
        if (arm, seed) in done
    ]
    assert logs(out) == uninterrupted
    assert stamps(out).items() >= before.items()


def test_ctrl_c_ends_with_130_and_the_summary_of_what_is_finished(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with started(write_small(tmp_path, **SEVERAL), out) as process:
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGCONT)
        printed, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, errors
    assert "interrupted; finished runs are kept" in errors
    assert "Traceback" not in errors
    directory = RunDirectory(out)
    done = directory.reported_pairs()
    assert len(done) == 1
    summary: dict[str, Any] = json.loads(directory.summary_path.read_text())
    assert [seed for arm, seed in done if arm == "global"] == summary["arms"]["global"]["seed_ids"]
    assert os.fspath(directory.report_path) in printed
    assert directory.report_path.exists()
