from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import pytest

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


@pytest.mark.parametrize(("again", "when"), [("evaluation", "evaluated"), ("data", "new_data")])
def test_a_client_is_charged_for_one_tuning_whenever_its_copy_is_trained(
    again: Literal["evaluation", "data"], when: str
) -> None:
    tuned = Tuned(TunedSettings(local_steps=4, again=again))
    no, yes = {"evaluated": False, "new_data": [False, False]}, {"evaluated": True, "new_data": [True, False]}
    facts = {name: np.array(value) for name, value in {**no, when: yes[when]}.items()}
    work = tuned.work(a_view([[1, 0]] * 2, **facts))
    assert work is not None
    assert work.trained_samples.tolist() == [40.0, 40.0 * (again == "evaluation")]
    assert not np.concatenate([work.download_bytes, work.upload_bytes, work.forward_samples]).any()
    facts = {name: np.array(value) for name, value in {**yes, when: no[when]}.items()}
    assert tuned.work(a_view([[1, 0]] * 2, **facts)) is None


def test_a_copy_is_kept_until_the_data_of_its_client_change() -> None:
    """Also while another model serves it: only client 1's data change, which then has a copy of that."""
    training, tuned = Training(), Tuned(TunedSettings(local_steps=3, again="data"))
    assert tuned.keeps_models
    plan = InferencePlan.alike(np.array([[0], [0], [1]]))
    view = a_view([[1, 0]] * 3, TWO, plan=plan, train=training)
    assert tuned.adapt(view).models.tolist() == [[13.0], [13.0], [23.0]]
    moved = InferencePlan.alike(np.array([[1], [1], [1]]))
    later = a_view([[1, 0]] * 3, TWO, plan=moved, train=training)
    assert tuned.adapt(later).models.tolist() == [[13.0], [13.0], [23.0]]
    assert training.steps == [[3, 3, 3]]
    tuned.data_changes(replace(later, clients=np.array([1])))
    assert tuned.adapt(later).models.tolist() == [[13.0], [23.0], [23.0]]
    assert training.steps == [[3, 3, 3], [0, 3, 0]]


def test_clients_get_their_copies_when_they_are_first_evaluated() -> None:
    """Client 7 of the scored 4, 7 and 9 is evaluated before the others, and no copy is made of it twice."""
    training, tuned = Training(), Tuned(TunedSettings(again="data"))
    tuned.data_changes(a_view())
    one = a_view(train=training, clients=np.array([7]), scored=np.array([4, 7, 9]))
    assert tuned.adapt(one).models.tolist() == [[5.0]]
    others = a_view([[1, 0]] * 3, ((1.0,),), train=training, clients=one.scored, scored=one.scored)
    assert tuned.adapt(others).models.tolist() == [[6.0], [5.0], [6.0]]


def test_a_copy_that_is_made_anew_at_each_evaluation_needs_no_state() -> None:
    assert not Tuned(TunedSettings()).keeps_models
