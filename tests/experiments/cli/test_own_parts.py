"""`run`, `check` and `report` with parts named by "my_module:MyPart", which are not installed."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from emulator import own_parts
from emulator.errors import ConfigurationError
from experiments.jobs.workplace import described
from experiments.locating import locator
from experiments.reading import load_experiment
from experiments.results.reading.run_directory import RunDirectory
from experiments.running.plan import plan_run
from tests.experiments.cli.conftest import Driftscale
from tests.experiments.small import write_small
from tests.processes import forked

ROOT = Path(__file__).resolve().parents[3]

SELECTOR = '''\
"""A selector of one's own."""

import numpy as np

from coordinator.selectors import Selector
from emulator.numbers import CountOrZero
from emulator.plugins import Settings


class LowestSettings(Settings):
    skip: CountOrZero = 0


class Lowest(Selector):
    Settings = LowestSettings

    def select(self, candidates, wanted, view):
        from offsets import first

        skip = first(self.settings.skip)
        return np.sort(
            np.concatenate([candidates.ids(lane)[skip : skip + count] for lane, count in enumerate(wanted)])
        )
'''

ARM = {"name": "lowest", "selector": "my_parts:Lowest"}
LOG = "lowest/seed-0/log.jsonl"


@pytest.fixture
def config(own_modules: None, tmp_path: Path) -> Path:
    """A configuration in a folder of its own, with the module beside it."""
    folder = tmp_path / "configs"
    folder.mkdir()
    (folder / "my_parts.py").write_text(SELECTOR)
    (folder / "offsets.py").write_text("import table\n\ndef first(skip):\n    return skip + table.START\n")
    (folder / "table.py").write_text("START = 0\n")
    return write_small(
        folder, arm=[ARM, {**ARM, "name": "next", "selector": {"kind": ARM["selector"], "skip": 1}}]
    )


def from_a_shell(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    return forked.run(
        [sys.executable, "-c", "from experiments.cli import main; main()", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_selector_beside_the_configuration_runs_and_is_recorded(
    driftscale: Driftscale, config: Path
) -> None:
    assert driftscale("check", config).code == 0
    ended = driftscale("run", config)
    assert ended.code == 0, ended.err
    arms = RunDirectory(Path("runs/small")).experiment()["arm"]
    assert [arm["selector"] for arm in arms] == [
        {"kind": "my_parts:Lowest", "skip": 0},
        {"kind": "my_parts:Lowest", "skip": 1},
    ]
    files = json.loads(Path("runs/small/manifest.json").read_text())["files"]
    assert files["module:my_parts"]["size"] == len(SELECTOR)
    for arm, first in (("lowest", 0), ("next", 1)):
        with RunDirectory(Path("runs/small")).run_file(arm, 0, "log.jsonl").open() as log:
            rounds = [record for record in map(json.loads, log) if record["kind"] == "round"]
        assert {record["participants"][0] for record in rounds} == {first}


MODULES = ("my_parts", "offsets", "table")


def forget() -> None:
    """Make the next command import the modules again, as a process of its own would."""
    for module in MODULES:
        own_parts._imported.pop(module, None)
        sys.modules.pop(module, None)


@pytest.mark.parametrize("changed", MODULES)
def test_a_changed_module_is_refused_also_for_finished_runs_and_the_report_needs_none(
    driftscale: Driftscale, config: Path, changed: str
) -> None:
    assert driftscale("run", config, "--arms", "lowest").code == 0
    module = config.with_name(f"{changed}.py")
    module.write_text(module.read_text() + "# changed\n")
    ended = driftscale("run", config)
    assert f"{module} has changed since this process imported it" in ended.error
    forget()
    for more in (("--arms", "lowest"), ("--arms", "next"), ("--seeds", "0..1")):
        ended = driftscale("run", config, *more)
        assert ended.code == 2
        assert f"{module}: has changed since the runs in this directory were begun with it" in ended.err
        forget()
    config.with_name("my_parts.py").unlink()
    forget()
    for command in (("report", "runs/small"), ("report", "runs")):
        assert driftscale(*command).code == 0
    assert "my_parts" not in sys.modules
    ended = driftscale("run", config)
    assert ended.code == 2
    assert ended.error.startswith(
        f"{config}: arm.lowest.selector = 'my_parts:Lowest': selector 'my_parts:Lowest': no module "
        f"'my_parts' in {config.parent}, {Path.cwd()}"
    )


def test_workers_import_it_themselves_and_play_the_same_runs(driftscale: Driftscale, config: Path) -> None:
    assert driftscale("run", config).code == 0
    ended = from_a_shell("run", config, "--jobs", "2", "--out", "parallel", cwd=Path.cwd())
    assert ended.returncode == 0, ended.stderr
    assert (Path("parallel") / LOG).read_bytes() == (Path("runs/small") / LOG).read_bytes()


def test_the_cells_of_a_sweep_share_its_runs(driftscale: Driftscale, config: Path) -> None:
    ended = driftscale("run", config, "--sweep", "arm.next.selector.skip=1,2")
    assert ended.code == 0, ended.err
    assert sum(line.startswith("[") and "lowest, seed 0" in line for line in ended.err.splitlines()) == 1
    cells = sorted(Path("runs/small-sweep").glob("*/" + LOG))
    assert len(cells) == 2
    assert cells[0].read_bytes() == cells[1].read_bytes()


def test_a_run_directory_cannot_have_a_module_imported_that_the_configuration_does_not_name(
    driftscale: Driftscale, config: Path
) -> None:
    assert driftscale("run", config).code == 0
    Path("deploy.py").write_text("raise AssertionError('imported')\n")
    recorded = Path("runs/small/experiment.toml")
    recorded.write_text(recorded.read_text().replace("my_parts:Lowest", "deploy:All", 1))
    ended = driftscale("run", config, "--seeds", "0..1")
    assert ended.code == 2
    assert "runs/small holds runs with a part of the module 'deploy', which this configuration does not" in (
        ended.error
    )


def test_a_part_that_only_this_process_has_is_refused_for_several(
    driftscale: Driftscale, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(config.parent))
    cells = ModuleType("__main__")
    cells.Lowest = importlib.import_module("my_parts").Lowest  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "__main__", cells)
    config = write_small(config.parent, arm=[{**ARM, "selector": "__main__:Lowest"}])
    assert driftscale("run", config).code == 0
    files = json.loads(Path("runs/small/manifest.json").read_text())["files"]
    assert sorted(files) == ["code:my_parts:Lowest", *(f"module:{module}" for module in MODULES)]
    cells.Lowest.late = 1  # type: ignore[attr-defined]  # as if its cell were another one
    assert "the code of my_parts:Lowest: has changed since the runs" in driftscale("run", config).error
    manifest = RunDirectory(Path("runs/small")).manifest_path
    known = {"module:__main__": {"size": 0, "sha256": "without a file"}}  # as older versions recorded it
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "files": known}))
    assert driftscale("run", config, "--seeds", "0..1").code == 0
    assert json.loads(manifest.read_text())["files"].keys() > known.keys()
    locate = locator(None, config)
    plan = plan_run(load_experiment(config), Path("other"), None, locate, fresh=False, file=str(config))
    with pytest.raises(
        ConfigurationError, match="a part is of '__main__', which other processes do not have"
    ):
        described(plan, None)


def test_a_mistake_in_its_method_is_one_line_and_its_traceback_is_beside_the_log(
    driftscale: Driftscale, config: Path
) -> None:
    module = config.with_name("my_parts.py")
    module.write_text(SELECTOR.replace("skip = first", "view.round < 2 or 1 / 0; skip = first"))
    ended = driftscale("run", config, "--arms", "lowest")
    traced = Path("runs/small/lowest/seed-0/traceback.txt")
    assert ended.code == 3
    assert "Traceback" not in ended.err
    line = f"({module}, line 20, in select); its traceback is in {traced}"
    assert (
        f"round 2: selector 'my_parts:Lowest': select raised ZeroDivisionError: division by zero {line}"
        in (ended.err)
    )
    assert traced.read_text().endswith("ZeroDivisionError: division by zero\n")
    assert RunDirectory(Path("runs/small")).failure("lowest", 0) is not None


def test_an_object_of_ones_own_can_be_the_device_profile(driftscale: Driftscale, config: Path) -> None:
    config.with_name("my_devices.py").write_text(
        "from device_profiles import load_profile\n\ndef slow():\n    return load_profile('iot')\n"
    )
    ended = driftscale("run", config, "--set", "devices.profile=my_devices:slow", "--arms", "lowest")
    assert ended.code == 0, ended.err
    manifest = json.loads(Path("runs/small/manifest.json").read_text())
    assert sorted(manifest["files"]) == [
        *("code:my_devices:slow", "code:my_parts:Lowest"),
        *("module:my_devices", *(f"module:{module}" for module in MODULES)),
    ]
    config.with_name("my_fleets.py").write_text("from my_devices import slow\n")
    ended = driftscale("check", config, "--set", "devices.profile=my_fleets:slow")
    assert ended.code == 0, ended.err
    ended = driftscale("run", config, "--set", "devices.profile=my_device:slow")
    assert ended.code == 2
    assert "devices.profile: device profile 'my_device:slow': no module 'my_device' in" in ended.error


@pytest.mark.parametrize(
    ("line", "origin"),
    [
        ("from os import getcwd as slow", "of 'posix'"),
        ("from pathlib import Path as slow", "of 'pathlib'"),
        ("import os\nfrom functools import partial\nslow = partial(os.getcwd)", "of 'functools'"),
        ("import functools\nslow = functools.partial(print)\nslow.__module__ = 'nowhere'", "of 'nowhere'"),
        ("slow = {}.update", "built in"),
    ],
)
def test_a_function_that_is_not_defined_in_a_module_of_ones_own_is_not_called(
    driftscale: Driftscale, config: Path, line: str, origin: str
) -> None:
    config.with_name("my_devices.py").write_text(f"{line}\n")
    ended = driftscale("check", config, "--set", "devices.profile=my_devices:slow")
    assert ended.code == 2
    assert (
        f"devices.profile: device profile 'my_devices:slow': slow is {origin}, not defined in "
        f"'my_devices', and is not called; define a function in 'my_devices' that returns the device profile"
    ) in ended.error


def test_mended_code_of_an_arm_that_failed_is_played_beside_what_finished_without_it(
    driftscale: Driftscale, config: Path
) -> None:
    config = write_small(config.parent, arm=[{"name": "global"}, ARM])
    module = config.with_name("my_parts.py")
    module.write_text(SELECTOR.replace("skip = first", "view.round < 2 or 1 / 0; skip = first"))
    assert driftscale("run", config).code == 3
    forget()
    module.write_text(SELECTOR)
    ended = driftscale("run", config)
    assert ended.code == 0, ended.err
    assert "[2/2] lowest, seed 0: done" in ended.err
    forget()
    module.write_text(SELECTOR + "# changed\n")
    assert driftscale("run", config).code == 2
