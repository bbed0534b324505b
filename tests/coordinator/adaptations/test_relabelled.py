from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from coordinator.adaptations import ClientView, Served, relabelled
from coordinator.adaptations.relabelled import Relabelled, RelabelledSettings, best_assignments
from emulator.arrays import Floats
from emulator.errors import ConfigurationError
from emulator.messages import InferencePlan
from tests.coordinator.adaptations.views import a_view, holding

RELABELLED = Relabelled(RelabelledSettings())


def fit_of(*orders: tuple[int, ...]) -> Floats:
    """(n, L, L) the fits of clients whose label l is best read from output `order[l]`."""
    num_labels = len(orders[0])
    return np.stack([np.log(0.1 + 0.8 * np.eye(num_labels)[list(order)]) for order in orders])


@pytest.mark.parametrize("num_labels", [3, 6])
def test_outputs_that_are_permuted_are_read_in_order_again(num_labels: int) -> None:
    """By all permutations, and beyond five labels by the Hungarian method."""
    orders = list(permutations(range(num_labels)))[::7]
    assert best_assignments(fit_of(*orders)).tolist() == [list(order) for order in orders]


def test_the_two_methods_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    fits = np.random.default_rng(0).normal(size=(200, 5, 5))
    tried = best_assignments(fits)
    monkeypatch.setattr(relabelled, "MOST_PERMUTED", 0)
    assert best_assignments(fits).tolist() == tried.tolist()


@pytest.mark.parametrize("num_labels", [4, 6])
def test_a_label_of_which_a_client_holds_nothing_stays_where_it_is(num_labels: int) -> None:
    fit = fit_of((1, 0, *range(2, num_labels)))
    fit[:, 2:] = 0.0
    assert best_assignments(fit).tolist() == [[1, 0, *range(2, num_labels)]]
    assert best_assignments(np.zeros((1, num_labels, num_labels))).tolist() == [list(range(num_labels))]


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_a_model_that_is_not_finite_is_read_as_it_is(value: float) -> None:
    fit = fit_of((1, 0, 2), (1, 0, 2))
    fit[0, 1, 1] = value
    assert best_assignments(fit).tolist() == [[0, 1, 2], [1, 0, 2]]


def test_each_model_of_a_client_is_read_in_its_own_order() -> None:
    plan = InferencePlan.alike(np.array([[0, 1]]))
    view = a_view([[1, 1, 1]], plan=plan, log_probabilities=lambda: fit_of((1, 0, 2), (0, 2, 1))[None])
    served = RELABELLED.adapt(view).plan
    assert served.outputs is not None
    assert served.outputs.tolist() == [[[1, 0, 2], [0, 2, 1]]]
    assert served.offsets is None


def test_a_forward_pass_through_each_model_is_charged_at_each_evaluation() -> None:
    plan = InferencePlan(np.array([[0, 1], [0, -1]]), np.array([[0.5, 0.5], [1.0, 0.0]]))
    work = RELABELLED.work(a_view([[2, 3], [4, 0]], plan=plan))
    assert work is not None
    assert work.forward_samples.tolist() == [10.0, 4.0]
    assert not work.trained_samples.any()
    assert RELABELLED.work(a_view(evaluated=False)) is None


FEATURES = [[0, 0], [4, 0], [0, 8]]
"""A sample of each of three labels."""

SWAPPED = [2, 1, 0]
"""The labels of these samples at a client that has swapped the first with the last."""


def compared(*labels: list[int], num_labels: int = 3) -> ClientView:
    """A view of clients that hold the same samples, with these labels."""
    clients = holding(*((FEATURES[: len(each)], each) for each in labels))
    return a_view([np.bincount(each, minlength=num_labels) for each in labels], held=clients)


def by_class_means(**settings: bool) -> Relabelled:
    """Who has heard of the samples of one client, which has swapped nothing."""
    adaptation = Relabelled(RelabelledSettings(by="class_means", **settings))
    first = compared([0, 1, 2])
    adaptation.sent_out(first, adaptation.adapt(first))
    return adaptation


def orders(served: Served) -> list[list[int]]:
    assert served.plan.outputs is not None
    return served.plan.outputs[:, 0].tolist()


@pytest.mark.parametrize("train", [True, False])
def test_by_class_means_a_label_is_read_as_that_whose_mean_is_nearest(train: bool) -> None:
    view = compared([0, 1, 2], SWAPPED, [1, 0, 2], [1, 2, 0])
    assert orders(by_class_means(train=train).adapt(view)) == [[0, 1, 2], [2, 1, 0], [1, 0, 2], [2, 0, 1]]


def test_before_anybody_has_reported_no_label_moves() -> None:
    adaptation = Relabelled(RelabelledSettings(by="class_means"))
    assert orders(adaptation.adapt(compared(SWAPPED, [1, 0, 2]))) == [[0, 1, 2]] * 2


def test_what_a_client_reports_is_labelled_as_it_reads_it() -> None:
    adaptation, view = by_class_means(), compared(SWAPPED, SWAPPED)
    adaptation.sent_out(view, adaptation.adapt(view))
    assert adaptation._means.sums.counts[0, :, 0].tolist() == [3, 3, 3]
    assert adaptation._means.sums.means[0].tolist() == FEATURES


def test_a_label_that_a_client_lacks_takes_what_is_left() -> None:
    """The client calls the sample of label 2 its label 0, and holds no other."""
    view = a_view([[1, 0, 0]], held=holding(([FEATURES[2]], [0])))
    (order,) = orders(by_class_means().adapt(view))
    assert order[0] == 2
    assert sorted(order) == [0, 1, 2]


def test_a_label_that_nobody_has_reported_stays_where_it_is() -> None:
    """Labels 0 and 1 have been reported; a client that holds them swapped, and label 2, swaps those two."""
    adaptation = Relabelled(RelabelledSettings(by="class_means"))
    first = a_view([[1, 1, 0]], held=holding((FEATURES[:2], [0, 1])))
    adaptation.sent_out(first, adaptation.adapt(first))
    view = compared([0, 1, 2], [1, 0, 2])
    assert orders(adaptation.adapt(view)) == [[0, 1, 2], [1, 0, 2]]


def test_every_model_of_a_client_is_read_in_the_order_of_its_means() -> None:
    view = replace(compared(SWAPPED), plan=InferencePlan.alike(np.array([[0, 1]])))
    outputs = by_class_means().adapt(view).plan.outputs
    assert outputs is not None
    assert outputs.tolist() == [[SWAPPED, SWAPPED]]


def test_comparing_and_reporting_are_charged_and_predictions_are_not() -> None:
    """3 labels and 2 features: 3 numbers of samples, 3 x 2 sums and 2 of squares, of 4 bytes each."""
    adaptation, view = by_class_means(), compared(SWAPPED)
    comparing, reporting = adaptation.choosing_work(view), adaptation.sent_out(view, adaptation.adapt(view))
    assert comparing is not None
    assert reporting is not None
    assert comparing.download_bytes.tolist() == reporting.upload_bytes.tolist() == [44]
    assert not comparing.forward_samples.any()
    assert adaptation.work(view) is None


def test_what_trains_by_loss_predicts_once_for_each_model_and_reports_nothing() -> None:
    adaptation = Relabelled(RelabelledSettings(train=True))
    view = a_view([[2, 3]], log_probabilities=lambda: fit_of((1, 0))[None])
    work, served = adaptation.choosing_work(view), adaptation.adapt(view)
    assert work is not None
    assert work.forward_samples.tolist() == [5]
    assert not work.upload_bytes.any()
    assert adaptation.sent_out(view, served) is None
    assert orders(served) == [[1, 0]]


def test_what_trains_or_compares_is_asked_at_each_dispatch() -> None:
    for settings, trains, hears in (
        ({}, False, False),
        ({"train": True}, True, True),
        ({"by": "class_means"}, False, True),
    ):
        adaptation = Relabelled(RelabelledSettings.model_validate(settings))
        assert (adaptation.trains, adaptation.hears, adaptation.reads) == (trains, hears, False)


def test_tokens_have_no_mean_and_are_compared_by_loss() -> None:
    Relabelled(RelabelledSettings(train=True)).check_features((5,), integers=True)
    by_class_means().check_features((5,), integers=False)
    with pytest.raises(
        ConfigurationError, match=r"by = 'class_means': .*, such as tokens, .*set by = 'loss'"
    ):
        by_class_means().check_features((5,), integers=True)


def test_more_than_a_thousand_labels_are_refused() -> None:
    RELABELLED.check(1_000)
    with pytest.raises(ConfigurationError, match="the trace has 1001 labels; at most 1000"):
        RELABELLED.check(1_001)
