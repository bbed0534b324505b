import numpy as np
import pytest

from coordinator.clusterers.label_shift import LabelShiftSettings, labels_of, shifted, still_known
from emulator.messages import SampleRanges
from tests.fakes import a_view, ints

NAN = float("nan")


def view_of(reports, sizes=(), **news):
    """A view in which clients hold `sizes` samples, 10 each by default."""
    ends = np.cumsum(sizes or [10] * len(reports))
    return a_view(reports, held=SampleRanges.one_each(np.append(0, ends[:-1]), ends), **news)


def drifted(before, now, settings, sizes_before=(), sizes=()) -> list[int]:
    everyone = np.arange(len(now))
    known = labels_of(everyone, view_of(before, sizes_before), settings)
    return shifted(known, view_of(now, sizes, changed=everyone.tolist()), settings).tolist()


def test_shares_have_shifted_if_their_absolute_differences_sum_to_more_than_the_threshold():
    before, now = [[0.5, 0.5, 0]] * 3, [[0.25, 0.75, 0], [0.375, 0.5, 0.125], [0.5, 0.5, 0]]
    assert drifted(before, now, LabelShiftSettings()) == [0, 1]
    assert drifted(before, now, LabelShiftSettings(threshold=0.25)) == [0]
    assert drifted(before, now, LabelShiftSettings(threshold=0.5)) == []


def test_only_clients_with_new_data_that_are_compared_can_have_shifted():
    before = np.array([[1.0, 0], [1, 0], [NAN, NAN]])
    view = view_of([[0.0, 1]] * 3, changed=[1, 2])
    assert shifted(before, view, LabelShiftSettings()).tolist() == [1]


def test_sorted_counts_of_permuted_labels_are_equal_and_so_the_swap_is_never_detected():
    before, now = [[0.7, 0.3, 0]] * 2, [[0, 0.7, 0.3], [1, 0, 0]]
    assert drifted(before, now, LabelShiftSettings()) == [0, 1]
    assert drifted(before, now, LabelShiftSettings(drift="sorted_counts")) == [1]


def test_sorted_counts_are_compared_by_the_wasserstein_distance_of_samples():
    # Upstream: scipy.stats.wasserstein_distance(before, now) > 0.2 x samples / labels.
    stats = pytest.importorskip("scipy.stats")
    generator = np.random.default_rng(3)
    before, now = generator.multinomial(20, [0.4, 0.3, 0.2, 0.1], size=(2, 200))
    expected = [
        client
        for client in range(200)
        if stats.wasserstein_distance(before[client], now[client]) > 0.2 * 20 / 4 + 1e-12
    ]
    sizes = [20] * 200
    found = drifted(before / 20, now / 20, LabelShiftSettings(drift="sorted_counts"), sizes, sizes)
    assert found == expected
    assert 20 < len(expected) < 180


def test_sorted_counts_shift_when_samples_become_more_than_a_fifth_of_them_later():
    # 10 samples of one label become 12 or 13: 2 is not above 0.2 x 12, 3 is above 0.2 x 13.
    same, settings = [[1.0, 0], [1.0, 0]], LabelShiftSettings(drift="sorted_counts")
    assert drifted(same, same, settings, [10, 10], [12, 13]) == [1]
    assert drifted(same, same, LabelShiftSettings(), [10, 10], [12, 13]) == []


def test_what_is_known_of_clients_that_join_leave_or_shift_is_forgotten():
    reports, settings = [[0.0, 1]] * 5, LabelShiftSettings()
    before = np.array([[1.0, 0], [0, 1], [0, 1], [0, 1], [1, 0]])
    view = view_of(reports, changed=[0, 1, 3], joined=[2], left=[3])
    known = still_known(before, view, settings)
    assert np.isnan(known).all(axis=1).tolist() == [True, False, True, True, False]
    assert np.isnan(still_known(None, view, settings)).all()
    assert still_known(before, view_of(reports, changed=[1]), settings) is before


def test_labels_are_those_of_the_clients_asked_for():
    view = view_of([[0.5, 0.5], [1.0, 0.0]], [10, 4])
    assert labels_of(ints(1), view, LabelShiftSettings()).tolist() == [[1, 0]]
    assert labels_of(ints(1), view, LabelShiftSettings(drift="sorted_counts")).tolist() == [[0, 4]]
