"""Folders are small: at most 18 modules each, except those of one kind: of plug-in, of table, of figure."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ENGINE = ("emulator", "coordinator", "executor", "experiments", "driftscale", "benchmarks")
OF_ONE_KIND = {
    *(f"coordinator/{kind}" for kind in ("aggregators", "clusterers", "detectors", "memories", "pacing")),
    *("experiments/results/figures", "experiments/results/tables"),
    *("coordinator/schedules", "coordinator/selectors", "executor/models", "executor/rules"),
}
MOST_MODULES = 18


def test_a_folder_of_the_engine_has_at_most_18_modules() -> None:
    folders = {path.parent for package in ENGINE for path in (ROOT / package).rglob("*.py")}
    assert len(folders) > 20
    modules = {str(folder.relative_to(ROOT)): len(list(folder.glob("*.py"))) for folder in folders}
    crowded = {name: count for name, count in modules.items() if count > MOST_MODULES}
    assert {name for name in crowded if name not in OF_ONE_KIND} == set()
