"""Composed configurations come to the same bytes however they are played; the long run is `fuzz_runs.py`."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from coordinator.aggregators import AGGREGATORS
from coordinator.clusterers import CLUSTERERS
from coordinator.pacing import PACINGS
from emulator.plugins import Registry
from executor.models import MODELS
from executor.objectives import OBJECTIVES
from executor.rules import RULES
from experiments.build import World
from experiments.config import PartsRow
from tests.reliability.composed import LARGE, OF_TEXTS, Drawn, parts_of, write_data
from tests.reliability.fuzz_runs import found_after, fuzz, refusal
from tests.reliability.rows import ARMS, row
from tests.reliability.stops import Stopped, state_fields
from traces.changes.settings import OPERATIONS
from traces.sources import SOURCES

SUITE, SWEEP = 14, 250

PLAYED: Mapping[str, Registry[Any]] = {
    "solver": RULES,
    "aggregator": AGGREGATORS,
    "model": MODELS,
    "pacing": PACINGS,
}
"""Kinds of parts of which the suite plays every one of ours, beside whatever else is drawn."""

WITHOUT_EFFECT = {
    ("Visits", "_taken"): "matters to the run only while nothing was absorbed: test_giving_up.py",
    ("Visits", "_sent"): "decides only how many ends of visits are evaluated at once",
    ("Visits", "_start_s"): "no pacing of ours looks at more of the time than whether a deadline has passed",
    ("Visits", "_is_planned_anew"): "is true between events of one instant alone, as quotas change",
    ("FedDrift", "_given_up"): "stays empty: only FedDrift-C gives models up",
    ("Hearing", "_unheard"): "stays empty unless gradients overflow",
}
"""Fields of which no composed configuration could show that they are not stored, and why."""

DIRECTED = 40
"""Configurations with a part among which one shows that a field of it is not stored."""


def test_composed_configurations_of_every_method_come_to_the_same_bytes_with_other_threads_and_stops(
    tmp_path: Path,
) -> None:
    tally = fuzz(7, SUITE, tmp_path / "found", at_once=True)
    assert tally.problems == []
    assert tally.played == SUITE
    assert tally.stops > SUITE / 2
    ours = {f"{kind}: {name}" for kind, registry in PLAYED.items() for name in registry.ours()}
    assert ours - tally.parts.keys() == {f"model: {name}" for name in LARGE | OF_TEXTS}


def test_draws_name_most_parts_and_are_the_same_for_a_key() -> None:
    tables = [Drawn(f"0/{number}").table() for number in range(60)]
    assert tables[:9] == [Drawn(f"0/{number}").table() for number in range(9)]
    assert {key for table in tables for arm in table["arm"] for key in arm} == {
        "name",
        "training",
        *PartsRow.model_fields,
    }
    parts = {part for table in tables for part in parts_of(table)}
    ours = {f"source: {name}" for name in SOURCES.ours()} | {
        f"clusterer: {name}" for name in CLUSTERERS.ours()
    }
    changes = {f"change: {name}" for name in OPERATIONS if name != "target"}  # none here has targets
    objectives = {f"objective: {name}" for name in OBJECTIVES.ours()}
    forms = {f"change when: {when}" for when in ("pattern", "staggered", "every")} | {"change of: names"}
    assert (ours | changes | objectives | forms) - parts == set()


def test_a_refused_configuration_is_repaired_the_same_way_each_time_and_keeps_its_methods(
    tmp_path: Path,
) -> None:
    write_data(tmp_path)
    tables = []
    for _ in range(2):
        drawn = next(
            drawn
            for drawn in map(Drawn, (f"0/{number}" for number in range(9)))
            if refusal(drawn.table(), tmp_path)
        )
        before = drawn.table()
        assert drawn.repair(lambda table: refusal(table, tmp_path) is not None)
        assert refusal(drawn.table(), tmp_path) is None
        methods = [(arm["solver"], arm["aggregator"]) for arm in drawn.table()["arm"]]
        assert methods == [(arm["solver"], arm["aggregator"]) for arm in before["arm"]]
        tables.append(drawn.table())
    assert tables[0] == tables[1]


@pytest.mark.sweep
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_composed_configurations_come_to_the_same_bytes_in_every_way(seed: int, tmp_path: Path) -> None:
    tally = fuzz(seed, SWEEP, tmp_path / "found", workers=True)
    assert tally.problems == []
    assert tally.played == SWEEP


# -- fields that are not stored -----------------------------------------------------------------------------


def directed(name: str) -> Iterator[Mapping[str, Any]]:
    """What configurations about a row are given: its parts and its trace, without and with spells."""
    base, arm = ARMS[name]
    lengths = {key: base["round"][key] for key in ("rounds", "participants", "over_commit")}
    fixed = {**base.get("parts", {}), **arm, "trace": base["trace"], "round": lengths}
    explored = {"clusterer": {**arm["clusterer"], "explore": 0.5}} if name == "auxo" else {}
    yield {**fixed, **explored}
    yield {**fixed, **explored, "devices": {"availability": "spells.csv", "profile": "smartphones"}}


def rows_by_field(world_of: Callable[[str], World], folder: Path) -> dict[str, list[str]]:
    """The rows that have each field of the state, "module:Class.field", but those WITHOUT_EFFECT."""
    rows: dict[str, list[str]] = {}
    for name in ARMS:
        with Stopped(row(name), world_of(name), folder / name).attempt() as attempt:
            fields = state_fields(attempt.emulation.coordinator)
        for cls, field in sorted(fields, key=str):
            if (cls.__name__, field) not in WITHOUT_EFFECT:
                rows.setdefault(f"{cls.__module__}:{cls.__name__}.{field}", []).append(name)
    return rows


@pytest.mark.sweep
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_a_field_that_is_not_stored_is_found_by_configurations_about_its_part(
    seed: int, world_of: Callable[[str], World], tmp_path: Path
) -> None:
    rows = rows_by_field(world_of, tmp_path)
    field = random.Random(seed).choice(sorted(rows))
    for number in range(DIRECTED):
        name = rows[field][number % len(rows[field])]
        if any(found_after(field, 1, number, fixed) for fixed in directed(name)):
            return
    raise AssertionError(f"{field} is not stored, and {2 * DIRECTED} configurations came to the same bytes")
