"""Power-of-choice, alone and in the real federation, where it pays for every probe in time and bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pytest

from coordinator.assignment import Assignment
from coordinator.candidates import Candidates
from coordinator.selectors.power_of_choice import (
    LastLosses,
    PowerOfChoice,
    PowerOfChoiceSettings,
    held_losses,
)
from coordinator.view import Samples, ScoreResponse, View
from emulator.arrays import Floats, Ints
from emulator.messages import ArrayUpdates, EndedVisits, SampleRanges, Scores, Updates
from tests.fakes import NOTHING, FakeAvailability, FakeExecutor, FakeStream, Population, a_fleet, a_view, ints

NO_VISITS = EndedVisits(ints(), ints(), ints(), np.zeros(0), np.zeros(0), ints(), ints())

# Of a model of one parameter, at a byte and a trained sample per second; a forward pass takes a third.
DOWN_S = UP_S = 4.0
SUMS_S = 8.0  # a sum and a count


def choosing(candidates: float, loss: Literal["held", "last"] = "held") -> PowerOfChoice:
    return PowerOfChoice(PowerOfChoiceSettings(candidates=candidates, loss=loss))


class Probed:
    """A fleet of one client per loss, each with its number of samples; it notes who is requested to score."""

    def __init__(self, losses: Sequence[float], samples: Sequence[int] | None = None) -> None:
        self.losses = np.array(losses)
        self.requested: list[list[int]] = []
        last = np.cumsum(samples or [1] * len(losses))
        self.held = SampleRanges.one_each(np.concatenate(([0], last[:-1])), last)

    def score(self, clients: Ints, models: Ints, *request: Any) -> ScoreResponse:
        self.requested.append(clients.tolist())
        counts = self.held.take(clients).counts()
        return ScoreResponse(clients, Scores(counts, loss=(counts * self.losses[clients])[:, None]))

    def select(
        self, selector: PowerOfChoice, wanted: Sequence[int], lanes: Sequence[int], round_: int = 0
    ) -> list[int]:
        lane_of_client = np.array(lanes)
        assignment = Assignment.fresh(lane_of_client, len(wanted), np.zeros(1, dtype=np.float32))
        members = [np.flatnonzero(lane_of_client == lane) for lane in range(len(wanted))]
        view = a_view(
            num_clients=len(lanes), assignment=assignment, held=self.held, score=self.score, round_=round_
        )
        candidates = Candidates(members, lambda ids: ids < 90)
        return selector.select(candidates, np.array(wanted), view).tolist()


def test_of_the_drawn_candidates_those_with_the_largest_mean_losses_are_selected() -> None:
    # Client 1 has the largest sum, but the smallest mean.
    fleet = Probed([0.9, 0.1, 0.5, 0.7], samples=[1, 50, 2, 3])
    assert fleet.select(choosing(2), [2], [0] * 4) == [0, 3]
    assert fleet.requested == [[0, 1, 2, 3]]


@pytest.mark.parametrize(("candidates", "drawn"), [(1.5, 3), (1.6, 4), (2.0, 4), (9.0, 10)])
def test_candidates_are_a_multiple_of_the_wanted_rounded_up_and_at_most_all(
    candidates: float, drawn: int
) -> None:
    fleet = Probed(np.arange(10.0).tolist())
    chosen = fleet.select(choosing(candidates), [2], [0] * 10)
    (requested,) = fleet.requested
    assert len(requested) == drawn
    assert chosen == requested[-2:]


def test_the_multiple_is_that_of_the_decimal_number() -> None:
    # In floating point 50 x 1.1 is a little more than 55.
    fleet = Probed([0.0] * 70)
    fleet.select(choosing(1.1), [50], [0] * 70)
    assert [len(requested) for requested in fleet.requested] == [55]


def test_candidates_are_drawn_in_proportion_to_their_samples() -> None:
    fleet = Probed([0.0, 0.0, 0.0, 1.0], samples=[30, 30, 30, 1])
    drawn = [fleet.select(choosing(1), [1], [0] * 4, round_) for round_ in range(300)]
    assert 0 < drawn.count([3]) < 20  # 300 / 91 on average
    assert min(drawn.count([client]) for client in range(3)) > 60  # 99 on average


def test_each_lane_has_candidates_of_its_own_and_is_asked_about_its_model_alone() -> None:
    fleet = Probed([0.1, 0.2, 0.9, 0.8, 0.3, 0.7])
    assert fleet.select(choosing(3), [1, 1], [0, 0, 1, 1, 0, 1]) == [2, 4]
    assert fleet.requested == [[0, 1, 4], [2, 3, 5]]


def test_nobody_is_requested_where_all_that_are_drawn_can_take_part() -> None:
    fleet = Probed([0.1, 0.2, 0.9])
    assert fleet.select(choosing(5), [2, 4, 0], [0, 0, 1]) == [0, 1, 2]
    assert len(fleet.select(choosing(1), [2], [0, 0, 0])) == 2
    assert fleet.requested == []


def test_equal_losses_stay_in_the_order_of_the_draw() -> None:
    fleet = Probed([0.5] * 4)
    chosen = [fleet.select(choosing(4), [1], [0] * 4, round_) for round_ in range(60)]
    assert {client for clients in chosen for client in clients} == {0, 1, 2, 3}


# -- what is known of losses ----------------------------------------------------------------------------


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


# -- in the real federation ------------------------------------------------------------------------------


def playing(selector: PowerOfChoice, targets: Sequence[float], **settings: Any) -> Population:
    """The loss of a client is the distance of its target from the model, which is 0 at first."""
    return Population(FakeExecutor(list(targets)), selector=selector, **{"participants": 1, **settings})


def test_every_probe_is_paid_for_in_time_and_bytes() -> None:
    # Client 2 has the largest loss; client 0 responds last: it has five samples, one of them
    # like client 2's, and a slow upload.
    stream = FakeStream(np.ones((1, 4, 1)), train=[5, 1, 1, 1])
    fleet = a_fleet(4, upload_bytes_per_s=[0.5, 1.0, 1.0, 1.0])
    settings = {"stream": stream, "fleet": fleet}
    record = playing(choosing(4), [0.1, 0.2, 0.9, 0.3], **settings).play().records[0]
    # Four models go down as control traffic, and four pairs of a sum and a count come up.
    assert record.control_bytes == 4 * 4 + 4 * 8
    # Visits begin when the slowest has responded, although it is not selected.
    assert record.participants == record.completed == [2]
    assert record.opened_s == 0
    assert record.dispatched_s == pytest.approx(DOWN_S + 5 / 3 + SUMS_S / 0.5)
    # The chosen client has the model: it trains a sample, and uploads the result.
    assert (record.download_bytes, record.upload_bytes) == (0, 4)
    assert record.closed_s == pytest.approx(record.dispatched_s + 1 + UP_S)
    assert record.models_sent == 4 + 1


def test_fewer_candidates_cost_less_and_only_they_are_asked() -> None:
    population = playing(choosing(2), [0.1, 0.2, 0.9, 0.3])
    record = population.play().records[0]
    ((_, probed),) = population.executor.scored
    drawn = probed.first.tolist()  # client c has row c of the table
    assert len(drawn) == 2
    assert record.participants == [max(drawn, key=lambda client: [0.1, 0.2, 0.9, 0.3][client])]
    assert record.control_bytes == 2 * (4 + 8)
    assert record.dispatched_s == pytest.approx(DOWN_S + 1 / 3 + SUMS_S)


def test_last_losses_cost_nothing_and_clients_that_have_not_trained_come_first() -> None:
    population = playing(choosing(3, "last"), [0.1, 0.9, 0.4], rounds=5)
    records = population.play().records
    assert sorted(record.participants[0] for record in records[:3]) == [0, 1, 2]
    assert [record.control_bytes for record in records] == [0] * 5
    assert all(record.dispatched_s == record.opened_s for record in records)
    assert [record.models_sent for record in records] == [2, 4, 6, 8, 10]
    # From then on the largest last loss is selected, until another one is larger.
    last = {record.participants[0]: record.train_loss for record in records[:3]}
    for record in records[3:]:
        assert record.participants == [max(last, key=lambda client: last[client] or 0.0)]
        last[record.participants[0]] = record.train_loss


def test_a_visit_that_drops_out_leaves_no_loss() -> None:
    away = FakeAvailability({0: [(0.0, 1.0), (20.0, float("inf"))]})
    # Both take part in the first round, and client 0 goes offline in it.
    population = playing(choosing(2, "last"), [0.1, 0.9], participants=2, availability=away, rounds=1)
    record = population.play().records[0]
    assert (record.completed, record.dropped) == ([1], [0])
    selector = population.selector
    assert isinstance(selector, PowerOfChoice)
    losses = selector.last_losses(a_view(num_clients=2))
    assert losses.tolist() == [np.inf, pytest.approx(0.9)]
