from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from coordinator.adaptations import relabelled
from coordinator.adaptations.relabelled import Relabelled, RelabelledSettings, best_assignments
from emulator.arrays import Floats
from emulator.errors import ConfigurationError
from emulator.messages import InferencePlan
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
    work = RELABELLED.work(a_view([[2, 3], [4, 0]], plan=plan))
    assert work is not None
    assert work.forward_samples.tolist() == [10.0, 4.0]
    assert not work.trained_samples.any()
    assert RELABELLED.work(a_view(evaluated=False)) is None


def test_more_than_a_thousand_labels_are_refused() -> None:
    RELABELLED.check(1_000)
    with pytest.raises(ConfigurationError, match="the trace has 1001 labels; at most 1000"):
        RELABELLED.check(1_001)
