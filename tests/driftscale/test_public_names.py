"""The public surface of the package: its names, signatures, lazy imports, and foreign packages in its way."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import driftscale

ROOT = Path(__file__).resolve().parents[2]


def python(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run `code` in `folder`, which comes first on the path, as in a notebook."""
    path = os.pathsep.join(["", str(ROOT)])
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_public_names_are_these() -> None:
    assert driftscale.__all__ == [
        *("Check", "Comparison", "EmulatorError", "Results", "TraceFolder"),
        *("check", "compare", "load", "open_trace", "run", "write_trace"),
    ]
    for name in driftscale.__all__:
        assert getattr(driftscale, name).__doc__
    with pytest.raises(AttributeError, match="has no attribute 'runs'"):
        _ = driftscale.runs


def test_the_arguments_are_those_of_the_command() -> None:
    names = {name: list(inspect.signature(getattr(driftscale, name)).parameters) for name in ("run", "check")}
    assert names["run"] == [
        *("config", "set", "seeds", "out", "jobs"),
        *("arms", "data", "sweep", "fresh", "track", "trial", "progress"),
    ]
    assert names["check"] == ["config", "set", "seeds", "arms", "data", "sweep", "trial", "contracts"]
    assert list(inspect.signature(driftscale.compare).parameters) == ["first", "more"]
    assert next(iter(inspect.signature(driftscale.load).parameters)) == "path"


def test_the_import_waits_for_no_heavy_library(tmp_path: Path) -> None:
    heavy = ("torch", "pandas", "plotly", "pyarrow", "sklearn", "scipy", "rich", "distributed")
    done = python(
        f"import driftscale, json, sys; print(json.dumps([n for n in {heavy!r} if n in sys.modules]))",
        tmp_path,
    )
    assert json.loads(done.stdout) == [], done.stderr


@pytest.mark.parametrize("name", ["traces", "experiments", "emulator"])
def test_a_folder_that_shadows_one_of_ours_is_named_in_one_line(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("raise RuntimeError('this must never be imported')\n")
    done = python("import driftscale", tmp_path)
    assert done.stderr.splitlines()[-1] == (
        f"ImportError: the package {name!r} comes from {tmp_path}, but driftscale is in {ROOT}; another "
        f"package of that name comes first on the path (started beside a folder called {name}?)"
    )


def test_a_module_of_that_name_is_named_with_its_folder(tmp_path: Path) -> None:
    (tmp_path / "traces.py").write_text("raise RuntimeError('this must never be imported')\n")
    done = python("import driftscale", tmp_path)
    assert f"ImportError: the package 'traces' comes from {tmp_path}, but" in done.stderr


def test_a_foreign_package_that_was_imported_before_is_named_too(tmp_path: Path) -> None:
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "__init__.py").write_text("")
    done = python("import traces, sys; sys.path.remove(''); import driftscale", tmp_path)
    assert done.stderr.splitlines()[-1].startswith(
        f"ImportError: the package 'traces' was imported from {tmp_path} before, but driftscale is in {ROOT}"
    )


def test_a_clone_called_driftscale_does_not_shadow_the_package(tmp_path: Path) -> None:
    (tmp_path / "driftscale").mkdir()  # as that of the repository, which has no __init__.py
    done = python("import driftscale; print(driftscale.__file__)", tmp_path)
    assert done.stdout.strip() == str(ROOT / "driftscale/__init__.py")


def test_the_version_is_that_of_the_installation() -> None:
    from importlib.metadata import version

    assert importlib.import_module("driftscale").__version__ == version("driftscale")
