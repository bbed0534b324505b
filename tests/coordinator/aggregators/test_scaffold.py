from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
from pydantic import ValidationError

from coordinator.aggregators.scaffold import CONTROL, Scaffold, ScaffoldSettings
from coordinator.assignment import Assignment
from coordinator.view import View
from emulator.messages import ArrayUpdates
from emulator.storage.state_tree import from_bytes, to_bytes
from experiments import contracts
from tests.fakes import a_view, fresh


def scaffold(rate: float = 1.0) -> Scaffold:
    return Scaffold(ScaffoldSettings(rate=rate))


def updates(
    model: Sequence[int],
    delta: Sequence[float],
    steps: Sequence[int],
    rates: Sequence[float],
    samples: Sequence[int] | None = None,
) -> ArrayUpdates:
    rows = len(model)
    return ArrayUpdates(
        client=np.arange(rows),
        model=np.array(model, dtype=np.int64),
        num_samples=np.ones(rows, dtype=np.int64) if samples is None else np.array(samples),
        num_steps=np.array(steps),
        delta=np.array(delta, dtype=np.float32).reshape(rows, 1),
        metrics={"learning_rate": np.array(rates)},
    )


def view_of(models: Sequence[float], ids: Sequence[int], members: Sequence[int]) -> View:
    """A view of clients that belong to these rows of the bank."""
    columns = np.array(models)[:, None]
    return a_view(models=columns, model_ids=ids, num_clients=len(members), assignment=fresh(members))


def control(part: Scaffold, view: View) -> list[float]:
    sent: list[float] = part.broadcast(view)[CONTROL][:, 0].tolist()
    return sent


VIEW = view_of([1.0, 10.0], [4, 9], [0, 0, 0, 1])
"""Three clients of model 4, and one of model 9."""


def test_the_control_variate_by_hand_for_two_of_three_clients_of_unequal_steps_and_rates() -> None:
    """Mean gradients are -delta / (K eta): 6 / (2 x 0.5) = 6 and -3 / (3 x 0.25) = -4 of model 4.

    From 0, c moves by the sum of `g_i - c` over all three clients: 2 / 3. Then 1 / (1 x 0.5) = 2 and
    2 / (4 x 0.25) = 2 move it by 2 (2 - 2/3) / 3.
    """
    part = scaffold()
    assert control(part, VIEW) == [0, 0]
    models = part.aggregate(updates([4, 4], [-6, 3], [2, 3], [0.5, 0.25]), VIEW)
    assert models[:, 0].tolist() == [1 + (-6 + 3) / 2, 10]
    assert control(part, VIEW) == pytest.approx([2 / 3, 0], rel=1e-7)
    part.aggregate(updates([4, 4], [-1, -2], [1, 4], [0.5, 0.25]), VIEW)
    assert control(part, VIEW) == pytest.approx([2 / 3 + 2 * (2 - 2 / 3) / 3, 0], rel=1e-7)


def test_each_model_has_its_own_control_variate_by_its_own_updates_and_members() -> None:
    part = scaffold()
    models = part.aggregate(updates([4, 9, 4], [-6, 4, 3], [2, 2, 3], [0.5, 0.5, 0.25]), VIEW)
    assert models[:, 0].tolist() == [-0.5, 14]
    assert control(part, VIEW) == pytest.approx([2 / 3, -4], rel=1e-7)


def test_if_all_clients_take_part_the_control_variate_is_their_mean_gradient() -> None:
    part = scaffold()
    for gradients in ([1.0, 2.0, 6.0], [3.0, -3.0, 0.0]):
        part.aggregate(updates([4] * 3, [-0.5 * g for g in gradients], [1] * 3, [0.5] * 3), VIEW)
        assert control(part, VIEW)[0] == pytest.approx(sum(gradients) / 3, rel=1e-7)


def test_the_mean_is_of_updates_whatever_their_samples_and_moves_the_model_by_the_rate() -> None:
    arrived = updates([4, 4], [-6, 3], [2, 3], [0.5, 0.25], samples=[1, 100])
    assert scaffold(rate=0.5).aggregate(arrived, VIEW)[0, 0] == 1 + 0.5 * -1.5


def test_models_without_updates_stay_to_the_bit_with_their_control_variates() -> None:
    part, view = scaffold(), view_of([0.1, 0.3], [4, 9], [0, 1])
    part.aggregate(updates([9], [0.7], [3], [0.1]), view)
    before = part.broadcast(view)[CONTROL]
    models = part.aggregate(updates([4], [1], [1], [1]), view)
    assert models[1].tobytes() == view.models[1].tobytes()
    after = part.broadcast(view)[CONTROL]
    assert after[1].tobytes() == before[1].tobytes()
    assert after[0] != before[0]


@pytest.mark.parametrize(("steps", "samples"), [([0, 1], [1, 1]), ([2, 1], [0, 1])])
def test_a_client_without_steps_or_samples_does_not_count(steps: list[int], samples: list[int]) -> None:
    part, alone = scaffold(), scaffold()
    both = part.aggregate(updates([4, 4], [0, 3], steps, [np.nan, 0.5], samples), VIEW)
    one = alone.aggregate(updates([4], [3], [1], [0.5]), VIEW)
    assert both.tobytes() == one.tobytes()
    assert control(part, VIEW) == control(alone, VIEW) == [-2, 0]


def mixing(weights: npt.ArrayLike, successor: Sequence[int], extra: int = 0) -> Assignment:
    return Assignment(
        np.array(weights, dtype=float),
        np.zeros((extra, 1), dtype=np.float32),
        np.array(successor),
        np.zeros((1, 1), dtype=np.int64),
    )


@pytest.mark.parametrize(
    ("weights", "successor", "extra", "expected"),
    [
        pytest.param([[0, 1], [1, 0]], [1, 0], 0, [-4, 6], id="reordered"),
        pytest.param([[1, 0], [1, 0], [0, 1]], [0, 2], 0, [6, 6, -4], id="copied"),
        pytest.param([[0.5, 0.5]], [0, 0], 0, [0], id="merged"),
        pytest.param([[0.75, 0.25], [0, 1]], [0, 1], 0, [0, -4], id="mixed"),
        pytest.param([[1, 0, 0], [0, 0, 1]], [0, -1], 1, [6, 0], id="new"),
    ],
)
def test_a_copy_keeps_the_control_variate_and_any_other_model_starts_at_0(
    weights: npt.ArrayLike, successor: list[int], extra: int, expected: list[float]
) -> None:
    part = scaffold()
    part.aggregate(updates([4, 4, 4, 9], [-6, -6, -6, 4], [1] * 4, [1] * 4), VIEW)
    assert control(part, VIEW) == [6, -4]
    part.models_changed(mixing(weights, successor, extra))
    count = len(expected)
    later = view_of([0.0] * count, list(range(20, 20 + count)), list(range(count)))
    assert control(part, later) == expected


def test_models_may_change_before_the_first_step() -> None:
    part = scaffold()
    part.models_changed(mixing([[0.5, 0.5]], [0, 0]))
    assert control(part, view_of([0.0], [3], [0])) == [0]


def test_stored_and_restored_it_sends_and_steps_as_before() -> None:
    part = scaffold()
    part.aggregate(updates([4, 9], [-6, 3], [2, 3], [0.5, 0.25]), VIEW)
    twin = scaffold()
    twin.restore(from_bytes(to_bytes(part.state())))
    again = updates([4], [1], [1], [0.5])
    assert twin.aggregate(again, VIEW).tobytes() == part.aggregate(again, VIEW).tobytes()
    assert control(twin, VIEW) == control(part, VIEW)


def test_it_meets_the_contract_of_aggregators() -> None:
    contracts.check_aggregator(lambda: scaffold(rate=0.5))


def test_a_rate_of_0_is_refused() -> None:
    with pytest.raises(ValidationError, match="rate"):
        ScaffoldSettings(rate=0)
