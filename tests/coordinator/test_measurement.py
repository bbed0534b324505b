from __future__ import annotations

import numpy as np

from coordinator.measurement import measure
from emulator.messages import SampleRanges
from tests.fakes import FakeExecutor, ints


def test_means_are_over_clients_with_test_samples_and_distances_over_all() -> None:
    # client i is right as far as its target is near the model, which is at 0; client 2 holds no samples
    executor = FakeExecutor([0.25, 0.75, 0.0])
    samples = SampleRanges.one_each(ints(0, 1, 2), ints(1, 2, 2))
    histograms = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    models = np.zeros((2, 1), dtype=np.float32)
    found = measure(executor, models, ints(0, 0, 1), samples, histograms)
    assert found.accuracy == (0.75 + 0.25) / 2
    assert found.accuracy_std == 0.25
    assert found.mean_client_distance == (2 + 2 + 0) / 3  # alone in its cluster: 0
    assert found.unclustered_distance == (1 + 2 + 1) / 3


def test_a_client_whose_loss_is_not_finite_is_not_averaged_away() -> None:
    executor = FakeExecutor([0.0, np.nan])
    samples = SampleRanges.one_each(ints(0, 1), ints(1, 2))
    models = np.zeros((1, 1), dtype=np.float32)
    found = measure(executor, models, ints(0, 0), samples, np.array([[1.0], [1.0]]))
    assert not np.isfinite(found.loss)
