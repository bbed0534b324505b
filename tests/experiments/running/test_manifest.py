from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from emulator.errors import ConfigurationError, InputError
from experiments.config import parse_experiment
from experiments.results.json_files import Identity
from experiments.results.report.what_was_run import settings_of_run
from experiments.results.run_directory import RunDirectory
from experiments.running.locking import seed_locked
from tests.experiments.running.played import play
from tests.experiments.small import replay, small, write_idx_folder, write_label_trace


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
