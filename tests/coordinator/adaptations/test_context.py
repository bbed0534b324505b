from __future__ import annotations

import numpy as np
import pytest

from coordinator.adaptations.base import Held
from coordinator.adaptations.context import WithContext
from emulator.arrays import Floats
from emulator.errors import ConfigurationError
from emulator.seeding import RandomStreams
from experiments import contracts
from tests.coordinator.adaptations.views import a_view


def a_held(features: list[list[float]], labels: list[int], owner: list[int]) -> Held:
    rows = np.arange(max(owner) + 1)
    return Held(rows, np.array(features, dtype=np.float32), np.array(labels), np.array(owner))


def with_context(seed: int = 0) -> WithContext:
    adaptation = WithContext(size=2)
    adaptation.streams = RandomStreams(seed)
    return adaptation


def contexts(adaptation: WithContext, held: Held) -> Floats:
    view = a_view([[1, 1]] * len(held.rows), held=lambda: iter([held]))
    ways = adaptation.adapt(view).ways
    assert ways is not None
    return ways[:, 0]


BOTH = a_held([[0.0], [2.0], [4.0], [10.0]], [0, 1, 0, 1], [0, 0, 1, 1])
"""Means of client 0: 1, and less that -1 and +1 of the labels; of client 1: 7, -3 and +3."""


def test_a_context_is_zero_before_the_first_report_and_for_plain_samples() -> None:
    adaptation = with_context()
    assert not contexts(adaptation, BOTH).any()
    plain = np.array([[3.0, 4.0]], dtype=np.float32)
    assert adaptation.read(plain, np.zeros((1, 0))).tolist() == [[3, 4, 0, 0]]
    assert adaptation.read(plain, np.array([[np.nan, np.nan]])).tolist() == [[3, 4, 0, 0]]
    assert adaptation.read(plain, np.array([[5.0, 6.0]])).tolist() == [[3, 4, 5, 6]]


def test_it_projects_how_means_differ_from_the_common_ones() -> None:
    """The common mean is 4, and less that -2 and +2 of the labels: client 0 differs by -3, +1 and -1."""
    adaptation = with_context()
    view = a_view([[1, 1], [1, 1]], held=lambda: iter([BOTH]))
    adaptation.sent_out(view, adaptation.adapt(view))
    drawn = [adaptation.streams.generator("context", row).standard_normal((1, 2))[0] for row in range(3)]
    differs = (-3 * drawn[0] + drawn[1] - drawn[2]) / np.sqrt(3)
    np.testing.assert_allclose(contexts(adaptation, BOTH), [differs, -differs], atol=1e-12)
    alone = a_held([[0.0]], [0], [0])  # lacks label 1, whose part is 0
    np.testing.assert_allclose(contexts(adaptation, alone), [(-4 * drawn[0] + 2 * drawn[1]) / np.sqrt(3)])


def test_the_projection_is_of_the_seed() -> None:
    view = a_view([[1, 1], [1, 1]], held=lambda: iter([BOTH]))
    found = []
    for seed in (0, 0, 1):
        adaptation = with_context(seed)
        adaptation.sent_out(view, adaptation.adapt(view))
        found.append(contexts(adaptation, BOTH))
    assert np.array_equal(found[0], found[1])
    assert not np.allclose(found[0], found[2])


def test_tokens_have_no_context() -> None:
    with pytest.raises(ConfigurationError, match="tokens, which have no mean"):
        with_context().check_features((16,), integers=True)


def test_it_keeps_the_contract_of_adaptations() -> None:
    contracts.check_adaptation(lambda: WithContext(size=3))
