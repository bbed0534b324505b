"""What sources, drifts, partitions and concept sets return: the rules by which guards hold own ones to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from emulator.arrays import Floats, Ints
from emulator.own.declared import expect, expect_array
from traces.trace import Trace

if TYPE_CHECKING:
    from traces.concepts.base import ConceptSamples, ConceptSet
    from traces.drift.base import Drift
    from traces.partitions.base import Partition, Samples
    from traces.sources.base import TraceContext, TraceSource

ROUNDING = 1e-6
"""How far shares may be from summing to 1."""


def trace(trace: Trace, source: TraceSource, context: TraceContext) -> None:
    """Rule of `TraceSource.build`."""
    expect(isinstance(trace, Trace), "must be a Trace")


def shares(
    shares: Floats,
    drift: Drift,
    num_clients: int,
    num_windows: int,
    num_labels: int,
    *_: object,
    **__: object,
) -> None:
    """Rule of what `Drift.shares` yields."""
    # Without the last labels there are shares of the others alone.
    expect_array(shares, (num_clients, min([*np.shape(shares)[1:2], num_labels])), "f", 0)
    expect(np.allclose(shares.sum(axis=1), 1, rtol=0, atol=ROUNDING), "rows must sum to 1")


def clients(
    clients: Ints, partition: Partition, samples: Samples, num_clients: int, generator: np.random.Generator
) -> None:
    """Rule of `Partition.assign`."""
    expect_array(clients, (len(samples),), "i", 0, num_clients - 1)


def count(number: int, concepts: ConceptSet) -> None:
    """Rule of `ConceptSet.num_concepts`."""
    expect(number >= 1, "must be at least 1")


def drawn(drawn: ConceptSamples, concepts: ConceptSet, pattern: Ints, samples: int, *_: object) -> None:
    """Rule of `ConceptSet.draw`."""
    for numbers, count in ((drawn.image, len(drawn.pool)), (drawn.label, drawn.pool.num_labels)):
        expect_array(numbers, (*pattern.shape, samples), "i", 0, count - 1)
