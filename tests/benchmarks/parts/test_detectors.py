from __future__ import annotations

from types import SimpleNamespace

import pytest

from benchmarks.parts.detectors import CONTENDERS, DetectorSizes, detector_figures, signal_figures
from benchmarks.training import Schedule
from coordinator.detectors import DETECTORS

TINY = DetectorSizes(clients=40, deciding=5, objects=4)


class NeverDrifts:
    """Has the interface of river's detectors, and counts its numbers."""

    drift_detected = False
    numbers = 0

    def __init__(self, **settings: bool) -> None:
        self.settings = settings

    def update(self, number: float) -> None:
        type(self).numbers += 1


def ignore(text: str) -> None:
    pass


def test_every_detector_that_watches_training_is_measured() -> None:
    watching = {name for name, part in DETECTORS if part.watches == "training"}
    assert {contender.part for contender in CONTENDERS} == watching


def test_a_detector_has_its_time_that_of_a_few_clients_and_its_memory() -> None:
    figures = {item.name: item for item in detector_figures(TINY, 1, ignore, None)}
    assert len(figures) == 3 * len(CONTENDERS)
    for contender in CONTENDERS:
        everyone, few, memory = (
            figures[f"detectors-{contender.name}{what}"] for what in ("", "-few", "-memory")
        )
        assert everyone.target is not None
        assert (everyone.unit, everyone.target.at_least) == ("ms", contender.most_ms)
        assert few.target is not None
        assert few.target.at_least == 0.3
        assert memory.unit == "MB"
    assert figures["detectors-ddm-memory"].value == pytest.approx(40 * (4 * 8 + 1) / 1e6)
    assert all(item.ratio is None for item in figures.values())


def test_those_that_river_has_are_compared_with_its_objects() -> None:
    names = {"PageHinkley", "ADWIN"}
    binary = SimpleNamespace(**dict.fromkeys(("DDM", "EDDM", "HDDMA", "HDDMW"), NeverDrifts))
    figures = detector_figures(
        TINY, 1, ignore, SimpleNamespace(binary=binary, **dict.fromkeys(names, NeverDrifts))
    )
    compared = {item.name for item in figures if item.ratio is not None}
    assert compared == {f"detectors-{item.name}" for item in CONTENDERS if not item.part.startswith("loss")}
    # 32 numbers before the measurement, one as a warm-up and one measured, of four clients each.
    assert NeverDrifts.numbers == len(compared) * 34 * 4


def test_both_signals_are_compared_with_a_wave_that_measures_nothing() -> None:
    figures = signal_figures(1, ignore, clients=3, schedule=Schedule(steps=2))
    assert [item.name for item in figures] == ["w1-batch-errors", "w1-batch-losses"]
    assert all(item.ratio is not None and item.target is not None for item in figures)
