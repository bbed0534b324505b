"""The parts of an installed third-party package are found, pass the contracts and work in a run."""

from __future__ import annotations

import importlib
import json
import os
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import driftscale
from coordinator.clusterers.fielding import Fielding, FieldingSettings
from emulator.plugins import Chosen
from experiments import contracts
from tests.processes import forked

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path(__file__).with_name("plugin_package")
COMMANDS = (
    *(["parts", kind] for kind in ("adaptation", "clusterer", "pacing", "trigger", "source")),
    ["profiles", "list"],
)


@pytest.fixture
def field_parts(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(PACKAGE))
    return importlib.import_module("field_parts")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The environment of a process that finds the package by its entry points, as if pip had installed it."""
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    metadata = tmp_path / "site" / f"field_parts-{project['version']}.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    with (metadata / "entry_points.txt").open("w") as file:
        for group, entries in project["entry-points"].items():
            file.write(f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in entries.items()))
    path = os.pathsep.join(map(str, (metadata.parent, PACKAGE, ROOT)))
    return {**os.environ, "PYTHONPATH": path}


def run(*command: str, environment: dict[str, str]) -> str:
    """The output of the command, which must succeed."""
    done = forked.run(
        [sys.executable, *command], env=environment, cwd=PACKAGE, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_parts_of_a_few_lines_pass_the_contracts(field_parts: ModuleType) -> None:
    for name in ("EvenAndOdd", "HeldOnly", "Clouds", "SemiSync", "Spread"):
        part = getattr(field_parts, name)
        contracts.check_part(part, part.Settings())
    contracts.check_adaptation(lambda: field_parts.HeldOnly(field_parts.HeldOnly.Settings()))
    contracts.check_clusterer(lambda: field_parts.EvenAndOdd(field_parts.EvenAndOdd.Settings()))
    trigger = Chosen("spread", field_parts.Spread, field_parts.SpreadSettings())
    contracts.check_clusterer(lambda: Fielding(FieldingSettings(trigger=trigger)))
    contracts.check_pacing(lambda cohort: field_parts.SemiSync(field_parts.SemiSyncSettings(), cohort))
    contracts.check_trace_source(lambda: field_parts.Clouds(field_parts.CloudsSettings()))
    contracts.check_device_profile(field_parts.TwoSpeeds())


def test_commands_list_the_parts_of_an_installed_package(environment: dict[str, str]) -> None:
    output = run(
        "-c",
        "import sys\n"
        "from contextlib import suppress\n"
        "from experiments.cli import main\n"
        f"for command in {COMMANDS!r}:\n"
        "    sys.argv = ['driftscale', *command]\n"
        "    with suppress(SystemExit):\n"
        "        main()\n",
        environment=environment,
    )
    assert "even_and_odd: Two models: one for clients of even ids, one for those of odd ids." in output
    assert "held_only: A client never predicts a label of which it holds no training sample." in output
    assert "semi_sync: Waits for half of its participants" in output
    assert "spread: Fires when clients are far from the centres of their clusters" in output
    assert "clouds: Two clouds of points, a label each;" in output
    assert "how many clients there are" in output
    assert "two_speeds: made up" in output


def test_a_run_uses_the_parts_of_an_installed_package(environment: dict[str, str], tmp_path: Path) -> None:
    run("-m", "experiments.cli", "run", "field.toml", "--out", str(tmp_path / "out"), environment=environment)
    rounds = rounds_of(tmp_path / "out", "even_and_odd")
    assert [line["clusters"] for line in rounds] == [[0, 1]] * 4
    # Two steps on batches of four take a fast device 0.08 s and a slow one 0.8 s, the transfers 0.04 s. The
    # pacing waits for two of four clients, or after 0.5 s for one.
    durations_s = {round(line["closed_s"] - line["dispatched_s"], 2) for line in rounds}
    assert durations_s <= {0.12, 0.5, 0.84}
    assert all(len(line["kept"]) < 4 for line in rounds)
    assert all(line["accuracy"] > 0 for line in rounds)
    assert {line["adaptation_samples"] for line in rounds_of(tmp_path / "out", "spread_apart")} == {0.0}
    found = numbers_of(tmp_path / "out", "spread_apart")
    assert found
    assert [list(numbers) for numbers in found] == [["spread", "limit", "farthest", "sizes"]] * len(found)
    assert all(sum(numbers["sizes"]) == 8 for numbers in found)

    results = driftscale.load(tmp_path / "out")  # which does not import the package
    columns = [f"trigger.{name}" for name in ("spread", "limit", "farthest", "sizes")]
    table = pq.read_table(tmp_path / "out" / "rounds.parquet")
    assert table.column_names[-4:] == list(results.rounds.columns[-4:]) == columns
    for rows in (table.to_pylist(), results.rounds.to_dict("records"), results.triggers.to_dict("records")):
        logged = [row for row in rows if row["arm"] == "spread_apart" and known(row["trigger.spread"])]
        assert [row["trigger.spread"] for row in logged] == [numbers["spread"] for numbers in found]
        assert [list(row["trigger.sizes"]) for row in logged] == [numbers["sizes"] for numbers in found]

    lines = {trace.name: trace for trace in results.plot_trigger().data if trace.name != "fired"}
    clusters = range(max(len(numbers["sizes"]) for numbers in found))
    by_cluster = [f"{name} {cluster}" for name in ("farthest", "sizes") for cluster in clusters]
    assert list(lines) == ["spread", "limit", *by_cluster]
    np.testing.assert_allclose(lines["spread"].y, [numbers["spread"] for numbers in found], rtol=1e-6)


def rounds_of(out: Path, arm: str) -> list[dict[str, Any]]:
    """The lines of the rounds of a run."""
    log = out / arm / "seed-0" / "log.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    return [line for line in lines if line["kind"] == "round"]


def numbers_of(out: Path, arm: str) -> list[dict[str, Any]]:
    """What the trigger of a run logged, of the rounds in which it was evaluated."""
    return [line["trigger"]["numbers"] for line in rounds_of(out, arm) if line["trigger"] is not None]


def known(value: float | None) -> bool:
    return value is not None and value == value
