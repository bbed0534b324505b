from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from coordinator.adaptations.base import Held
from coordinator.adaptations.class_means import ClassMeans, Sums
from emulator.storage.state_tree import from_bytes, to_bytes
from tests.coordinator.adaptations.views import a_view

HELD = Held(
    rows=np.array([4, 7]),
    features=np.array([[[1, 2]], [[3, 6]], [[5, 5]], [[7, 9]]], dtype=np.float32),
    labels=np.array([2, 0, 2, 2]),
    owner=np.array([0, 0, 0, 1]),
)
"""Client 4 of a view has three samples of two features by one, and client 7 one."""


def test_sums_are_of_each_label_of_each_client() -> None:
    sums = Sums.of(HELD, num_labels=3)
    assert sums.counts[:, :, 0].tolist() == [[1, 0, 2], [0, 0, 1]]
    assert sums.sums.tolist() == [[[3, 6], [0, 0], [6, 7]], [[0, 0], [0, 0], [7, 9]]]
    assert sums.squares.tolist() == [[1 + 9 + 25, 4 + 36 + 25], [49, 81]]


def test_means_of_labels_without_samples_are_unknown() -> None:
    sums = Sums.of(HELD, num_labels=3)
    assert sums.means[0, [0, 2]].tolist() == [[3, 6], [3, 3.5]]
    assert np.isnan(sums.means[0, 1]).all()
    assert np.isnan(sums.means[1, :2]).all()
    assert sums.mean.tolist() == [[3, 13 / 3], [7, 9]]
    deviations = np.array([np.std([1, 3, 5]), np.std([2, 6, 5])])
    assert sums.deviations[0] == pytest.approx(deviations)
    assert sums.deviations[1].tolist() == [0, 0]


def test_the_sums_of_all_are_those_of_their_samples_in_one_hand() -> None:
    total, one = Sums.of(HELD, 3).total, replace(HELD, rows=np.array([0]), owner=0 * HELD.owner)
    for ours, theirs in zip(vars(total).values(), vars(Sums.of(one, 3)).values(), strict=True):
        assert ours.tolist() == theirs.tolist()


def test_reports_add_up_over_rounds_and_are_stored() -> None:
    means = ClassMeans()
    assert not means
    means.add(Sums.of(HELD, 3))
    means.add(Sums.of(HELD, 3))
    resumed = ClassMeans()
    resumed.restore(from_bytes(to_bytes(means.state())))
    for kept in (means, resumed):
        assert kept
        assert kept.sums.counts[0, :, 0].tolist() == [2, 0, 6]
        assert kept.sums.means[0, 2].tolist() == [(6 + 7) / 3, (7 + 9) / 3]


def test_a_report_goes_up_and_what_was_reported_before_comes_down() -> None:
    """3 labels and 2 features: 3 numbers of samples, 3 x 2 sums and 2 of squares, of 4 bytes each."""
    means, view = ClassMeans(), a_view([[1, 0, 0], [1, 0, 0]])
    assert means.comparing(view).download_bytes.tolist() == [0, 0]
    means.add(Sums.of(HELD, 3))
    down, up = means.comparing(view), means.reporting(view)
    assert down.download_bytes.tolist() == up.upload_bytes.tolist() == [44, 44]
    for nothing in (down.upload_bytes, up.download_bytes, down.forward_samples, down.trained_samples):
        assert nothing.tolist() == [0, 0]
