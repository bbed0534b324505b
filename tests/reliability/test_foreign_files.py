"""An untrusted run directory: links, pipes and folders in place of its files, and forged checkpoints.

A command changes nothing outside the directory, and names in one line what it refuses.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from emulator.errors import CheckpointError, ForeignFileError
from emulator.storage.checkpoints import read_checkpoint
from emulator.storage.state_tree import to_bytes
from experiments.locating import locator
from experiments.results.reading.run_directory import RunDirectory
from experiments.running.plan import PlannedRun, Reached, plan_run
from experiments.running.runner import run_plan
from experiments.running.stop import Stop
from tests.experiments.cli.conftest import Driftscale, driftscale  # noqa: F401  (a fixture)
from tests.experiments.small import Story, small, write_small

SETTINGS: dict[str, Any] = {"checkpoint": {"every_rounds": 1}, "round": {"rounds": 4}}
TOKEN = "0123456789abcdef"


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a finished run of `global` and one of `fielding` that was stopped after two rounds."""
    path = tmp_path_factory.mktemp("honest") / "run"
    plan = plan_run(small(**SETTINGS), path, None, locator(None, None), fresh=False)
    stop, story = Stop(), Story()

    def round_done(run: PlannedRun, reached: Reached) -> None:
        story.reached.append(reached)
        if story.rounds == 4 + 2:
            stop.request()

    story.round_done = round_done  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        run_plan(plan, story, stop)
    for name in ("rounds.parquet", "summary.json", "report.html"):  # as a command would have left them
        (path / name).touch()
    return path


@pytest.fixture
def run(honest: Path, tmp_path: Path) -> Path:
    """A copy of `honest`, to be attacked."""
    return Path(shutil.copytree(honest, tmp_path / "run"))


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Path]:
    """A folder with files of the victim; checks afterwards that they have not changed."""
    folder = tmp_path / "home"
    (folder / "seed-0" / "checkpoint").mkdir(parents=True)
    (folder / "checkpoint").mkdir()
    for name in ("thesis.tex", "seed-0/log.jsonl", "seed-0/DONE", f".summary.json.999999999-{TOKEN}"):
        (folder / name).write_text("precious")
    before = contents(folder)
    yield folder
    assert contents(folder) == before


def contents(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


def removed(path: Path) -> Path:
    """Delete the file or folder at `path`; returns `path`."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    return path


def a_link(path: Path, outside: Path, is_folder: bool) -> None:
    path.symlink_to(outside if is_folder else outside / "thesis.tex")


def a_dangling_link(path: Path, outside: Path, is_folder: bool) -> None:
    path.symlink_to(outside / "new")


def a_link_to_the_other_kind(path: Path, outside: Path, is_folder: bool) -> None:
    path.symlink_to(outside / "thesis.tex" if is_folder else outside)


def a_pipe(path: Path, outside: Path, is_folder: bool) -> None:
    os.mkfifo(path)


def the_other_kind(path: Path, outside: Path, is_folder: bool) -> None:
    if is_folder:
        path.touch()
    else:
        (path / "inside").mkdir(parents=True)


KINDS = [a_link, a_dangling_link, a_link_to_the_other_kind, a_pipe, the_other_kind]

TABLES = ("visits.arrow", "visits.parquet", "clients.parquet", "models.safetensors")
RUN_FILES = ("log.jsonl", *TABLES, "timing.json", "DONE", "FAILED", "checkpoint")
FILES = [
    *(".lock", "experiment.toml", "manifest.json", "rounds.parquet", "summary.json", "report.html"),
    *("global", "global/seed-0", "fielding", "fielding/seed-0"),
    *(f"{arm}/seed-0/{name}" for arm in ("global", "fielding") for name in RUN_FILES),
    *("global/.seed-0.lock", "fielding/.seed-0.lock", "another/.seed-0.lock"),
    f"fielding/seed-0/checkpoint/round-000009-{'0' * 64}.safetensors",
    "fielding/seed-0/checkpoint/.round-000009-torn",
]
FOLDERS = {"global", "global/seed-0", "fielding", "fielding/seed-0"} | {
    f"{arm}/seed-0/checkpoint" for arm in ("global", "fielding")
}


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("name", FILES)
def test_every_command_names_a_foreign_file_in_a_run_directory_and_changes_nothing(
    name: str,
    make: Callable[[Path, Path, bool], None],
    run: Path,
    outside: Path,
    tmp_path: Path,
    driftscale: Driftscale,  # noqa: F811
) -> None:
    (run / name).parent.mkdir(exist_ok=True)
    make(removed(run / name), outside, name in FOLDERS)
    config = write_small(tmp_path, **SETTINGS)
    before = contents(run)
    commands: list[list[str | Path]] = [["run", config, "--out", run, *more] for more in ([], ["--fresh"])]
    if name != ".lock":  # a report takes no lock
        commands.append(["report", run])
    for command in commands:
        result = driftscale(*command)
        assert result.code == 2, result
        assert result.error.startswith(f"{run / name}: is a "), result
        assert "fresh" not in result.error
        assert contents(run) | {".lock": b""} == before | {".lock": b""}


def test_names_of_files_that_are_written_aside_are_not_followed(
    run: Path,
    outside: Path,
    driftscale: Driftscale,  # noqa: F811
) -> None:
    """They once were `.summary.json.<pid>`: a few thousand links were enough to hit one."""
    for name in ("summary.json", "rounds.parquet", "report.html"):
        (run / f".{name}.{os.getpid()}").symlink_to(outside / "thesis.tex")
    assert driftscale("report", run).code == 0


def test_cleaning_up_deletes_nothing_behind_a_link(
    run: Path,
    outside: Path,
    tmp_path: Path,
    driftscale: Driftscale,  # noqa: F811
) -> None:
    (run / "another").symlink_to(outside)
    result = driftscale("run", write_small(tmp_path, **SETTINGS), "--out", run)
    assert result.code == 2
    assert result.error.startswith(f"{run}/another: is a link to {outside}")


def test_links_that_are_no_part_of_a_run_directory_are_left_alone(
    run: Path,
    outside: Path,
    tmp_path: Path,
    driftscale: Driftscale,  # noqa: F811
) -> None:
    (run / "notes").symlink_to(outside / "thesis.tex")
    (run / "data").symlink_to(outside / "checkpoint")
    (tmp_path / "runs").symlink_to(run)  # the directory that the user names may be a link
    config = write_small(tmp_path, **SETTINGS)
    assert driftscale("run", config, "--out", tmp_path / "runs").code == 0
    assert driftscale("report", tmp_path / "runs").code == 0
    assert driftscale("run", config, "--out", tmp_path / "runs", "--fresh").code == 0
    assert (run / "notes").is_symlink()


@pytest.mark.parametrize("name", [".lock", "fielding/seed-0/log.jsonl", "fielding/.seed-0.lock"])
def test_a_file_that_is_changed_in_place_is_not_changed_under_a_second_name(
    name: str,
    run: Path,
    tmp_path: Path,
    driftscale: Driftscale,  # noqa: F811
) -> None:
    for lock in (".lock", "fielding/.seed-0.lock"):
        (run / lock).write_text("1\n")
    shutil.copytree(run, tmp_path / "backup", copy_function=os.link)  # as cp -al does
    before = contents(tmp_path / "backup")
    for lock in {".lock", "fielding/.seed-0.lock"} - {name}:
        (run / lock).unlink()
    result = driftscale("run", write_small(tmp_path, **SETTINGS), "--out", run)
    assert result.code == 2, result
    assert f"error: {run / name}: has another name elsewhere (a hard link)" in result.err.splitlines()[-1]
    assert contents(tmp_path / "backup") == before
    assert driftscale("report", run).code == 0
    assert contents(tmp_path / "backup") == before


# -- forged checkpoints -------------------------------------------------------------------------------------


def forge(run: Path, **log: object) -> Path:
    """Replace the checkpoints by one with another state of the log and a matching checksum in its name."""
    newest, *older = RunDirectory(run).checkpoints("fielding", 0).files()
    tree = read_checkpoint(newest)
    tree["log"] = {**tree["log"], **{name.replace("num_", ""): value for name, value in log.items()}}
    content = to_bytes(tree)
    for file in (newest, *older):
        file.unlink()
    forged = newest.with_name(f"round-000003-{hashlib.sha256(content).hexdigest()}.safetensors")
    forged.write_bytes(content)
    return forged


@pytest.mark.parametrize("num_bytes", [0, -1, 5, float("nan"), "0"])
def test_a_forged_state_of_the_log_empties_no_file_and_is_kept(num_bytes: object, run: Path) -> None:
    forged = forge(run, num_bytes=num_bytes, sha256=hashlib.sha256().hexdigest())
    log = RunDirectory(run).run_file("fielding", 0, "log.jsonl")
    before = log.read_bytes()
    plan = plan_run(small(**SETTINGS), run, None, locator(None, None), fresh=False)
    with pytest.raises(CheckpointError, match=rf"{re.escape(str(forged))} .*its log has .* of a header"):
        run_plan(plan, Story())
    assert log.read_bytes() == before
    assert forged.exists()


def test_a_forged_checkpoint_beside_a_link_in_the_place_of_the_log_empties_nothing(
    run: Path, outside: Path
) -> None:
    log = RunDirectory(run).run_file("fielding", 0, "log.jsonl")
    forge(run, num_bytes=0, sha256=hashlib.sha256().hexdigest())
    log.unlink()
    log.symlink_to(outside / "thesis.tex")
    with pytest.raises(ForeignFileError, match=r"log\.jsonl: is a link to"):
        plan_run(small(**SETTINGS), run, None, locator(None, None), fresh=False)


def test_a_link_that_replaces_the_log_later_is_refused_and_marks_nothing_failed(
    run: Path, outside: Path
) -> None:
    plan = plan_run(small(**SETTINGS), run, None, locator(None, None), fresh=False)
    directory = RunDirectory(run)
    log = directory.run_file("fielding", 0, "log.jsonl")
    log.unlink()
    log.symlink_to(outside / "thesis.tex")
    with pytest.raises(ForeignFileError, match=r"log\.jsonl: is a link to"):
        run_plan(plan, Story())
    assert directory.failure("fielding", 0) is None
    assert directory.checkpoints("fielding", 0).files()


# -- a folder of run directories ----------------------------------------------------------------------------


@pytest.fixture
def configs(tmp_path: Path) -> Path:
    (tmp_path / "configs").mkdir()
    write_small(tmp_path / "configs", **SETTINGS, name="run")
    return tmp_path / "configs"


def test_a_link_to_a_run_directory_in_a_folder_of_them_is_refused(
    run: Path,
    configs: Path,
    tmp_path: Path,
    driftscale: Driftscale,  # noqa: F811
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "run").symlink_to(run)
    before = contents(run)
    for command in (["report", folder], ["run", configs, "--out", folder]):
        result = driftscale(*command)
        assert result.code == 2
        assert result.error.startswith(f"{folder}/run: is a link to {run}")
    assert contents(run) == before


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("name", ["table.json", "table.html", "plotly.min.js"])
def test_the_table_of_a_folder_is_not_written_in_the_place_of_something_else(
    name: str,
    make: Callable[[Path, Path, bool], None],
    run: Path,
    outside: Path,
    tmp_path: Path,
    driftscale: Driftscale,  # noqa: F811
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    run.rename(folder / "run")
    make(folder / name, outside, False)
    result = driftscale("report", folder)
    assert result.code == 2
    assert result.error.startswith(f"{folder / name}: is a ")


@pytest.mark.parametrize("make", KINDS)
def test_something_else_in_the_place_of_a_folders_plotly_is_refused_before_anything_is_deleted(
    make: Callable[[Path, Path, bool], None],
    run: Path,
    configs: Path,
    outside: Path,
    tmp_path: Path,
    driftscale: Driftscale,  # noqa: F811
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    run.rename(folder / "run")
    make(folder / "plotly.min.js", outside, False)
    before = contents(folder / "run")
    result = driftscale("run", configs, "--out", folder, "--fresh")
    assert result.code == 2
    assert result.error.startswith(f"{folder}/plotly.min.js: is a ")
    assert contents(folder / "run") | {".lock": b""} == before | {".lock": b""}
