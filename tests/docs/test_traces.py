"""Own data by the README alone: a folder written with pandas; a CSV built and reported."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from tests.experiments.cli.conftest import Driftscale, driftscale  # noqa: F401  (a fixture)
from traces.files import open_folder

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
OWN_DATA = README[README.index("### Own data in ten lines") : README.index("### Populations")]
TRACES = (ROOT / "docs/traces.md").read_text(encoding="utf-8")


def blocks(language: str, page: str = OWN_DATA) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)


def commands(page: str = OWN_DATA) -> list[list[str]]:
    """The commands on a page, without the name of the program."""
    lines = [line for block in blocks("bash", page) for line in block.splitlines()]
    assert all(line.startswith("driftscale ") for line in lines)
    return [shlex.split(line)[1:] for line in lines]


def a_csv(header: str) -> str:
    """Rows below the documented header: two kinds of devices, whose activities have numbers of their own."""
    rng = np.random.default_rng(0)
    lines = [header]
    for row in range(1200):
        device, activity = row % 12, ("walk", "run", "rest")[int(rng.integers(3))]
        x, y, z = rng.normal([len(activity), device % 2, 0.0], 0.5).tolist()
        day = f"2024-{1 + row // 100:02d}-{1 + row % 28:02d}T08:00:00Z"
        lines.append(f"device{device},{day},{activity},{x:.3f},{y:.3f},{z:.3f}")
    return "\n".join(lines) + "\n"


def test_a_folder_written_with_pandas_is_played(
    driftscale: Driftscale,  # noqa: F811
    tmp_path: Path,
) -> None:
    pytest.importorskip("pandas", reason="pandas is an extra of developers")
    [code], [configuration] = blocks("python"), blocks("toml")
    exec(compile(code, "README.md", "exec"), {})
    folder = open_folder(tmp_path / "own")
    assert (len(folder.rows), len(folder.rows.clients), folder.features.shape) == (4000, 20, (8,))
    (tmp_path / "own.toml").write_text(configuration, encoding="utf-8")
    ended = driftscale("run", "own.toml")
    assert ended.code == 0, ended.err
    summary = json.loads((tmp_path / "runs/own/summary.json").read_text())
    assert summary["arms"]["global"]["mean_accuracy"]["mean"] > 0.4  # of three classes


def test_the_code_writes_a_folder_in_about_ten_lines() -> None:
    [code] = blocks("python")
    statements = [line for line in code.splitlines() if line and not line.startswith(("import", "from"))]
    assert len(statements) <= 11


def test_a_csv_becomes_a_report_by_the_commands_of_the_page(
    driftscale: Driftscale,  # noqa: F811
    tmp_path: Path,
) -> None:
    build, check, run = commands()
    [header] = [block.splitlines()[0] for block in blocks("") if block.startswith("device,")]
    Path("sensors.csv").write_text(a_csv(header), encoding="utf-8")
    ended = driftscale(*build)
    assert ended.code == 0, ended.err
    assert "12 clients" in ended.out
    folder = 'folder = "traces/sensors"'
    assert f'[trace]\nsource = "file"\n{folder}\n' in ended.out
    configuration = (
        blocks("toml")[0].replace('folder = "own"', folder).replace('name = "own"', 'name = "sensors"')
    )
    Path("sensors.toml").write_text(configuration, encoding="utf-8")
    assert driftscale(*check).code == 0
    ended = driftscale(*run)
    assert ended.code == 0, ended.err
    assert "sensors: accuracy over virtual time" in ended.out
    assert (tmp_path / "runs/sensors/report.html").stat().st_size > 1000


def test_the_commands_of_the_configurations_are_those_of_docs_traces() -> None:
    configurations = ROOT / "experiments/configs"
    for name in ("elec2", "portal"):
        [documented] = [words for words in commands(TRACES) if f"traces/{name}" in words]
        [shipped] = re.findall(
            r'^build = "driftscale (.*)"$', (configurations / f"{name}.toml").read_text(), re.M
        )
        assert shlex.split(shipped) == documented
