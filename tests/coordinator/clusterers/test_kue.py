from dataclasses import replace

import numpy as np
import pytest

from coordinator.clusterers.kue import Kue, KueSettings, kappas
from coordinator.view import ScoreResponse
from emulator.errors import ConfigurationError
from emulator.messages import ArrayUpdates, Scores
from emulator.ports import Segment
from tests.fakes import a_view

# A model of one weight and the mask of six features.
LAYOUT = {"weight": Segment(0, 1, (1,)), "mask": Segment(1, 7, (6,), trainable=False)}


def view_of(assignment=None, step=0, score=None, seed=0, layout=LAYOUT, changed=(0, 1), trained=(0, 1)):
    view = a_view(
        num_clients=2,
        assignment=assignment,
        model_ids=range(0 if assignment is None else assignment.num_models),
        round_=10 * step,
        step=step,
        seed=seed,
        layout=layout,
        score=score,
        changed=changed,
        updates=updates_of(*trained),
    )
    return replace(view, initial=lambda number: np.full(7, 0.5 + number, dtype=np.float32))


def updates_of(*clients: int) -> ArrayUpdates:
    """Each of `clients` trained models 0 and 1."""
    client = np.repeat(clients, 2)
    ones = np.ones_like(client)
    return ArrayUpdates(client, np.tile([0, 1], len(clients)), ones, ones, np.zeros((len(client), 7)))


def two_labels(correct: int) -> np.ndarray:
    """A confusion matrix with `correct` of 10 samples of each label right: kappa = correct / 5 - 1."""
    return np.array([[correct, 10 - correct], [10 - correct, correct]])


def responses(*correct):
    """Both clients respond with the matrix `two_labels` of the number given for each model."""

    def score(clients, models, samples, metrics, limit=None):
        assert (samples, metrics) == ("arrived", {"confusion"})
        confusion = np.stack([two_labels(correct[row]) for row in models.tolist()]).astype(np.float64)
        counts = np.full(len(clients), 20)
        return ScoreResponse(clients, Scores(counts, confusion=np.stack([confusion] * len(clients))))

    return score


def started(num_models=4, **view):
    kue = Kue(KueSettings(num_models=num_models))
    return kue, kue.on_data(view_of(**view))


def test_kappa_by_hand():
    # n = 50, agreed 35, chance 25 x 30 + 25 x 20 = 1250: (50 x 35 - 1250) / (2500 - 1250) = 0.4.
    assert kappas(np.array([[[20.0, 5], [10, 15]]])) == pytest.approx([0.4])


def test_kappa_is_one_if_perfect_zero_by_chance_and_negative_below():
    tables = [[[5, 0], [0, 3]], [[4, 4], [2, 2]], [[0, 5], [5, 0]], [[7, 0], [0, 0]], [[0, 0], [0, 0]]]
    assert kappas(np.array(tables, dtype=np.float64)) == pytest.approx([1, 0, -1, 0, 0])


def test_every_model_is_the_common_initialisation_with_a_mask_of_its_own():
    _, assignment = started(num_models=8)
    models = assignment.mixing @ assignment.extra
    assert (models[:, 0] == 0.5).all()
    masks = models[:, 1:]
    assert np.isin(masks, [0, 1]).all()
    assert (masks.sum(axis=1) >= 1).all()
    assert len(np.unique(masks, axis=0)) > 1
    assert assignment.members.tolist() == [list(range(8))] * 2
    assert assignment.lane_of_client.tolist() == [0, 0]


def test_masks_are_of_any_size_and_no_feature_is_left_out():
    masks = np.concatenate(
        [assignment.extra[:, 1:] for _, assignment in (started(30, seed=seed) for seed in range(4))]
    )
    sizes = np.bincount(masks.sum(axis=1).astype(int), minlength=7)
    assert sizes[0] == 0
    assert (sizes[1:] >= 8).all()  # 20 of each are expected
    assert (np.abs(masks.mean(axis=0) - 7 / 12) < 0.15).all()


def test_masks_are_those_of_the_seed():
    assert np.array_equal(started(seed=3)[1].extra, started(seed=3)[1].extra)
    assert not np.array_equal(started(seed=3)[1].extra, started(seed=4)[1].extra)


def test_a_model_without_a_mask_is_refused_in_one_clear_line():
    kue = Kue(KueSettings())
    kue.check(LAYOUT, knows_concepts=False)
    with pytest.raises(ConfigurationError, match=r"no tensor 'mask', only weight: .* kind = \"masked\""):
        kue.check({"weight": Segment(0, 7, (7,))}, knows_concepts=True)


def test_models_better_than_chance_predict_by_kappa_and_the_worst_abstains():
    kue, assignment = started()
    # Kappas 0.8, 0.4, 0.2 and -0.2.
    assert kue.on_updates(view_of(assignment, score=responses(9, 7, 6, 4))) is None
    plan = kue.serve(view_of(assignment))
    assert plan.models.tolist() == [[0, 1, 2, 3]] * 2
    assert plan.weights == pytest.approx(np.array([[4, 2, 1, 0]] * 2) / 7)
    assert plan.combine == "probabilities"


def test_the_worst_abstains_even_if_it_is_better_than_chance():
    kue, assignment = started()
    kue.on_updates(view_of(assignment, score=responses(9, 7, 6, 7)))
    assert kue.serve(view_of(assignment)).weights[0] == pytest.approx(np.array([4, 2, 0, 2]) / 8)


def test_if_all_abstain_all_count_alike():
    kue, assignment = started()
    assert kue.serve(view_of(assignment)).weights[0].tolist() == [0.25] * 4
    kue.on_updates(view_of(assignment, score=responses(5, 4, 3, 2)))
    assert kue.serve(view_of(assignment)).weights[0].tolist() == [0.25] * 4


def test_only_clients_that_trained_are_scored_and_their_tables_add_up():
    kue, assignment = started(num_models=3)
    tables = np.array([[two_labels(n) for n in (7, 7, 5)], [two_labels(n) for n in (9, 7, 5)]], dtype=float)

    def score(clients, models, samples, metrics, limit=None):
        return ScoreResponse(clients, Scores(np.full(len(clients), 20), confusion=tables[clients]))

    # Client 1 alone: kappas 0.8, 0.4 and 0. Both: model 0 has [[16, 4], [4, 16]], which is 0.6.
    kue.on_updates(view_of(assignment, score=score, trained=[1]))
    assert kue.serve(view_of(assignment)).weights[0] == pytest.approx([2 / 3, 1 / 3, 0])
    kue.on_updates(view_of(assignment, score=score))
    assert kue.serve(view_of(assignment)).weights[0] == pytest.approx([0.6, 0.4, 0])


def test_each_new_data_step_replaces_the_worst_model():
    kue, assignment = started()
    kue.on_updates(view_of(assignment, score=responses(9, 4, 6, 7)))
    new = kue.on_data(view_of(assignment, step=1))
    before = np.arange(28.0).reshape(4, 7)
    models = new.mixing @ np.concatenate([before, new.extra])
    assert np.array_equal(models[[0, 2, 3]], before[[0, 2, 3]])
    assert models[1, 0] == 0.5
    assert np.isin(models[1, 1:], [0, 1]).all()
    assert new.successor.tolist() == [0, -1, 2, 3]
    assert new.members.tolist() == assignment.members.tolist()
    # The new model is the worst until it is measured, so it does not predict.
    assert kue.serve(view_of(new)).weights[0] == pytest.approx(np.array([4, 0, 1, 2]) / 7)


def test_between_data_steps_nobody_is_replaced():
    kue, assignment = started()
    assert kue.on_data(view_of(assignment, step=1, changed=())) is None
    # Client 1 comes online, with the data of a step that is not new.
    assert kue.on_data(view_of(assignment, step=0, changed=[1])) is None


def test_kappas_stay_when_nobody_has_samples():
    kue, assignment = started()
    kue.on_updates(view_of(assignment, score=responses(9, 7, 6, 4)))

    def score(clients, models, samples, metrics, limit=None):
        counts = np.zeros(len(clients), dtype=np.int64)
        return ScoreResponse(clients, Scores(counts, confusion=np.zeros((len(clients), 4, 2, 2))))

    kue.on_updates(view_of(assignment, score=score))
    assert kue.serve(view_of(assignment)).weights[0] == pytest.approx(np.array([4, 2, 1, 0]) / 7)
