"""What all adaptive aggregators share: which models step, and moments that follow the models."""

import numpy as np
import pytest

from coordinator.aggregators.adaptive import mixed
from coordinator.aggregators.fedadagrad import FedAdagrad, FedAdagradSettings
from coordinator.aggregators.fedadam import FedAdam, FedAdamSettings
from coordinator.aggregators.fedavg import FedAvg, FedAvgSettings
from coordinator.aggregators.fedyogi import FedYogi, FedYogiSettings
from coordinator.assignment import Assignment
from emulator.storage.state_tree import from_bytes, to_bytes
from tests.coordinator.aggregators.arrived import arrived
from tests.fakes import a_view

KINDS = [(FedAdam, FedAdamSettings), (FedYogi, FedYogiSettings), (FedAdagrad, FedAdagradSettings)]
KIND = pytest.mark.parametrize(("part", "settings"), KINDS)


def stepped(part, models, delta, model=None, **more):
    """The models, with ids 0, 1, ..., after a step from updates `delta`, by default one of each model."""
    models = np.array(models, dtype=np.float32)
    model = list(range(len(models))) if model is None else model
    view = a_view(models=models, model_ids=list(range(len(models))))
    return part.aggregate(arrived(delta, model=model, **more), view)


def plain_adam(**more) -> FedAdam:
    """Half of D and of the last m make m, and v is D^2: with D = 0, the step 2 m is the last m."""
    return FedAdam(FedAdamSettings(learning_rate=2, beta1=0.5, beta2=0.0, tau=1, initial_v=1, **more))


def assignment(mixing, successor, extra=0):
    mixing = np.array(mixing, dtype=float)
    return Assignment(
        mixing, np.zeros((extra, 1), dtype=np.float32), np.array(successor), np.zeros((1, 1), dtype=np.int64)
    )


# -- which models step -----------------------------------------------------------------------------------


@KIND
def test_models_step_by_the_weights_of_the_mean(part, settings):
    delta, samples = [[1.0, 5.0], [3.0, -1.0]], [1, 3]
    mean = [[2.5, 0.5]]
    one = stepped(part(settings()), [[0, 0]], delta, [0, 0], num_samples=samples)
    assert one.tolist() == stepped(part(settings()), [[0, 0]], mean).tolist()
    uniform = stepped(part(settings(weighting="uniform")), [[0, 0]], delta, [0, 0], num_samples=samples)
    assert uniform.tolist() == stepped(part(settings()), [[0, 0]], [[2, 2]]).tolist()
    view = a_view(models=[[0.0]], model_ids=[4])
    model, counts = np.array([4, 4]), np.array([1, 3])
    known = part(settings()).weights(model, counts, view)
    assert known.tolist() == FedAvg(FedAvgSettings()).weights(model, counts, view).tolist()


@KIND
def test_a_model_without_updates_keeps_its_parameters_and_its_moments(part, settings):
    idle, busy = part(settings()), part(settings())
    for aggregator in (idle, busy):
        stepped(aggregator, [[1, 1], [1, 1]], [[0.5, -1], [2, 0.5]])
    new = stepped(idle, [[0.1, 1], [0.1, 1]], [[3, 3]], model=[0])
    assert new[1].tobytes() == np.array([0.1, 1], dtype=np.float32).tobytes()
    assert (new[0] != np.float32([0.1, 1])).all()
    # As if there had been no round in between.
    later = [stepped(aggregator, [[0, 0], [0, 0]], [[1, 1], [1, 1]])[1] for aggregator in (idle, busy)]
    assert later[0].tobytes() == later[1].tobytes()


@KIND
@pytest.mark.parametrize("weighting", ["samples", "uniform"])
def test_updates_without_samples_make_no_step(part, settings, weighting):
    aggregator = part(settings(weighting=weighting))
    stepped(aggregator, [[1, 1]], [[0.5, -1]])
    assert stepped(aggregator, [[1, 1]], [[0, 0]], num_samples=[0]).tolist() == [[1, 1]]


@KIND
def test_parameters_that_are_not_trained_stay_as_they_are(part, settings):
    models = np.array([[0.1, 0.3, 1.0], [0.7, 0.0, 1.0]], dtype=np.float32)
    aggregator = part(settings(moments="averaged"))
    for number in range(4):
        models = stepped(aggregator, models, [[number, 0, 0], [-1, 0, 0]])
        aggregator.models_changed(assignment([[0.5, 0.5], [0, 1]], [0, 1]))
    assert models[:, 1:].tobytes() == np.array([[0.3, 1], [0, 1]], dtype=np.float32).tobytes()
    assert (models[:, 0] != np.float32([0.1, 0.7])).all()


@KIND
def test_the_square_of_a_large_update_is_finite(part, settings):
    aggregator = part(settings())
    assert np.isfinite(stepped(aggregator, [[0]], [[1e30]])).all()
    assert np.isfinite(stepped(aggregator, [[0]], [[-1e30]])).all()


@KIND
def test_stored_and_restored_after_each_call_it_is_the_one_that_was_never_stopped(part, settings):
    made = []
    for stops in (False, True):
        aggregator, models = part(settings()), np.zeros((2, 1), dtype=np.float32)
        for delta in ([1, -2], [0.5, 3], [-4, 0.25]):
            if stops:
                stored = to_bytes(aggregator.state())
                aggregator = part(settings())
                aggregator.restore(from_bytes(stored))
            models = stepped(aggregator, models, delta)
            aggregator.models_changed(assignment([[0, 1], [1, 0]], [1, 0]))
        made.append(models.tobytes())
    assert made[0] == made[1]


# -- moments follow the models ---------------------------------------------------------------------------

MOMENTS = np.array([[4.0, 8.0], [2.0, 0.0]])


@pytest.mark.parametrize(
    ("mixing", "reset", "averaged"),
    [
        pytest.param([[0.5, 0.5]], [[9, 9]], [[3, 4]], id="merger"),
        pytest.param(
            [[1, 0], [0, 1], [0, 1]], [[4, 8], [2, 0], [2, 0]], [[4, 8], [2, 0], [2, 0]], id="split"
        ),
        pytest.param([[0, 1], [1, 0]], [[2, 0], [4, 8]], [[2, 0], [4, 8]], id="reordered"),
        pytest.param([[1, 0, 0], [0, 0, 1]], [[4, 8], [9, 9]], [[4, 8], [9, 9]], id="fresh"),
        pytest.param([[0.75, 0.25], [0, 1]], [[9, 9], [2, 0]], [[3.5, 6], [2, 0]], id="re-clustering"),
        pytest.param([[0, 0.5, 0.25, 0.25]], [[9, 9]], [[5.5, 4.5]], id="mixed with new ones"),
        pytest.param([[1, 0.5, -0.5]], [[9, 9]], [[0.5, 3.5]], id="not a copy though one weight is 1"),
    ],
)
def test_moments_are_copied_with_models_and_start_anew_or_are_mixed(mixing, reset, averaged):
    mixing = np.array(mixing, dtype=float)
    assert mixed(MOMENTS, mixing, 9.0, averages=False).tolist() == reset
    assert mixed(MOMENTS, mixing, 9.0, averages=True).tolist() == averaged


def test_a_merged_model_starts_anew_or_with_the_mean_of_the_first_moments():
    for moments, expected in (("reset", 0), ("averaged", 2 * (0.75 / 2))):
        aggregator = plain_adam(moments=moments)
        stepped(aggregator, [[0], [0]], [[1], [2]])  # m = 0.5 and 1
        aggregator.models_changed(assignment([[0.5, 0.5]], [0, 0]))
        assert stepped(aggregator, [[0]], [[0]]).tolist() == [[expected]]


@pytest.mark.parametrize("moments", ["reset", "averaged"])
def test_both_children_of_a_split_have_the_moments_of_their_parent_and_a_new_model_has_none(moments):
    aggregator = plain_adam(moments=moments)
    stepped(aggregator, [[0], [0]], [[1], [2]])
    aggregator.models_changed(assignment([[0, 1, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1]], [2, 0], extra=1))
    assert stepped(aggregator, [[0]] * 4, [[0]] * 4).tolist() == [[1], [1], [0.5], [0]]


def test_the_second_moment_of_a_new_model_is_the_initial_one():
    aggregator = FedAdagrad(FedAdagradSettings(learning_rate=6, tau=1, initial_v=9))
    stepped(aggregator, [[0], [0]], [[4], [4]])  # v = 25
    aggregator.models_changed(assignment([[0.5, 0.5, 0], [0, 1, 0], [0, 0, 1]], [0, 1], extra=1))
    # sqrt(9 + 16) + 1 = 6, but the copy has sqrt(25 + 24) + 1 = 8 of D = sqrt(24).
    root = 24**0.5
    new = stepped(aggregator, [[0]] * 3, [[4], [root], [4]])
    assert new[:, 0].tolist() == pytest.approx([4, 6 * root / 8, 4])


def test_averaged_second_moments_are_never_negative():
    aggregator = FedAdagrad(FedAdagradSettings(moments="averaged", initial_v=0))
    stepped(aggregator, [[0], [0]], [[1], [2]])
    aggregator.models_changed(assignment([[2, -1]], [0, 0]))
    assert np.isfinite(stepped(aggregator, [[0]], [[0]])).all()


def test_models_may_change_before_the_first_step():
    aggregator = plain_adam()
    aggregator.models_changed(Assignment.fresh(np.zeros(2, dtype=np.int64), 1, np.zeros(1, dtype=np.float32)))
    assert stepped(aggregator, [[0]], [[3]]).tolist() == [[2 * 1.5 / (3 + 1)]]


# -- settings --------------------------------------------------------------------------------------------


@KIND
def test_the_second_moment_starts_at_the_square_of_tau_and_the_settings_show_it(part, settings):
    assert settings(tau=0.5).model_dump()["initial_v"] == 0.25
    assert settings(tau=0.5, initial_v=0).initial_v == 0


@KIND
@pytest.mark.parametrize("key", ["tau", "learning_rate"])
def test_a_step_without_a_positive_size_is_refused(part, settings, key):
    with pytest.raises(ValueError, match=f"(?s)1 validation error.*{key}.*greater than 0"):
        settings(**{key: 0})
