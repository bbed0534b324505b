"""The configuration that compares detectors at the same false alarms."""

from __future__ import annotations

from collections import Counter

from experiments.reading import load_experiment
from experiments.results.reading.recorded import curve_of
from experiments.shipped import shipped_files


def test_every_detector_is_at_several_thresholds_on_the_phones_of_digits_detectors() -> None:
    swept, single = (
        load_experiment(shipped_files()[name]) for name in ("digits-operating-points", "digits-detectors")
    )
    (arm,) = swept.arm
    assert arm.clusterer.kind == "single"  # nothing depends on flags
    thresholds = Counter(curve_of(name)[0] for name in arm.detectors)
    assert min(thresholds.values()) >= 5
    assert {chosen.kind for chosen in arm.detectors.values()} == set(thresholds)
    for table in ("trace", "devices", "training", "round", "detection"):
        assert getattr(swept, table) == getattr(single, table)
    assert set(swept.seeds).isdisjoint({100, 101, 102})  # on which the grids were chosen
