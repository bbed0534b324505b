from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from emulator.errors import ConfigurationError, InputError
from emulator.storage.bounded import MOST_JSON_BYTES
from experiments.config import parse_experiment
from experiments.results.pages.what_was_run import settings_of_run
from experiments.results.reading.json_files import MOST_COMMAND_LETTERS, MOST_COMMANDS, Command, Identity
from experiments.results.reading.run_directory import RunDirectory
from experiments.running.locking import seed_locked
from experiments.running.manifest import Drawn, write_manifest
from tests.experiments.running.played import play
from tests.experiments.small import replay, small, write_idx_folder, write_label_trace

STARTED = "2026-01-31T12:00:00Z"


def test_a_world_that_differs_from_that_of_earlier_runs_is_refused(tmp_path: Path) -> None:
    play(small(), tmp_path, arms=["global"])
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    manifest["sha256"]["0"]["fleet"] = "0" * 64
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(
        ConfigurationError, match="the fleet of seed 0 is not the one its runs were begun with"
    ):
        play(small(), tmp_path)
    manifest["sha256"]["0"] = "none"
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError, match=r"manifest\.json: sha256\.0 = 'none': must be a table"):
        play(small(), tmp_path)


def test_a_world_that_differs_from_that_of_a_run_at_work_is_refused(tmp_path: Path) -> None:
    play(small(), tmp_path, arms=["global"])
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    manifest["sha256"]["0"]["fleet"] = "0" * 64
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    directory = RunDirectory(tmp_path)
    directory.delete_run("global", 0)
    with (
        seed_locked(directory, "global", 0),
        pytest.raises(ConfigurationError, match="the fleet of seed 0 is not the one its runs were begun"),
    ):
        play(small(), tmp_path)
    play(small(), tmp_path)


def test_the_manifest_says_which_files_were_read(tmp_path: Path) -> None:
    write_idx_folder(tmp_path / "images")
    (tmp_path / "images" / "notes.txt").write_text("nobody reads me")
    table = write_label_trace(tmp_path / "labels.csv")
    play(parse_experiment(replay(), "replay"), tmp_path / "run", tmp_path)
    files = RunDirectory(tmp_path / "run").manifest().files
    assert sorted(files) == [
        *(
            f"images/{half}-{kind}-ubyte"
            for half in ("t10k", "train")
            for kind in ("images-idx3", "labels-idx1")
        ),
        "labels.csv",
    ]
    content = table.read_bytes()
    assert files["labels.csv"] == Identity(size=len(content), sha256=hashlib.sha256(content).hexdigest())


def test_without_a_manifest_a_note_states_that_files_are_not_compared(tmp_path: Path) -> None:
    play(small(), tmp_path / "out", arms=["global"])
    (tmp_path / "out" / "manifest.json").unlink()
    story = play(small(), tmp_path / "out")
    [note] = [str(told[1]) for told in story.told if told[0] == "note"]
    assert "manifest.json is missing, so it is unknown which files its runs were begun with" in note
    assert not [told for told in play(small(), tmp_path / "out").told if told[0] == "note"]


def test_the_manifest_keeps_the_first_versions_and_adds_later_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(small(), tmp_path / "out")
    first = RunDirectory(tmp_path / "out").manifest().versions
    with monkeypatch.context() as later:
        later.setattr("experiments.running.manifest.installed", lambda package: "99")
        for seeds in ([0, 1], [0, 1, 2]):
            play(small(seeds=seeds), tmp_path / "out")
    play(small(seeds=[0, 1, 2, 3]), tmp_path / "out")
    manifest = RunDirectory(tmp_path / "out").manifest()
    assert manifest.versions == first
    assert [later["torch"] for later in manifest.later_versions] == ["99"]
    assert "99" in dict(settings_of_run(RunDirectory(tmp_path / "out")))["later versions"]


def a_command(number: int) -> Command:
    return Command(arguments=["driftscale", str(number)], started=STARTED)


def a_world(seed: int) -> Drawn:
    return Drawn(seed=seed, fingerprint={}, profile={}, availability={}, files={})


def recorded_commands(directory: RunDirectory) -> list[str]:
    manifest = directory.manifest()
    assert manifest is not None
    return [command.arguments[1] for command in manifest.commands]


def test_a_command_is_recorded_once_and_added_to_those_that_played_runs_before(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    play(small(seeds=[0]), tmp_path)
    assert "commands" not in json.loads(directory.manifest_path.read_text())
    for number in (1, 2):
        for seed in (1, 2):
            write_manifest(directory, a_world(seed), command=a_command(number))
    assert recorded_commands(directory) == ["1", "2"]
    write_manifest(directory, a_world(3))
    assert recorded_commands(directory) == ["1", "2"]


def test_commands_without_a_run_that_could_be_resumed_are_forgotten(tmp_path: Path) -> None:
    play(small(), tmp_path)
    directory = RunDirectory(tmp_path)
    write_manifest(directory, a_world(1), command=a_command(1))
    for arm, seed in directory.reported_pairs():
        directory.delete_run(arm, seed)
    write_manifest(directory, a_world(1), command=a_command(2))
    assert recorded_commands(directory) == ["2"]


def test_of_many_commands_the_first_and_the_newest_are_kept(tmp_path: Path) -> None:
    play(small(), tmp_path)
    directory = RunDirectory(tmp_path)
    for number in range(MOST_COMMANDS + 3):
        write_manifest(directory, a_world(7), command=a_command(number))
    assert recorded_commands(directory) == ["0", *map(str, range(4, MOST_COMMANDS + 3))]
    assert len(recorded_commands(directory)) == MOST_COMMANDS


def test_a_manifest_of_the_longest_commands_is_read_back(tmp_path: Path) -> None:
    astral = "\N{MATHEMATICAL BOLD CAPITAL A}"  # twelve bytes in JSON
    play(small(), tmp_path)
    directory = RunDirectory(tmp_path)
    for number in range(MOST_COMMANDS):
        command = Command(arguments=[str(number), astral * (MOST_COMMAND_LETTERS - 2)], started=STARTED)
        write_manifest(directory, a_world(7), command=command)
    manifest = directory.manifest()
    assert manifest is not None
    assert len(manifest.commands) == MOST_COMMANDS
    assert directory.manifest_path.stat().st_size < MOST_JSON_BYTES / 4


def test_the_report_shows_the_commands_with_their_dates_and_commits(tmp_path: Path) -> None:
    play(small(), tmp_path)
    directory = RunDirectory(tmp_path)
    first = Command(arguments=["driftscale", "run", "a b.toml"], started=STARTED, git_commit="0a" * 20)
    for command in (first, a_command(1), a_command(2)):
        write_manifest(directory, a_world(7), command=command)
    facts = [fact for fact in settings_of_run(directory) if "command" in fact[0]]
    assert facts == [
        ("command", f"driftscale run 'a b.toml' · 2026-01-31T12:00:00Z · git commit {'0a' * 20}"),
        ("later command", "driftscale 1 · 2026-01-31T12:00:00Z"),
        ("later command", "driftscale 2 · 2026-01-31T12:00:00Z"),
    ]
