"""Imports of the commands, the origin of the packages, and the docstrings of modules."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from experiments.own_packages import foreign_package
from tests.experiments.small import write_small
from tests.packages import AT_ROOT

ROOT = Path(__file__).resolve().parents[1]
HEAVY = ("torch", "sklearn", "scipy", "pandas")
OF_RUNS_AND_RESULTS = ("pyarrow", "jinja2", "plotly", "rich", "distributed", "experiments.build")
MODULES = sorted(path for package in AT_ROOT for path in (ROOT / package).rglob("*.py"))


def run(code: str, *first_on_path: Path) -> subprocess.CompletedProcess[str]:
    """Run `code` in a new interpreter, which looks for packages in `first_on_path` and then in `ROOT`."""
    path = os.pathsep.join(map(str, [*first_on_path, ROOT]))
    return subprocess.run(
        [sys.executable, "-P", "-c", code],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


# -- imports of a command -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_command_that_does_not_train_imports_no_heavy_library() -> None:
    """One command after another in one process: what one has imported is found after all of them."""
    helped = ["--help", "profiles list", "schema", "run --help", "parts --help", "traces inspect --help"]
    mistyped = [
        "run mine.toml --rounds 3",
        "run mine.toml round.rounds=3",
        "run",
        "rnu",
        "run mine.toml -j 2",
    ]
    commands = [*helped, *mistyped]
    done = run(
        "import json, sys\n"
        "from experiments.cli import main\n"
        f"for command in {commands!r}:\n"
        "    sys.argv = ['driftscale', *command.split()]\n"
        "    try:\n"
        "        main()\n"
        "    except SystemExit as ended:\n"
        f"        loaded = [name for name in {HEAVY!r} if name in sys.modules]\n"
        "        print(json.dumps([command, ended.code, loaded]), file=sys.stderr)\n"
    )
    assert done.returncode == 0, done.stderr
    assert [json.loads(line) for line in done.stderr.splitlines() if not line.startswith("error: ")] == [
        *([command, 0, []] for command in helped),
        *([command, 2, []] for command in mistyped),
    ]
    assert done.stdout.count("Usage") == len(helped) - 2
    assert "smartphones" in done.stdout


@pytest.mark.slow
def test_a_mistake_in_a_configuration_is_reported_before_the_engine_is_imported(tmp_path: Path) -> None:
    config = write_small(tmp_path)
    (tmp_path / "both").mkdir()
    write_small(tmp_path / "both", name="a").rename(tmp_path / "both" / "a.toml")
    write_small(tmp_path / "both", name="b", training={"model": "mpl"})
    settings = {
        "round.roundz=4": "unknown key 'roundz'",
        "round.rounds='4'": "must be a whole number",
        "trace.source=digitz": "unknown trace source 'digitz'",
        "trace.drift={kind='label_mix',x=1}": "unknown key 'x'",
        "devices.profile=smartphone": "did you mean 'smartphones'?",
        "devices.availability=allways": "unknown availability 'allways'",
        "parts.clusterer={kind='fielding',max_cluster=3}": "did you mean 'max_clusters'?",
        "parts.aggregator=mean": "unknown aggregator 'mean'",
        "training.model=mpl": "unknown model 'mpl'; choices: char_lstm, cnn, context, linear, masked, ",
        "training.model=3": "must be a name, or a table with 'kind'",
        "parts.solver=['fedprox','sgdd']": "unknown local rule 'sgdd'; choices: adam, apfl, aso_memory, ",
        "training.model={kind='mlp',hidden=16}": "training.model.hidden = 16: must be a list",
        "training.model={kind='masked',inner={kind='mlp',hiden=[4]}}": "did you mean 'hidden'?",
        "parts.solver={kind='sgd',momentum=2}": "parts.solver.momentum = 2: input should be less than 1",
    }
    absent = {
        "trace={source='file',folder='nosuch'}": "nosuch: not found",
        "trace={source='idx',folder='nosuch',clients=12}": "nosuch: not found",
        "trace={source='concepts',concepts={kind='tables',files=['no.csv']},pattern=['0','0']}": "no.csv: ",
        "devices.profile=nosuch.toml": "nosuch.toml: not found",
        "devices.availability=nosuch.csv": "nosuch.csv: not found",
    }
    commands = {
        **{("run", str(config), "--set", setting): problem for setting, problem in settings.items()},
        ("check", str(config), "--set", "round.roundz=4"): "unknown key 'roundz'",
        ("run", str(tmp_path / "both")): "unknown model 'mpl'",
        ("check", str(tmp_path / "both")): "unknown model 'mpl'",
        ("run", str(tmp_path / "absent.toml")): "absent.toml: no such configuration",
        ("run", str(config), "--data", str(tmp_path / "nowhere")): "nowhere: no such folder",
        ("run", str(tmp_path), "--arms", "globel"): "unknown arm 'globel'",
        ("run", str(config), "--arms", "globel"): "unknown arm 'globel'",
    }
    without_torch = {
        (command, str(config), "--set", setting): problem
        for setting, problem in absent.items()
        for command in ("run", "check")
    }
    done = run(
        "import json, sys\n"
        "from experiments.cli import main\n"
        f"for arguments in {[*commands, *without_torch]!r}:\n"
        "    sys.argv = ['driftscale', *arguments]\n"
        "    try:\n"
        "        main()\n"
        "    except SystemExit as ended:\n"
        f"        loaded = [name for name in {(*HEAVY, *OF_RUNS_AND_RESULTS)!r} if name in sys.modules]\n"
        "        print(json.dumps([ended.code, loaded]))\n"
    )
    endings = [json.loads(line) for line in done.stdout.splitlines()]
    assert dict(zip(commands, endings, strict=False)) == {command: [2, []] for command in commands}
    later = dict(zip(without_torch, endings[len(commands) :], strict=True))
    assert {code for code, _ in later.values()} == {2}
    assert not set(HEAVY) & {name for _, loaded in later.values() for name in loaded}, later
    problems = [*commands.values(), *without_torch.values()]
    for problem, line in zip(problems, done.stderr.splitlines(), strict=True):
        assert problem in line


@pytest.mark.slow
def test_a_trace_is_inspected_without_torch(tmp_path: Path) -> None:
    config = write_small(tmp_path)
    done = run(
        "import sys\n"
        "from experiments.cli import main\n"
        f"sys.argv = ['driftscale', 'traces', 'inspect', {str(config)!r}]\n"
        "try:\n"
        "    main()\n"
        "finally:\n"
        f"    print('loaded', [name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    assert done.stdout.splitlines()[-1] == "loaded []", done.stderr


@pytest.mark.slow
def test_a_configuration_is_read_without_the_analysis_libraries() -> None:
    done = run(
        "import sys, experiments.results.reading.run_directory, device_profiles, emulator.storage.tables\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.slow
def test_a_run_on_the_digits_does_not_import_scikit_learn(tmp_path: Path) -> None:
    """The import takes a second, and all that is used of it is a file.

    Nor does it import pandas, which is made impossible here: pyarrow would, as it writes rounds.parquet.
    """
    config = write_small(tmp_path)
    done = run(
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name == 'pandas':\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "from experiments.cli import main\n"
        f"sys.argv = ['driftscale', 'run', {str(config)!r}, '--out', {str(tmp_path / 'out')!r}]\n"
        "try:\n"
        "    main()\n"
        "finally:\n"
        "    print('loaded', [name for name in ('sklearn', 'pandas') if name in sys.modules])\n"
    )
    assert done.stdout.splitlines()[-1] == "loaded []", done.stderr
    assert done.returncode == 0, done.stderr


# -- one root -----------------------------------------------------------------------------------------------


def test_all_our_packages_come_from_one_root() -> None:
    assert foreign_package() is None
    assert {path.name for path in ROOT.iterdir() if (path / "__init__.py").is_file()} == set(AT_ROOT)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["traces", "emulator", "executor"])
def test_a_package_of_the_same_name_that_comes_first_ends_in_one_clear_line(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("raise RuntimeError('this must never be imported')\n")
    done = run(
        "import sys; sys.argv = ['driftscale', '--help']\nfrom experiments.cli import main; main()", tmp_path
    )
    assert done.returncode == 2
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    assert line.startswith(
        f"error: the package {name!r} comes from {tmp_path}, but driftscale is in {ROOT}; "
    )


def test_a_folder_without_an_init_is_noticed_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    find = importlib.util.find_spec

    def shadowed(name: str, package: str | None = None) -> ModuleSpec | None:
        if name != "traces":
            return find(name, package)
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [str(tmp_path / "traces")]
        return spec

    monkeypatch.setattr(importlib.util, "find_spec", shadowed)
    problem = str(foreign_package())
    assert problem.startswith(f"the package 'traces' comes from {tmp_path}, but driftscale is in {ROOT}; ")
    assert problem.endswith(
        f"to start beside it, pip install --config-settings editable_mode=compat -e {ROOT}"
    )
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "traces" else find(name))
    assert str(foreign_package()).startswith("the package 'traces' comes from nowhere, but driftscale is in")


def test_no_package_of_the_tests_can_shadow_one_of_ours() -> None:
    assert list((ROOT / "tests").rglob("__init__.py")) == []


# -- docstrings of modules ----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_has_a_docstring(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), "has no docstring"
