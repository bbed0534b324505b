from __future__ import annotations

from benchmarks.probes.memory import BUILD, resident_bytes


def test_the_probe_builds_a_fleet_then_a_run_and_objects() -> None:
    assert [name for name, _ in BUILD["fleet"](30)] == ["fleet", "run"]
    [(name, objects)] = BUILD["objects"](30)
    assert name == "objects"
    assert isinstance(objects, tuple)
    assert [len(part) for part in objects] == [30, 30]
    assert resident_bytes() > 1e6
