from __future__ import annotations

from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from coordinator.adaptations.prior import Prior, PriorSettings
from coordinator.federation.evaluation.adapting import mean_shares
from emulator.arrays import Floats
from emulator.messages import InferencePlan, SampleRanges
from tests.coordinator.adaptations.views import a_view, refused
from tests.executor.fakes import FakeReader, executor

COUNTS = [[4, 0], [1, 3], [2, 2]]


def offsets(settings: PriorSettings, **facts: Any) -> Floats:
    served = Prior(settings).adapt(a_view(COUNTS, **facts))
    assert served.plan.outputs is None
    assert served.plan.offsets is not None
    return served.plan.offsets


def test_own_shares_of_three_clients_and_two_labels_by_hand() -> None:
    """(h + 1/2) / (4 + 1); nobody is asked for anything."""
    assert not Prior(PriorSettings()).needs_label_shares
    found = offsets(PriorSettings(), reported_shares=refused)
    np.testing.assert_allclose(np.exp(found[:, 0]), [[0.9, 0.1], [0.3, 0.7], [0.5, 0.5]])


def test_of_two_models_each_is_corrected_by_its_own_reported_shares_by_hand() -> None:
    """Model 0 has seen shares (3/4, 1/4), model 1 (1/4, 3/4), smoothed (3.5, 1.5) / 5 and (1.5, 3.5) / 5."""
    assert Prior(PriorSettings(shares="reported")).needs_label_shares
    both = InferencePlan.alike(np.array([[0, 1], [1, 0], [0, -1]]))
    found = offsets(
        PriorSettings(shares="reported"),
        plan=both,
        models=np.zeros((2, 1), dtype=np.float32),
        reported_shares=lambda: np.array([[0.75, 0.25], [0.25, 0.75]]),
    )
    own, of_model = np.array([[4.5, 0.5], [1.5, 3.5], [2.5, 2.5]]), np.array([[3.5, 1.5], [1.5, 3.5]])
    np.testing.assert_allclose(np.exp(found[0]), own[0] / of_model)
    np.testing.assert_allclose(np.exp(found[1]), own[1] / of_model[::-1])
    np.testing.assert_allclose(np.exp(found[2, 0]), own[2] / of_model[0])


def test_a_client_whose_shares_are_those_of_the_model_changes_nothing() -> None:
    shares = np.array([[0.25, 0.75]])
    found = offsets(PriorSettings(shares="reported"), reported_shares=lambda: shares)
    np.testing.assert_allclose(found[1, 0], 0.0, atol=1e-12)
    assert (np.abs(found[[0, 2]]) > 0.1).all()


def test_the_shares_of_a_model_are_the_mean_of_what_its_clients_have_reported() -> None:
    """Client 2 has reported nothing, and nobody is served by model 2."""
    shares = np.array([[1.0, 0.0], [0.5, 0.5], [np.nan, np.nan]])
    plan = InferencePlan.alike(np.array([[0, 1], [0, -1], [1, -1]]))
    assert mean_shares(plan, shares, 3).tolist() == [[0.75, 0.25], [1.0, 0.0], [0.5, 0.5]]


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_with_the_true_mix_two_gaussians_are_told_apart_as_well_as_bayes_can(share: float) -> None:
    """Labels at -1 and +1 with variance 1: the logit of equal shares is 2x, and of others 2x + ln p1 / p0.

    Bayes' error is p0 Phi(-1 - t / 2) + p1 Phi(-1 + t / 2) with t = ln(p1 / p0).
    """
    rng, num = np.random.default_rng(0), 200_000
    reader = FakeReader(rows=num, sample_shape=(1,), num_labels=2)
    reader.y = (rng.random(num) < share).astype(np.int64)
    reader.x = (rng.standard_normal((num, 1)) + 2 * reader.y[:, None] - 1).astype(np.float32)
    equal = np.array([[-1.0, 1.0, 0.0, 0.0]], dtype=np.float32)  # weights of the two logits, then biases
    counts = num * np.array([[1 - share, share]])
    served = Prior(PriorSettings()).adapt(a_view(counts, equal))
    samples = SampleRanges.one_each(np.array([0]), np.array([num]))
    accuracy = executor(reader).evaluate(served.models, served.plan, samples).accuracy[0]
    t, phi = np.log(share / (1 - share)), NormalDist().cdf
    bayes = 1 - (1 - share) * phi(-1 + t / 2) - share * phi(-1 - t / 2)
    assert accuracy == pytest.approx(bayes, abs=0.005)
