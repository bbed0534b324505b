"""The package of docs/plugins.md, as it stands there: it is built, installed and run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import forked

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/plugins.md"


def blocks() -> list[str]:
    """The code of the page: the module, `pyproject.toml`, the configuration, and the tests of its reader."""
    return re.findall(r"```(?:python|toml)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def ran(*command: str, cwd: Path, site: Path) -> str:
    """The output of the command, which must succeed, where the packages of `site` are installed."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (site, ROOT)))}
    run = subprocess.run if command[0] == "pip" else forked.run
    done = run(
        [sys.executable, "-m", *command],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package, built and installed by pip."""
    folder = tmp_path_factory.mktemp("package")
    for name, text in zip(("field_drifts.py", "pyproject.toml"), blocks(), strict=False):
        (folder / name).write_text(text, encoding="utf-8")
    site = tmp_path_factory.mktemp("site")
    offline = ("--no-deps", "--no-build-isolation", "--no-index", "--quiet")
    ran("pip", "install", *offline, "--target", str(site), ".", cwd=folder, site=site)
    return site


def test_the_package_is_listed_and_runs_as_the_page_says(site: Path, tmp_path: Path) -> None:
    listed = ran("experiments.cli", "parts", "representation", cwd=tmp_path, site=site)
    assert "label_groups: The share of each group of labels: a shorter report, which says less." in listed
    (tmp_path / "turning.toml").write_text(blocks()[2], encoding="utf-8")
    ran("experiments.cli", "run", "turning.toml", "--out", "out", cwd=tmp_path, site=site)
    lines = (tmp_path / "out/groups/seed-0/log.jsonl").read_text(encoding="utf-8").splitlines()
    rounds = [record for record in map(json.loads, lines) if record["kind"] == "round"]
    # Five numbers of 4 bytes from each of 20 clients at registration, and again when their labels have moved.
    assert rounds[0]["control_bytes"] == 20 * 5 * 4
    assert rounds[2]["reported"] == 20
    assert rounds[2]["control_bytes"] == 2 * 20 * 5 * 4


def test_the_parts_keep_their_contracts(site: Path, tmp_path: Path) -> None:
    (tmp_path / "test_parts.py").write_text(blocks()[3], encoding="utf-8")
    assert "1 passed" in ran(
        "pytest", "-q", "-p", "no:cacheprovider", "test_parts.py", cwd=tmp_path, site=site
    )


def test_a_part_without_a_package_runs_and_keeps_its_contracts(tmp_path: Path) -> None:
    for name, text in zip(("my_parts.py", "highest.toml", "test_mine.py"), blocks()[4:7], strict=True):
        (tmp_path / name).write_text(text, encoding="utf-8")
    ran("experiments.cli", "run", "highest.toml", "--out", "out", cwd=tmp_path, site=tmp_path / "no-site")
    for arm in ("plain", "skipping"):
        assert (tmp_path / "out" / arm / "seed-0/DONE").exists()
    assert "1 passed" in ran(
        "pytest", "-q", "-p", "no:cacheprovider", "test_mine.py", cwd=tmp_path, site=tmp_path
    )


@pytest.mark.parametrize("first", ["class SpreadSettings", "class HeldOnly"])
def test_the_trigger_and_the_adaptation_of_the_page_are_those_that_are_tested(first: str) -> None:
    package = (ROOT / "tests/plugin_package/field_parts.py").read_text(encoding="utf-8")
    [code] = [block for block in blocks() if first in block]
    assert code[code.index(first) :] in package
