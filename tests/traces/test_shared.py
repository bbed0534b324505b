"""What another process maps is what the trace reads."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from emulator.seeding import RandomStreams
from emulator.state_tree import from_bytes, to_bytes
from experiments.config import locator
from tests.experiments.small import drifting, small
from tests.traces.tiny import trace_of
from traces.shared import MappedSamples, SharedTrace
from traces.sources import TraceContext
from traces.trace import Trace


def drawn(noise: float = 0.0) -> Trace:
    experiment = small(trace={"noise": noise})
    return experiment.trace.build().build(TraceContext(6, RandomStreams(3), locator(None, None)))


def concepts() -> Trace:
    return drifting().trace.build().build(TraceContext(4, RandomStreams(3), locator(None, None)))


def listed() -> Trace:
    return trace_of([(0, 0, 0, 1), (0, 1, 0, 0), (1, 0, 0, 2), (1, 0, 1, 0), (1, 1, 0, 1)], noise=0.5)


TRACES = {
    "even": drawn,
    "even and noisy": lambda: drawn(0.3),
    "concepts": concepts,
    "sorted": listed,
    "flipped": lambda: drawn().with_flipped_labels(np.array([1, 4])),
    "flipped and sorted": lambda: listed().with_flipped_labels(np.array([1])),
}


@pytest.mark.parametrize("kind", TRACES)
def test_mapped_samples_are_those_of_the_trace(kind: str, tmp_path: Path) -> None:
    trace = TRACES[kind]()
    rows = np.random.default_rng(0).permutation(len(trace))
    features, labels = trace.features(rows), trace.labels(rows)
    shared = SharedTrace(trace, tmp_path)
    assert list(tmp_path.iterdir()) == []
    description = from_bytes(to_bytes(shared.description))  # as it travels
    mapped = MappedSamples(description, [os.dup(one) for one in shared.descriptors])
    assert (mapped.sample_shape, mapped.num_labels) == (trace.sample_shape, trace.num_labels)
    assert mapped.features(rows).tobytes() == features.tobytes()
    assert mapped.labels(rows).tolist() == labels.tolist()
    assert trace.features(rows).tobytes() == features.tobytes()  # and the trace goes on as it was
    assert trace.labels(rows).tolist() == labels.tolist()
    del shared, trace  # the files are there as long as anybody maps them
    assert mapped.labels(rows).tolist() == labels.tolist()


def test_what_is_mapped_elsewhere_cannot_be_written_to(tmp_path: Path) -> None:
    trace = drawn()
    shared = SharedTrace(trace, tmp_path)
    mapped = MappedSamples(shared.description, [os.dup(one) for one in shared.descriptors])
    with pytest.raises(ValueError, match="read-only"):
        mapped._samples.images.pixels[0] = 1
