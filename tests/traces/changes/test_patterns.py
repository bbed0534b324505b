"""FedDrift's patterns as changes of any source: the same drift cells, and of its test bed the same trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emulator.errors import ConfigurationError
from emulator.seeding import RandomStreams
from traces.sources import SOURCES, TraceContext
from traces.trace import Trace, TraceStream

FOUR = [{"swap": [[1, 2]]}, {"swap": [[3, 4]]}, {"swap": [[5, 6]]}]
"""FedDrift's MNIST-4: the concepts after the first."""


def built(source: str, rounds: int = 10, seed: int = 0, **settings: Any) -> Trace:
    kind = SOURCES.find(source)
    chosen = kind.Settings.model_validate({"rounds_per_step": 1, **settings})
    trace: Trace = kind(chosen).build(TraceContext(rounds, RandomStreams(seed), Path))
    return trace


def digits(pattern: Any, seed: int = 0, rounds: int = 10, **settings: Any) -> Trace:
    change = {"what": FOUR, "on": "arrivals", "pattern": pattern}
    sizes = {"clients": 10, "samples_per_step": 1, "test_samples_per_step": 1, "retain_rounds": 1}
    return built("digits", rounds, seed, changes=[change], **{"test_on": "next", **sizes, **settings})


def drift_cells(trace: Trace, steps: int = 10) -> int:
    stream, cells = TraceStream(trace), 0
    for step in range(steps):
        stream.advance_to_round(step)
        assert stream.concepts is not None
        cells += int((stream.concepts != stream.test_concepts).sum())
    return cells


@pytest.mark.parametrize(
    ("pattern", "cells"), [("Y", 10), ("F", 29), ("R0", 32), ("R1", 28), ("R2", 32), ("R3", 32), ("R4", 31)]
)
def test_patterns_have_the_drift_cells_of_the_paper(pattern: str, cells: int) -> None:
    assert drift_cells(digits(pattern)) == cells


def test_the_pattern_of_a_seed_is_that_of_its_number() -> None:
    assert [drift_cells(digits("R", seed)) for seed in (0, 1, 4)] == [32, 28, 31]
    with pytest.raises(ConfigurationError, match="there are R0 to R9; seed 10 has none"):
        digits("R", 10)


@pytest.mark.parametrize("on", ["held", "arrivals"])
def test_feddrifts_own_test_bed_is_an_unchanged_one_with_a_pattern(on: str) -> None:
    # SINE's second concept swaps the two labels of the first.
    pattern = ["000", "010", "011", "101", "001"]
    sizes = {"concepts": "sine", "samples_per_step": 6}
    theirs = built("concepts", 4, pattern=pattern, **sizes)
    change = {"what": "reverse", "on": on, "pattern": pattern}
    ours = built("concepts", 4, pattern=["000"] * 5, changes=[change], **sizes)
    assert theirs.concepts is not None
    assert ours.concepts is not None
    assert ours.concepts.tolist() == theirs.concepts.tolist()
    streams = TraceStream(ours), TraceStream(theirs)
    for step in range(4):
        for stream in streams:
            stream.advance_to_round(step)
        for client in range(3):
            rows = [stream.held(np.array([client]), "test").rows(0) for stream in streams]
            assert np.array_equal(ours.features(rows[0]), theirs.features(rows[1]))
            assert np.array_equal(ours.labels(rows[0]), theirs.labels(rows[1]))
            if on == "held":
                continue  # there earlier samples change too, which FedDrift's do not
            rows = [stream.held(np.array([client]), "train").rows(0) for stream in streams]
            assert np.array_equal(ours.features(rows[0]), theirs.features(rows[1]))
            assert np.array_equal(ours.labels(rows[0]), theirs.labels(rows[1]))


def test_an_own_pattern_composes_with_that_of_the_test_bed() -> None:
    change = {"what": "reverse", "on": "arrivals", "pattern": ["01", "01", "01"]}
    trace = built(
        "concepts", 2, concepts="sine", samples_per_step=6, pattern=["00", "11", "11"], changes=[change]
    )
    # A change of concept 0 is the first new one; of concept 1, the second.
    assert trace.concepts is not None
    assert trace.concepts.tolist() == [[0, 2], [1, 3], [1, 3]]


def test_a_run_may_end_before_the_pattern_of_its_test_bed() -> None:
    change = {"what": "reverse", "on": "held", "at_step": 1}
    trace = built(
        "concepts", 2, concepts="sine", samples_per_step=6, pattern=["00", "01", "01", "01"], changes=[change]
    )
    assert trace.concepts is not None
    assert trace.concepts.tolist() == [[0, 0], [2, 3], [2, 3], [2, 3]]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"clients": 9}, "pattern has 10 clients, and the trace 9"),
        ({"rounds": 9}, "pattern has 11 rows; must have 10, one for each of the 9 data steps of the run"),
        (
            {"pattern": [*["0" * 10] * 10, "1" * 10], "test_on": "present"},
            r"the last row of pattern is for tests of the next data step, and differs from the one before: "
            r"set trace\.test_on = 'next'",
        ),
    ],
)
def test_a_pattern_that_does_not_fit_is_refused(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says) as caught:
        digits(**{"pattern": "F", **settings})
    assert str(caught.value).startswith("trace.changes.0: ")
