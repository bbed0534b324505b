"""Detectors that river has, too, decide as its objects do: number by number, on 200 streams."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from coordinator.detectors import DETECTORS
from coordinator.detectors.columns import Columns
from emulator.arrays import Bools, Floats

STREAMS = 200


@pytest.fixture(scope="module")
def drift() -> ModuleType:
    """The detectors of river; imported only here, which takes a second."""
    return pytest.importorskip("river.drift")


def streams(length: int, *, losses: bool) -> Floats:
    """(200, length) numbers that rise half-way, or fall; bits, and every other stream losses clipped to 1."""
    generator = np.random.default_rng(7)
    levels = generator.uniform(0.02, 0.98, size=(STREAMS, 2))
    level = np.repeat(levels, (length // 2, length - length // 2), axis=1)
    numbers = (generator.random((STREAMS, length)) < level).astype(float)
    if losses:
        numbers[::2] = np.minimum(generator.gamma(4.0, level[::2] / 4.0), 1.0)
    return numbers


def of_river(part: type[Any], numbers: Floats, **settings: float) -> Bools:
    """(200, length) after which numbers an object of river for each stream has detected a drift."""
    found = np.zeros(numbers.shape, dtype=bool)
    for stream, flags in zip(numbers.tolist(), found, strict=True):
        detector = part(**settings)
        for at, number in enumerate(stream):
            detector.update(number)
            flags[at] = detector.drift_detected
    return found


def of_columns(detector: Columns, numbers: Floats) -> Bools:
    detector.open(STREAMS)
    everyone = np.arange(STREAMS)
    return np.stack([detector.detect(everyone, column[:, None], None) for column in numbers.T], axis=1)


COARSE = {"delta": 0.1, "clock": 5, "max_buckets": 2, "min_window_length": 2, "grace_period": 7}
FORGETFUL = {"delta": 0.1, "threshold": 1.0}

CASES: dict[str, tuple[str, dict[str, Any], str, dict[str, Any], int]] = {
    "ddm": ("ddm", {}, "DDM", {}, 300),
    "ddm-3": (
        "ddm",
        {"warm_start": 3, "threshold": 2.0},
        "DDM",
        {"warm_start": 3, "drift_threshold": 2.0},
        150,
    ),
    "page_hinkley": ("page_hinkley", {"threshold": 5.0}, "PageHinkley", {"threshold": 5.0}, 150),
    "page_hinkley-3": (
        "page_hinkley",
        {"warm_start": 3, "keep": 0.9, **FORGETFUL},
        "PageHinkley",
        {"min_instances": 3, "alpha": 0.9, **FORGETFUL},
        150,
    ),
    "page_hinkley-up": (
        "page_hinkley",
        {"two_sided": False, **FORGETFUL},
        "PageHinkley",
        {"mode": "up", **FORGETFUL},
        100,
    ),
    "eddm": ("eddm", {}, "EDDM", {}, 300),
    "eddm-5": ("eddm", {"warm_start": 5, "beta": 0.8}, "EDDM", {"warm_start": 5, "beta": 0.8}, 150),
    "hddm_a": ("hddm_a", {}, "HDDMA", {}, 100),
    "hddm_a-two-sided": (
        "hddm_a",
        {"two_sided": True, "confidence": 0.01},
        "HDDMA",
        {"two_sided_test": True, "drift_confidence": 0.01},
        100,
    ),
    "hddm_w": ("hddm_w", {}, "HDDMW", {}, 100),
    "hddm_w-two-sided": (
        "hddm_w",
        {"two_sided": True, "decay": 0.2},
        "HDDMW",
        {"two_sided_test": True, "lambda_val": 0.2},
        100,
    ),
    "adwin": ("adwin", {}, "ADWIN", {}, 300),
    "adwin-coarse": ("adwin", COARSE, "ADWIN", COARSE, 300),
}
"""Our detector and its settings, river's and its own, and the numbers of a stream."""


@pytest.mark.parametrize("case", CASES)
def test_every_decision_is_that_of_an_object_of_river(case: str, drift: ModuleType) -> None:
    name, settings, of, as_there, length = CASES[case]
    part = DETECTORS.find(name)
    numbers = streams(length, losses=name != "eddm")  # to river's EDDM, anything but 1 is right
    theirs = of_river(getattr(drift, of, None) or getattr(drift.binary, of), numbers, **as_there)
    assert (of_columns(part(part.Settings(**settings)), numbers) == theirs).all()
    assert theirs.any(axis=1).sum() > STREAMS / 10, "there is little to agree about"
    assert not theirs.all(axis=0).any()
