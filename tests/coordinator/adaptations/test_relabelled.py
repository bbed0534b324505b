from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from coordinator.adaptations import ClientView, relabelled
from coordinator.adaptations.base import Held
from coordinator.adaptations.relabelled import Relabelled, RelabelledSettings, best_assignments
from emulator.arrays import Floats
from emulator.errors import ConfigurationError
from emulator.messages import BYTES_PER_REPORTED_NUMBER, InferencePlan
from experiments import contracts
from tests.coordinator.adaptations.views import a_view

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
    work = RELABELLED.work(a_view([[2, 3], [4, 0]], plan=plan, evaluated=True))
    assert work is not None
    assert work.forward_samples.tolist() == [10.0, 4.0]
    assert not work.trained_samples.any()
    assert RELABELLED.work(a_view(evaluated=False)) is None


def test_more_than_a_thousand_labels_are_refused() -> None:
    RELABELLED.check(1_000)
    with pytest.raises(ConfigurationError, match="the trace has 1001 labels; at most 1000"):
        RELABELLED.check(1_001)


def a_client(features: list[list[float]], labels: list[int]) -> ClientView:
    held = Held(np.arange(1), np.array(features, dtype=np.float32), np.array(labels), 0 * np.array(labels))
    counts = np.bincount(labels, minlength=3)[None]
    return a_view(counts, held=lambda: iter([held]), evaluated=True)


def orders(adaptation: Relabelled, view: ClientView) -> list[list[int]]:
    outputs = adaptation.adapt(view).plan.outputs
    assert outputs is not None
    return outputs[:, 0].tolist()


def test_by_class_means_a_label_is_read_as_that_whose_reported_mean_is_nearest() -> None:
    adaptation = Relabelled(RelabelledSettings(by="class_means", train=True))
    usual = a_client([[0.0], [5.0], [9.0]], [0, 1, 2])
    swapped = a_client([[0.2], [5.0], [8.8]], [2, 1, 0])
    assert orders(adaptation, swapped) == [[0, 1, 2]]  # nobody has reported
    adaptation.sent_out(usual, adaptation.adapt(usual))
    assert orders(adaptation, usual) == [[0, 1, 2]]
    assert orders(adaptation, swapped) == [[2, 1, 0]]
    # It reports its labels as it reads them, so that the means stay those of the first.
    adaptation.sent_out(swapped, adaptation.adapt(swapped))
    assert orders(adaptation, usual) == [[0, 1, 2]]
    assert orders(adaptation, a_client([[5.0]], [0])) == [[1, 0, 2]]


def test_class_means_are_sent_and_nothing_is_predicted() -> None:
    adaptation = Relabelled(RelabelledSettings(by="class_means"))
    view = a_client([[0.0], [5.0], [9.0]], [0, 1, 2])
    adaptation.sent_out(view, adaptation.adapt(view))
    work = adaptation.choosing_work(view)
    assert work is not None
    assert work.upload_bytes.tolist() == [BYTES_PER_REPORTED_NUMBER * (3 + 3 + 1)]
    assert not work.forward_samples.any()
    assert adaptation.work(view) is None


@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("by", ["loss", "class_means"])
def test_it_keeps_the_contract_however_it_matches(by: str, train: bool) -> None:
    settings = RelabelledSettings.model_validate({"by": by, "train": train})
    contracts.check_adaptation(lambda: Relabelled(settings))
