from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from coordinator.assignment import Assignment
from coordinator.selectors.losses import LastLosses, held_losses
from coordinator.view import Samples, ScoreResponse, View
from emulator.arrays import Floats, Ints
from emulator.messages import ArrayUpdates, EndedVisits, Scores, Updates
from tests.fakes import NOTHING, a_view, ints

NO_VISITS = EndedVisits(ints(), ints(), ints(), np.zeros(0), np.zeros(0), ints(), ints())


class Remembering(LastLosses):
    """Knows the last losses, and selects nobody."""

    def select(self, *request: Any) -> Ints:
        raise AssertionError("nobody is to be selected")


def updates(client: list[int], loss: list[float], num_samples: list[int] | None = None) -> Updates:
    zero = np.zeros(len(client), dtype=np.int64)
    samples = zero + 1 if num_samples is None else np.array(num_samples)
    delta = np.zeros((len(client), 1), dtype=np.float32)
    return ArrayUpdates(np.array(client), zero, samples, zero, delta, {"loss": np.array(loss)})


def losses_of(clients: list[int], members: npt.ArrayLike, silent: tuple[int, ...] = ()) -> Floats:
    """The held losses of `clients`; client c has c + 1 samples, of each a loss of 10 c + its model's row."""
    asked: list[int] = []

    def score(clients: Ints, models: Ints, samples: Samples, *request: Any) -> ScoreResponse:
        assert samples == "held"
        assert clients.tolist() == sorted(clients.tolist())
        asked.extend(models.tolist())
        responding = clients[~np.isin(clients, silent)]
        counts = responding + 1
        return ScoreResponse(
            responding, Scores(counts, loss=counts[:, None] * (10.0 * responding[:, None] + models))
        )

    rows = np.array(members)
    view = a_view(
        num_clients=len(rows),
        assignment=Assignment.fresh(rows, 3, np.zeros(1, dtype=np.float32)),
        score=score,
    )
    losses = held_losses(ints(*clients), view)
    first = rows if rows.ndim == 1 else rows[:, 0]
    assert asked == sorted(set(first[clients].tolist()))  # one request for each model
    return losses


def test_losses_are_means_over_samples_in_the_order_of_the_clients() -> None:
    assert losses_of([3, 0, 2], [0, 0, 0, 0]).tolist() == [30, 0, 20]


def test_each_client_scores_its_first_model() -> None:
    assert losses_of([2, 1, 0], [[1, 2], [0, 1], [2, -1]]).tolist() == [22, 10, 1]


def test_a_client_that_does_not_respond_has_the_smallest_loss() -> None:
    assert losses_of([1, 2, 0], [0, 0, 0], silent=(2,)).tolist() == [10, -np.inf, 0]


def test_nobody_is_requested_for_no_clients() -> None:
    assert losses_of([], [0, 0]).tolist() == []


def holding(*absent: int) -> View:
    return a_view(num_clients=4, absent=absent)


def test_clients_that_have_not_come_back_have_infinity_and_others_their_last_loss() -> None:
    selector = Remembering(NOTHING)
    assert selector.last_losses(holding()).tolist() == [np.inf] * 4
    selector.feedback(NO_VISITS, updates([0, 2], [0.5, 2.0]))
    selector.feedback(NO_VISITS, updates([2], [1.0]))
    selector.feedback(NO_VISITS, None)
    assert selector.last_losses(holding()).tolist() == [0.5, np.inf, 1.0, np.inf]


def test_of_several_models_the_mean_loss_counts_and_none_of_a_task_without_samples() -> None:
    selector = Remembering(NOTHING)
    selector.last_losses(holding())
    selector.feedback(NO_VISITS, updates([0, 0, 1, 1], [1.0, 2.0, np.nan, 3.0], [1, 9, 0, 2]))
    assert selector.last_losses(holding()).tolist() == [1.5, 3.0, np.inf, np.inf]


def test_what_is_known_of_a_client_is_forgotten_when_it_leaves() -> None:
    selector = Remembering(NOTHING)
    selector.last_losses(holding())
    selector.feedback(NO_VISITS, updates([0, 1], [1.0, 2.0]))
    selector.last_losses(holding(1))
    assert selector.last_losses(holding()).tolist() == [1.0, np.inf, np.inf, np.inf]


@pytest.mark.parametrize("before_any_selection", [True, False])
def test_losses_are_stored_with_the_run(before_any_selection: bool) -> None:
    selector, resumed = Remembering(NOTHING), Remembering(NOTHING)
    if not before_any_selection:
        selector.last_losses(holding())
        selector.feedback(NO_VISITS, updates([3], [1.0]))
    resumed.restore(selector.state())
    assert resumed.last_losses(holding()).tolist() == selector.last_losses(holding()).tolist()
