"""The context of a client, by hand: how its means differ from those of all, projected."""

from __future__ import annotations

import numpy as np
import pytest

from coordinator.adaptations import ClientView
from coordinator.adaptations.context import WithContext
from emulator.arrays import Floats
from emulator.errors import ConfigurationError
from emulator.messages import InferencePlan
from emulator.seeding import RandomStreams
from emulator.storage.state_tree import from_bytes, to_bytes
from experiments import contracts
from tests.coordinator.adaptations.views import a_view, holding

SIZE = 3


def with_context(seed: int = 0) -> WithContext:
    adaptation = WithContext(SIZE)
    adaptation.streams = RandomStreams(seed)
    return adaptation


FIRST = ([[0, 0], [2, 4]], [0, 1])
"""Features and labels of a client: its means of labels are (0, 0) and (2, 4), and that of all (1, 2)."""

SECOND = ([[3, 2], [5, 10]], [0, 1])
"""Of another: (3, 2), (5, 10) and (4, 6)."""


def view_of(*clients: tuple[list[list[int]], list[int]], num_labels: int = 2) -> ClientView:
    return a_view(
        [np.bincount(labels, minlength=num_labels) for _, labels in clients], held=holding(*clients)
    )


def contexts(adaptation: WithContext, view: ClientView) -> Floats:
    """(n, SIZE) the context of each client."""
    served = adaptation.adapt(view)
    assert served.plan is view.plan
    assert served.ways is not None
    return served.ways[:, 0]


def heard(*clients: tuple[list[list[int]], list[int]], seed: int = 0) -> WithContext:
    """Who has heard of these clients."""
    adaptation, view = with_context(seed), view_of(*clients)
    adaptation.sent_out(view, adaptation.adapt(view))
    return adaptation


def projected(differences: list[list[float]]) -> Floats:
    """(SIZE,) rows of two numbers each, by the matrices of seed 0."""
    rows = np.zeros(SIZE)
    for row, difference in enumerate(differences):
        rows += difference @ RandomStreams(0).generator("context", row).standard_normal((2, SIZE))
    return rows / np.sqrt(3 * 2)


def test_it_is_zero_before_the_first_report_and_for_a_client_like_all() -> None:
    assert contexts(with_context(), view_of(FIRST, SECOND)).tolist() == [[0] * SIZE] * 2
    assert contexts(heard(FIRST), view_of(FIRST)).tolist() == [[0] * SIZE]


def test_it_is_the_difference_of_means_and_of_labels_less_their_mean() -> None:
    """Of all samples the mean differs by (3, 4); label 0 by (-1, -4) - (-1, -2), and label 1 by (0, 2)."""
    (context,) = contexts(heard(FIRST), view_of(SECOND))
    assert context == pytest.approx(projected([[3, 4], [0, -2], [0, 2]]))


def test_a_label_that_the_client_or_nobody_has_adds_nothing() -> None:
    """A client of label 0 alone, at (6, 2): its mean differs by (5, 0), and label 0, its mean, by (1, 2)."""
    (context,) = contexts(heard(FIRST), view_of(([[6, 2]], [0])))
    assert context == pytest.approx(projected([[5, 0], [1, 2]]))
    (context,) = contexts(heard(([[1, 2]], [0])), view_of(([[6, 2], [6, 2]], [1, 0])))
    assert context == pytest.approx(projected([[5, 0], [0, 0]]))


def test_those_of_a_client_do_not_depend_on_the_others_and_are_the_same_for_all_its_models() -> None:
    adaptation = heard(FIRST, SECOND)
    together = contexts(adaptation, view_of(FIRST, SECOND, FIRST))
    assert together[0].tolist() == together[2].tolist() == contexts(adaptation, view_of(FIRST))[0].tolist()
    assert together[1] == pytest.approx(-together[0])
    plan = InferencePlan.alike(np.array([[0, 1]]))
    served = adaptation.adapt(a_view([[1, 1]], plan=plan, held=holding(FIRST)))
    assert served.ways is not None
    assert served.ways.tolist() == [[together[0].tolist()] * 2]


def test_the_matrix_is_that_of_the_seed_and_what_was_heard_is_state() -> None:
    view, adaptation = view_of(SECOND), heard(FIRST)
    assert contexts(heard(FIRST, seed=1), view)[0] != pytest.approx(contexts(adaptation, view)[0])
    resumed = with_context()
    resumed.restore(from_bytes(to_bytes(adaptation.state())))
    assert contexts(resumed, view).tolist() == contexts(adaptation, view).tolist()


def test_samples_are_read_with_the_context_behind_and_zeros_if_they_are_plain() -> None:
    adaptation, features = with_context(), np.array([[[1, 2]], [[3, 4]]], dtype=np.float32)
    ways = np.array([[0.5, 0.25, 0.125], [np.nan] * 3])
    assert adaptation.read(features, ways).tolist() == [[1, 2, 0.5, 0.25, 0.125], [3, 4, 0, 0, 0]]
    assert adaptation.read(features, np.zeros((2, 0))).tolist() == [[1, 2, 0, 0, 0], [3, 4, 0, 0, 0]]
    assert adaptation.read(features[:0], np.zeros((0, 0))).shape == (0, 5)
    assert adaptation.read(features, ways).dtype == np.float32


def test_means_down_and_sums_up_are_charged_at_each_dispatch_and_nothing_else() -> None:
    """2 labels and 2 features: 2 numbers of samples, 2 x 2 sums and 2 of squares, of 4 bytes each."""
    adaptation, view = heard(FIRST), view_of(FIRST, SECOND)
    comparing, reporting = adaptation.choosing_work(view), adaptation.sent_out(view, adaptation.adapt(view))
    assert comparing is not None
    assert reporting is not None
    assert comparing.download_bytes.tolist() == reporting.upload_bytes.tolist() == [32, 32]
    assert adaptation.work(view) is None
    assert (adaptation.trains, adaptation.hears, adaptation.reads) == (True, True, True)


def test_tokens_have_no_means() -> None:
    with_context().check_features((3, 2), integers=False)
    with pytest.raises(ConfigurationError, match="whole numbers, such as tokens, which have no mean"):
        with_context().check_features((3,), integers=True)


def test_it_keeps_the_contract_of_adaptations() -> None:
    contracts.check_adaptation(lambda: WithContext(SIZE))
