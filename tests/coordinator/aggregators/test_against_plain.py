"""Robust aggregators against plain implementations of their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.aggregators.krum import Krum, KrumSettings
from coordinator.aggregators.median import Median
from coordinator.aggregators.norm_clip import NormClip, NormClipSettings
from coordinator.aggregators.trimmed_mean import TrimmedMean, TrimmedMeanSettings
from tests.coordinator.aggregators.arrived import arrived, zero_models
from tests.fakes import NOTHING

COUNTS = st.integers(1, 14)
SEEDS = st.integers(0, 2**32 - 1)


def a_delta(count: int, seed: int) -> np.ndarray:
    """Random updates, some of them large and some equal."""
    rng = np.random.default_rng(seed)
    delta = rng.normal(size=(count, 4)) * rng.choice([0.1, 1, 50], size=(count, 1))
    return delta[rng.integers(0, count, count)].astype(np.float32)


def moved(part, delta) -> list[float]:
    return part.aggregate(arrived(delta), zero_models(1, 4))[0].tolist()


@given(count=COUNTS, seed=SEEDS)
def test_the_median(count, seed):
    delta = a_delta(count, seed)
    plain = np.median(delta.astype(np.float64), axis=0)
    assert moved(Median(NOTHING), delta) == plain.astype(np.float32).tolist()


@given(count=COUNTS, seed=SEEDS, hundredths=st.integers(0, 49))
def test_the_trimmed_mean(count, seed, hundredths):
    delta, cut = a_delta(count, seed), hundredths * count // 100
    plain = [np.mean(sorted(column)[cut : count - cut]) for column in delta.astype(np.float64).T.tolist()]
    part = TrimmedMean(TrimmedMeanSettings(trim=hundredths / 100))
    assert moved(part, delta) == pytest.approx(plain, rel=1e-6, abs=1e-6)


@given(count=COUNTS, seed=SEEDS, tenths=st.integers(0, 4), keep=st.integers(1, 6))
def test_krum(count, seed, tenths, keep):
    delta = a_delta(count, seed)
    byzantine = max(0, min(math.ceil(tenths * count / 10 - 1e-9), (count - 3) // 2))
    scores = []
    for row in range(count):
        far = sorted(
            float(np.square(delta[row].astype(np.float64) - delta[neighbour]).sum())
            for neighbour in range(count)
            if neighbour != row
        )
        scores.append((round(sum(far[: max(0, count - byzantine - 2)]), 6), row))
    best = [row for _, row in sorted(scores)[: min(keep, count - byzantine)]]
    part = Krum(KrumSettings(byzantine=tenths / 10, keep=keep))
    assert moved(part, delta) == pytest.approx(
        delta[best].astype(np.float64).mean(axis=0), rel=1e-4, abs=1e-4
    )


@given(count=COUNTS, seed=SEEDS, max_norm=st.one_of(st.none(), st.floats(0.01, 100)))
def test_norm_clip(count, seed, max_norm):
    delta = a_delta(count, seed)
    norms = [math.sqrt(sum(number**2 for number in row)) for row in delta.astype(np.float64).tolist()]
    longest = float(np.median(norms)) if max_norm is None else max_norm
    shorter = [min(1.0, longest / norm) * row for norm, row in zip(norms, delta.astype(float), strict=True)]
    part = NormClip(NormClipSettings(max_norm=max_norm))
    assert moved(part, delta) == pytest.approx(np.mean(shorter, axis=0), rel=1e-5, abs=1e-6)
