"""Where the other versions of Python are looked for, and what the wheel needs."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tests.check_pythons import pythons, requirements


def test_a_stand_in_on_the_path_does_not_hide_the_version_that_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = ("shims", ".pyenv/versions/9.8.1/bin", ".pyenv/versions/9.9.1/bin", "uv/cpython-9.9.2-x/bin")
    for place in places:
        program = tmp_path / place / f"python{'9.8' if '9.8' in place else '9.9'}"
        program.parent.mkdir(parents=True)
        program.touch(mode=0o755)
    (tmp_path / ".pyenv/versions/9.9.0/bin").mkdir(parents=True)
    (tmp_path / ".pyenv/versions/9.9.0/bin/python9.9").touch(mode=0o644)
    variables = {
        "HOME": str(tmp_path),
        "PATH": f"{tmp_path}/shims:{tmp_path}/none",
        "UV_PYTHON_INSTALL_DIR": str(tmp_path / "uv"),
    }
    monkeypatch.setattr("tests.check_pythons.answers", lambda python, version: "shims" not in str(python))
    assert list(pythons("9.9", variables)) == [f"{tmp_path}/{place}/python9.9" for place in places[2:]]
    assert list(pythons("9.7", variables)) == []


def test_the_requirements_of_a_wheel_are_those_of_no_extra(tmp_path: Path) -> None:
    lines = ("Name: x", "Requires-Dist: numpy>=2.0", 'Requires-Dist: simpy>=4; extra == "bench"', "", "text")
    with zipfile.ZipFile(tmp_path / "x.whl", "w") as files:
        files.writestr("x-1.dist-info/METADATA", "\n".join(lines))
    assert requirements(tmp_path / "x.whl") == ["numpy>=2.0"]
