"""Runs that several cells of a sweep have: who plays them, and what the others adopt."""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from emulator.errors import RunError
from experiments.reading import load_experiment
from experiments.results.reading import run_directory
from experiments.results.reading.json_files import Until
from experiments.results.reading.run_directory import RunDirectory
from experiments.running.folder import plan_folder, run_folder
from experiments.running.locking import seed_locked
from experiments.running.members import Member, load_members, read_configuration
from experiments.running.plan import Plan, PlannedRun, Reached
from experiments.running.sharing import share_out, sharing
from experiments.running.stop import Stop
from tests.experiments.running.played import FINISHED, logs, models, play, stamps
from tests.experiments.small import Story, write_small

THRESHOLD = "arm.fielding.clusterer.trigger.threshold"
LOW, HIGH = "small,threshold=0.1", "small,threshold=0.25"


class Tale(Story):
    """A story in which runs that begin, or are kept, have the names of their experiments; asks to stop."""

    def __init__(self, stop: Stop | None = None) -> None:
        super().__init__()
        self.stop = stop
        self.played: list[tuple[str, str, int]] = []
        self.kept: list[tuple[str, str, int]] = []
        self.finished: list[str] = []

    def begun(self, run: PlannedRun) -> None:
        self.played.append((run.experiment, run.arm, run.seed))

    def skipped(self, run: PlannedRun, until: object = None) -> None:
        self.kept.append((run.experiment, run.arm, run.seed))

    def round_done(self, run: PlannedRun, reached: Reached) -> None:
        if self.stop is not None:
            self.stop.request()


def a_sweep(folder: Path, *sweep: str, arms: Sequence[str] | None = None, **changes: Any) -> list[Member]:
    configuration = read_configuration(
        write_small(folder, **changes), sweep=sweep or [f"{THRESHOLD}=0.1,0.25"]
    )
    return load_members([configuration], arms)


def play_all(
    members: Sequence[Member],
    out: Path,
    *,
    fresh: bool = False,
    stop: Stop | None = None,
    tale: Tale | None = None,
    until: int | None = None,
) -> tuple[Tale, list[str]]:
    """Run the members; the story of it, and the names of those that were finished, in order."""
    tale = tale or Tale(stop)
    tale.finished = finished = list[str]()

    def finish(plan: Plan) -> None:
        missing = [pair for pair in plan.pairs() if not plan.directory.is_done(*pair)]
        finished.append(f"{plan.experiment.name} without {missing}" if missing else plan.experiment.name)

    plans = [replace(plan, until=until) for plan in plan_folder(members, out, fresh=fresh)]
    with sharing(plans, finish, tale.note) as when_ended:
        run_folder(plans, tale, when_ended, stop)
    return tale, finished


def manifest(out: Path, name: str) -> Any:
    return json.loads((out / name / "manifest.json").read_text())


# -- who plays what ------------------------------------------------------------------------------------------


def test_an_arm_that_no_swept_key_touches_is_played_once_and_the_results_of_each_cell_are_made_once(
    tmp_path: Path,
) -> None:
    tale, finished = play_all(a_sweep(tmp_path, seeds=[0, 1]), tmp_path / "out")
    assert tale.played == [
        *((LOW, "global", 0), (LOW, "fielding", 0), (LOW, "global", 1), (LOW, "fielding", 1)),
        *((HIGH, "fielding", 0), (HIGH, "fielding", 1)),
    ]
    assert finished == [LOW, HIGH]
    assert [len(list((tmp_path / "out" / name).glob("*/seed-*/DONE"))) for name in (LOW, HIGH)] == [4, 4]


def test_the_global_model_is_played_once_for_each_number_of_participants(tmp_path: Path) -> None:
    members = a_sweep(tmp_path, f"{THRESHOLD}=0.1,0.25,0.5", "round.participants=2,3")
    tale, finished = play_all(members, tmp_path / "out")
    assert [name for name, arm, _ in tale.played if arm == "global"] == [
        f"{LOW},participants=2",
        f"{LOW},participants=3",
    ]
    assert len(tale.played) == 2 + 6
    assert finished == [member.experiment.name for member in members]


def test_a_copy_is_to_the_byte_what_the_cell_would_have_played_itself(tmp_path: Path) -> None:
    play_all(a_sweep(tmp_path, seeds=[0, 1]), tmp_path / "out")
    alone = load_experiment(tmp_path / "out" / HIGH / "experiment.toml")
    play(alone, tmp_path / "alone")
    assert logs(tmp_path / "alone") == logs(tmp_path / "out" / HIGH)
    assert models(tmp_path / "alone") == models(tmp_path / "out" / HIGH)


def test_a_run_that_was_stopped_is_copied_with_all_that_it_resumes_from(tmp_path: Path) -> None:
    members = a_sweep(tmp_path, round={"log_visits": True})
    tale, _ = play_all(members, tmp_path / "out", until=2)
    assert tale.played == [(LOW, "global", 0), (LOW, "fielding", 0), (HIGH, "fielding", 0)]
    assert RunDirectory(tmp_path / "out" / HIGH).read_run("global", 0).until == Until(rounds=2, planned=4)
    shutil.rmtree(tmp_path / "out" / LOW)
    cell = tmp_path / "out" / HIGH
    story = play(load_experiment(cell / "experiment.toml"), cell)
    assert [told[0] for told in story.told].count("going on") == 2
    play_all(members, tmp_path / "whole")
    assert logs(cell) == logs(tmp_path / "whole" / HIGH)


def test_a_cell_is_an_ordinary_run_directory_that_needs_no_other(tmp_path: Path) -> None:
    play_all(a_sweep(tmp_path), tmp_path / "out")
    shutil.rmtree(tmp_path / "out" / LOW)
    cell = tmp_path / "out" / HIGH
    before = stamps(cell)
    story = play(load_experiment(cell / "experiment.toml"), cell)
    assert [told[0] for told in story.told] == ["skipped", "skipped"]
    assert stamps(cell) == before
    assert not [
        path for path in cell.rglob("*") if path.is_symlink() or (path.is_file() and path.stat().st_nlink > 1)
    ]


def test_the_manifest_of_a_cell_has_its_place_in_the_sweep_and_the_world_of_each_seed(tmp_path: Path) -> None:
    play_all(a_sweep(tmp_path, arms=["global", "fielding"]), tmp_path / "out")
    low, high = manifest(tmp_path / "out", LOW), manifest(tmp_path / "out", HIGH)
    order = {THRESHOLD: [0.1, 0.25]}
    assert low.pop("sweep") == {"of": "small", "keys": {THRESHOLD: 0.1}, "order": order}
    assert high.pop("sweep") == {"of": "small", "keys": {THRESHOLD: 0.25}, "order": order}
    assert low == high
    play(load_experiment(tmp_path / "out" / HIGH / "experiment.toml"), tmp_path / "out" / HIGH)
    recorded = {"of": "small", "keys": {THRESHOLD: 0.25}, "order": order}
    assert manifest(tmp_path / "out", HIGH)["sweep"] == recorded


def test_a_cell_that_adopts_all_its_runs_records_their_world(tmp_path: Path) -> None:
    [low, high] = a_sweep(tmp_path)
    members = [low, replace(high, arms=["global"])]
    tale, finished = play_all(members, tmp_path / "out")
    assert tale.played == [(LOW, "global", 0), (LOW, "fielding", 0)]
    assert finished == [LOW, HIGH]
    assert manifest(tmp_path / "out", HIGH)["sha256"] == manifest(tmp_path / "out", LOW)["sha256"]
    assert manifest(tmp_path / "out", HIGH)["sweep"]["keys"] == {THRESHOLD: 0.25}


# -- what is there already -----------------------------------------------------------------------------------


def test_a_sweep_that_grows_adopts_what_any_of_its_cells_has_finished(tmp_path: Path) -> None:
    play_all(a_sweep(tmp_path, f"{THRESHOLD}=0.25"), tmp_path / "out")
    before = stamps(tmp_path / "out" / HIGH)
    tale, finished = play_all(a_sweep(tmp_path), tmp_path / "out")
    assert tale.played == [(LOW, "fielding", 0)]
    assert tale.kept == [(HIGH, "global", 0), (HIGH, "fielding", 0)]
    assert finished == [LOW, HIGH]
    assert stamps(tmp_path / "out" / HIGH) == before
    more, _ = play_all(a_sweep(tmp_path, seeds=[0, 1]), tmp_path / "out")
    assert more.played == [(LOW, "global", 1), (LOW, "fielding", 1), (HIGH, "fielding", 1)]


def test_copies_that_are_there_stay(tmp_path: Path) -> None:
    play_all(a_sweep(tmp_path), tmp_path / "out")
    before = {name: stamps(tmp_path / "out" / name) for name in (LOW, HIGH)}
    tale, _ = play_all(a_sweep(tmp_path), tmp_path / "out")
    assert (tale.played, len(tale.kept)) == ([], 3)
    assert {name: stamps(tmp_path / "out" / name) for name in (LOW, HIGH)} == before


def test_a_checkpoint_decides_who_plays_a_run_and_one_beside_a_finished_run_is_deleted(
    tmp_path: Path,
) -> None:
    members = a_sweep(tmp_path)
    plans = plan_folder(members, tmp_path / "out", fresh=False)
    checkpoints = plans[1].directory.checkpoints("global", 0)
    plans[1].directory.start("global", 0)
    checkpoints.write(1, {"a": 1})
    identities = [member.identities for member in members]
    assert [plan.adopted for plan in share_out(plans, identities)] == [
        {("global", 0): plans[1].directory},
        {},
    ]
    play_all(members[:1], tmp_path / "out")
    tale, _ = play_all(members, tmp_path / "out")
    assert tale.played == [(HIGH, "fielding", 0)]
    assert not checkpoints.path.exists()
    assert (
        logs(tmp_path / "out" / HIGH)["global/seed-0/log.jsonl"]
        == logs(tmp_path / "out" / LOW)["global/seed-0/log.jsonl"]
    )


def test_fresh_plays_everything_again(tmp_path: Path) -> None:
    first, _ = play_all(a_sweep(tmp_path), tmp_path / "out")
    again, finished = play_all(a_sweep(tmp_path), tmp_path / "out", fresh=True)
    assert again.played == first.played
    assert finished == [LOW, HIGH]


def test_versions_of_an_adopted_run_are_recorded_with_it(tmp_path: Path) -> None:
    play_all(a_sweep(tmp_path, f"{THRESHOLD}=0.25"), tmp_path / "out")
    recorded = manifest(tmp_path / "out", HIGH)
    now, old = recorded["versions"], {**recorded["versions"], "torch": "1.0"}
    (tmp_path / "out" / HIGH / "manifest.json").write_text(json.dumps({**recorded, "versions": old}))
    play_all(a_sweep(tmp_path), tmp_path / "out")
    low = manifest(tmp_path / "out", LOW)
    assert (low["versions"], low["later_versions"]) == (old, [now])


def test_cells_that_an_earlier_command_has_finished_are_finished_again_when_nothing_waits(
    tmp_path: Path,
) -> None:
    [low, high] = a_sweep(tmp_path)
    play_all([low], tmp_path / "out")
    RunDirectory(tmp_path / "out" / LOW).summary_path.write_text("{}")
    _, finished = play_all([low, high], tmp_path / "out")
    assert finished == [HIGH, LOW]
    tale = Tale(Stop())
    more = a_sweep(tmp_path, f"{THRESHOLD}=0.1,0.5")
    with pytest.raises(KeyboardInterrupt):
        play_all(more, tmp_path / "out", stop=tale.stop, tale=tale)
    assert tale.finished == ["small,threshold=0.5 without [('fielding', 0)]"]


# -- what goes wrong -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [0, 1, 2, 3, 4])
def test_a_copy_that_a_kill_cuts_short_has_no_done_and_is_made_by_the_same_command(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = a_sweep(tmp_path)
    play_all(members[:1], tmp_path / "out")
    [low, high] = [plan.directory for plan in plan_folder(members, tmp_path / "out", fresh=False)]
    copies = iter(range(number))

    def is_cut_short(source: Path, path: Path) -> None:
        if next(copies, None) is None:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        whole(source, path)

    whole = run_directory.copy_durably
    monkeypatch.setattr(run_directory, "copy_durably", is_cut_short)
    with pytest.raises(OSError, match="No space left"):
        high.copy_run(low, "global", 0)
    folder = tmp_path / "out" / HIGH / "global" / "seed-0"
    copied = ["log.jsonl", "clients.parquet", "models.safetensors", "timing.json"][:number]
    assert sorted(file.name for file in folder.iterdir()) == sorted(copied)
    with pytest.raises(OSError, match="No space left"):
        play_all(members, tmp_path / "out")
    assert not high.is_done("global", 0)
    monkeypatch.setattr(run_directory, "copy_durably", whole)
    tale, finished = play_all(members, tmp_path / "out")
    assert (tale.played, finished) == ([(HIGH, "fielding", 0)], [LOW, HIGH])
    assert {file.name for file in folder.iterdir()} == FINISHED


def test_a_shared_run_that_fails_is_counted_once_and_its_adopters_have_no_run(tmp_path: Path) -> None:
    arms = [
        {"name": "global", "training": {"learning_rate": 1e38}},
        {"name": "fielding", "clusterer": {"kind": "fielding", "max_clusters": 3}},
    ]
    for _ in range(2):  # the same command tries it again
        tale = Tale()
        with pytest.raises(RunError, match=rf"^1 of 2 experiments failed: {LOW}$"):
            play_all(a_sweep(tmp_path, arm=arms), tmp_path / "out", tale=tale)
        assert [told[:2] for told in tale.told if told[0] == "failed"] == [("failed", "global")]
        assert (LOW, "global", 0) in tale.played
    assert ("note", f"not complete: {HIGH}: global, seed 0 failed in {LOW}") in tale.told
    directory = RunDirectory(tmp_path / "out" / HIGH)
    assert directory.reported_pairs() == [("fielding", 0)]
    assert directory.failure("global", 0) is None
    assert tale.finished == [f"{LOW} without [('global', 0)]", f"{HIGH} without [('global', 0)]"]


def test_a_run_that_cannot_be_adopted_is_reported_and_adopted_by_the_same_command(tmp_path: Path) -> None:
    members = a_sweep(tmp_path)
    with (
        seed_locked(RunDirectory(tmp_path / "out" / HIGH), "global", 0),
        pytest.raises(
            RunError, match=rf"^1 of 2 experiments are not complete \({HIGH}: global, seed 0: another"
        ),
    ):
        play_all(members, tmp_path / "out")
    tale, finished = play_all(members, tmp_path / "out")
    assert (tale.played, finished) == ([], [LOW, HIGH])


def test_a_run_of_another_world_is_not_adopted(tmp_path: Path) -> None:
    [low, high] = a_sweep(tmp_path)
    play_all([low], tmp_path / "out")
    play_all([replace(high, arms=["fielding"])], tmp_path / "out")
    recorded = manifest(tmp_path / "out", HIGH)
    recorded["sha256"]["0"]["fleet"] = "0" * 64
    (tmp_path / "out" / HIGH / "manifest.json").write_text(json.dumps(recorded))
    with pytest.raises(
        RunError, match=r"not complete .*the fleet of seed 0 is not the one its runs were begun"
    ):
        play_all([low, high], tmp_path / "out")
    assert not RunDirectory(tmp_path / "out" / HIGH).is_done("global", 0)


@pytest.mark.parametrize("damage", ["missing", "cut short"])
def test_a_run_with_a_damaged_file_is_not_copied_and_stops_nothing_else(tmp_path: Path, damage: str) -> None:
    [low] = a_sweep(tmp_path, f"{THRESHOLD}=0.1")
    play_all([low], tmp_path / "out")
    log = tmp_path / "out" / LOW / "global/seed-0/log.jsonl"
    if damage == "missing":
        log.unlink()
    else:
        log.write_bytes(log.read_bytes()[:100])
    with pytest.raises(RunError, match=rf"not complete \({HIGH}: .*{LOW}/global/seed-0/log\.jsonl"):
        play_all(a_sweep(tmp_path), tmp_path / "out")
    high = RunDirectory(tmp_path / "out" / HIGH)
    assert high.reported_pairs() == [("fielding", 0)]


def test_a_run_made_with_another_file_is_not_copied_beside_others(tmp_path: Path) -> None:
    [low, high] = a_sweep(tmp_path)
    play_all([low], tmp_path / "out")
    play_all([replace(high, arms=["fielding"])], tmp_path / "out")
    for name, sha256 in ((LOW, "0"), (HIGH, "1")):
        recorded = manifest(tmp_path / "out", name)
        recorded["files"] = {"labels.csv": {"size": 1, "sha256": sha256}}
        (tmp_path / "out" / name / "manifest.json").write_text(json.dumps(recorded))
    with pytest.raises(RunError, match=r"not complete .*labels\.csv was another file when the runs in"):
        play_all([low, high], tmp_path / "out")
    assert manifest(tmp_path / "out", HIGH)["files"]["labels.csv"]["sha256"] == "1"


def test_a_stop_leaves_cells_that_have_not_begun_without_results(tmp_path: Path) -> None:
    members = a_sweep(tmp_path)
    tale = Tale(Stop())
    with pytest.raises(KeyboardInterrupt):
        play_all(members, tmp_path / "out", stop=tale.stop, tale=tale)
    assert tale.played == [(LOW, "global", 0)]
    assert tale.finished == [f"{LOW} without [('global', 0), ('fielding', 0)]"]
    assert not (tmp_path / "out" / HIGH / "global/seed-0").exists()
    resumed, finished = play_all(members, tmp_path / "out")
    assert resumed.told[0] == ("going on", "global", 0, 1)
    assert finished == [LOW, HIGH]


@pytest.fixture(autouse=True)
def no_links(tmp_path: Path) -> Iterator[None]:
    """No test may leave a temporary file, or a lock of a run."""
    yield
    assert not [*tmp_path.glob("out/*/*/.seed-*"), *tmp_path.glob("out/*/*/*/.*")]
