import numpy as np
import pytest

from coordinator.schedules.adaptive_lr import AdaptiveLearningRate, AdaptiveLearningRateSettings
from tests.fakes import a_view

# One model of one parameter, which is 4, 4, 0 and 0 after the first four aggregations. By hand, b = 0.5:
#
#   t  w_t  mean^_t  (w_t - mean^_{t-1})^2  variance_t  variance^_t  quotient  ratio_t  ratio^_t  ratio^_t / t
#   1    4        4                     16           8           16         1      1/2         1             1
#   2    4        4                      0           4         16/3       1/3     5/12       5/9          5/18
#   3    0     12/7                     16          10         80/7      15/7   215/168  215/147       215/441
PARAMETERS = [4.0, 4.0, 0.0]
FACTORS = [1.0, 5 / 18, 215 / 441]


def schedule(**settings) -> AdaptiveLearningRate:
    return AdaptiveLearningRate(AdaptiveLearningRateSettings(**settings))


def observed(adaptive, *values, ids=None, round_=0, step=0):
    """The round's view, with models of one parameter each, after `observe`."""
    view = a_view(
        models=[[value] for value in values],
        model_ids=range(len(values)) if ids is None else ids,
        round_=round_,
        step=step,
    )
    adaptive.observe(view)
    return view


def rates(adaptive, view, *models, base=0.1) -> list[float]:
    rows = np.array(models)
    bases = {"learning_rate": np.full(len(rows), base)}
    settings = adaptive.task_settings(np.zeros_like(rows), rows, bases, view)
    return settings["learning_rate"].tolist()


def test_the_rate_follows_the_hand_worked_sequence():
    adaptive = schedule(every="round")
    # A model's start is not an aggregation.
    assert rates(adaptive, observed(adaptive, 9.0), 0) == [0.1]
    for round_, (parameter, factor) in enumerate(zip(PARAMETERS, FACTORS, strict=True), start=1):
        view = observed(adaptive, parameter, round_=round_)
        assert rates(adaptive, view, 0) == pytest.approx([0.1 * factor])


def test_several_parameters_count_by_their_mean_square():
    # Both follow the table above, one times 3: all variances are 5 times as large, all quotients the same.
    adaptive = schedule(every="round")
    for parameter in [9.0, *PARAMETERS]:
        view = a_view(models=[[parameter, 3 * parameter]], model_ids=[0])
        adaptive.observe(view)
    assert rates(adaptive, view, 0) == pytest.approx([0.1 * FACTORS[-1]])


def test_by_step_the_rounds_within_a_data_step_change_nothing():
    adaptive = schedule(every="step")
    seen = []
    # Three rounds per step: the model after the last one counts, whatever it was in between.
    for step, left in enumerate([9.0, *PARAMETERS]):
        for round_, parameter in enumerate([left, -1.0, 17.0], start=3 * step):
            view = observed(adaptive, parameter, round_=round_, step=step)
            seen += rates(adaptive, view, 0)
    assert seen == pytest.approx(np.repeat([0.1, *(0.1 * factor for factor in FACTORS)], 3))


def test_the_rate_never_exceeds_the_one_it_starts_from():
    adaptive = schedule(every="round")
    for parameter in [0.0, 0.1, 100.0]:
        view = observed(adaptive, parameter)
    # The variance grew by a factor of about a million.
    assert rates(adaptive, view, 0) == [0.1]


def test_a_model_that_never_moves_from_zero_has_no_ratio_and_decays_as_one_over_t():
    adaptive = schedule(every="round")
    for _ in range(5):
        view = observed(adaptive, 0.0)
    assert rates(adaptive, view, 0) == pytest.approx([0.1 / 4])


def test_each_model_has_a_rate_of_its_own_and_a_replaced_one_starts_over():
    adaptive = schedule(every="round")
    observed(adaptive, 9.0, 0.0, ids=[5, 6])
    observed(adaptive, 4.0, 0.0, ids=[5, 6])
    view = observed(adaptive, 4.0, 0.0, ids=[5, 6])
    assert rates(adaptive, view, 0, 1, 0) == pytest.approx([0.1 * 5 / 18, 0.05, 0.1 * 5 / 18])
    # Model 5 is now row 1; row 0 is a new model.
    view = observed(adaptive, 7.0, 0.0, ids=[7, 5])
    assert rates(adaptive, view, 0, 1) == pytest.approx([0.1, 0.1 * 215 / 441])


def test_tasks_keep_their_own_starting_rates():
    adaptive = schedule(every="round")
    for parameter in [9.0, 4.0, 4.0]:
        view = observed(adaptive, parameter)
    base = {"learning_rate": np.array([0.1, 0.2])}
    settings = adaptive.task_settings(np.array([0, 1]), np.array([0, 0]), base, view)
    assert settings["learning_rate"].tolist() == pytest.approx([0.1 * 5 / 18, 0.2 * 5 / 18])
    assert set(settings) == adaptive.sets
