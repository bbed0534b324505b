from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from coordinator.aggregators.fedavg import FedAvg, FedAvgSettings
from coordinator.aggregators.sample_share import SampleShare, SampleShareSettings, attended
from coordinator.assignment import Assignment
from coordinator.view import View
from emulator.messages import SampleRanges
from emulator.ports import Segment
from tests.coordinator.aggregators.arrived import arrived
from tests.fakes import a_view


def part(**settings) -> SampleShare:
    return SampleShare(SampleShareSettings(**settings))


def holding(samples: Sequence[int], members: Sequence[Sequence[int]], models, ids, **more) -> View:
    """A view of clients that hold so many `samples` each, and belong to these models."""
    last = np.cumsum(samples)
    assignment = Assignment.fresh(np.array(members), len(ids), np.zeros(1, dtype=np.float32))
    held = SampleRanges.one_each(last - np.array(samples), last)
    return a_view(
        num_clients=len(samples), assignment=assignment, models=models, model_ids=ids, held=held, **more
    )


def test_an_update_counts_by_the_share_of_its_samples_in_those_of_all_clients():
    view = holding([1, 2, 5, 0], [[0]] * 4, [[1.0]], [0])
    assert part().aggregate(arrived([4], num_samples=[2]), view).tolist() == [[1 + 2 / 8 * 4]]
    both = arrived([4, 8], num_samples=[2, 1])
    assert part().aggregate(both, view).tolist() == [[1 + 2 / 8 * 4 + 1 / 8 * 8]]


def test_all_clients_together_make_the_step_of_fedavg():
    view = holding([1, 2, 5], [[0]] * 3, [[1.0]], [0])
    updates = arrived([4, 8, -1], num_samples=[1, 2, 5])
    expected = FedAvg(FedAvgSettings()).aggregate(updates, view)
    assert part().aggregate(updates, view).tolist() == expected.tolist()


def test_each_model_has_the_samples_of_its_own_members():
    # Model 4 has clients 0 and 1, with 4 samples; model 9 has 1 and 2, with 8; client 3 belongs to none.
    view = holding([1, 3, 5, 7], [[0, -1], [1, 0], [1, -1], [-1, -1]], [[0.0], [0.0]], [4, 9])
    updates = arrived([8, 8, 8], model=[4, 9, 9], num_samples=[1, 3, 5])
    assert part().aggregate(updates, view).tolist() == [[2], [8]]
    assert part().weights(updates.model, updates.num_samples, view).tolist() == [
        [1 / 4, 0, 0],
        [0, 3 / 8, 5 / 8],
    ]


def test_samples_that_have_gone_since_the_dispatch_never_make_a_step_longer_than_a_mean():
    view = holding([1, 1], [[0], [0]], [[0.0]], [0])
    assert part().aggregate(arrived([4, 8], num_samples=[6, 2]), view).tolist() == [[5]]
    nobody = holding([1], [[1]], [[0.5], [0.0]], [0, 1])
    assert part().aggregate(arrived([4], num_samples=[2]), nobody).tolist() == [[4.5], [0]]


def test_many_models_some_at_a_time_are_the_same_to_the_bit(monkeypatch):
    draw = np.random.default_rng(0)
    models = draw.normal(size=(11, 3))
    view = holding(
        draw.integers(1, 9, 30).tolist(), draw.integers(0, 11, (30, 2)).tolist(), models, range(5, 16)
    )
    numbers, of = draw.integers(0, 9, 40).tolist(), draw.integers(5, 14, 40).tolist()
    updates = arrived(draw.normal(size=(40, 3)), model=of, num_samples=numbers)
    together = part().aggregate(updates, view)
    monkeypatch.setattr("coordinator.aggregators.fedavg.MODELS_AT_ONCE", 2)
    assert part().aggregate(updates, view).tobytes() == together.tobytes()


def test_the_attention_is_the_softmax_of_absolute_weights_along_a_row():
    # |0|, |ln 3|: 1/4 and 3/4; two equal ones: 1/2 each.
    learned = attended(np.array([[0.0, -np.log(3)], [2.0, -2.0]]))
    assert learned == pytest.approx(np.array([[0, -0.75 * np.log(3)], [1, -1]]))
    assert np.isfinite(attended(np.array([[1e30, -1e30, 0]]))).all()


LAYOUT = {
    "mask": Segment(0, 2, (1, 2), trainable=False),
    "bias": Segment(2, 3, (1,)),
    "first": Segment(3, 7, (2, 2)),
    "second": Segment(7, 9, (1, 2)),
}


def test_literally_the_first_weights_of_updated_models_are_multiplied_by_their_attention():
    models = np.tile([1.0, 1, 1, 0, np.log(3), 2, -2, 5, 5], (2, 1))
    view = holding([2, 2], [[0], [1]], models, [0, 1], layout=LAYOUT)
    updates = arrived(np.zeros((1, 9)), num_samples=[2])
    learned = part(feature_learning="literal").aggregate(updates, view)
    assert learned[0] == pytest.approx([1, 1, 1, 0, 0.75 * np.log(3), 1, -1, 5, 5], rel=1e-6)
    assert learned[1].tolist() == view.models[1].tolist()
    silent = arrived(np.zeros((1, 9)), num_samples=[0])
    assert part(feature_learning="literal").aggregate(silent, view).tobytes() == view.models.tobytes()
    assert part().aggregate(updates, view).tobytes() == view.models.tobytes()


def test_literally_the_weights_shrink_at_every_step():
    view = holding([2, 2], [[0], [0]], np.full((1, 9), 0.5), [0], layout=LAYOUT)
    for _ in range(20):
        models = part(feature_learning="literal").aggregate(arrived(np.zeros((1, 9))), view)
        view = holding([2, 2], [[0], [0]], models, [0], layout=LAYOUT)
    assert np.abs(view.models[0, 3:7]).max() < 1e-6
