from __future__ import annotations

import numpy as np

from coordinator.adaptations.tuned import Tuned, TunedSettings
from emulator.messages import InferencePlan
from tests.coordinator.adaptations.views import Training, a_view

TWO = np.array([[10.0], [20.0]], dtype=np.float32)


def test_each_client_trains_a_copy_of_the_model_that_serves_it() -> None:
    training, plan = Training(), InferencePlan.alike(np.array([[1], [0], [1]]))
    view = a_view([[1, 0]] * 3, TWO, plan=plan, train=training)
    served = Tuned(TunedSettings(local_steps=3)).adapt(view)
    assert served.models.tolist() == [[23.0], [13.0], [23.0]]
    assert served.plan.first().tolist() == [0, 1, 2]
    assert (training.steps, training.rates) == ([[3, 3, 3]], [None])
    assert view.models.tolist() == [[10.0], [20.0]]


def test_a_copy_starts_from_the_served_model_at_every_evaluation() -> None:
    training = Training()
    tuned, view = Tuned(TunedSettings(learning_rate=0.5)), a_view(train=training)
    assert tuned.adapt(view).models.tolist() == tuned.adapt(view).models.tolist() == [[5.0]]
    assert training.states == [None, None]
    assert training.rates == [0.5, 0.5]


def test_a_client_is_charged_for_one_tuning_per_data_step() -> None:
    tuned = Tuned(TunedSettings(local_steps=4))
    work = tuned.work(a_view([[1, 0]] * 2))
    assert work is not None
    assert work.trained_samples.tolist() == [40.0, 40.0]
    assert not np.concatenate([work.download_bytes, work.upload_bytes, work.forward_samples]).any()
    assert tuned.work(a_view(new_data=False)) is None
