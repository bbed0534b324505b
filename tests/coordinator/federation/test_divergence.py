import math

import numpy as np
import pytest

from coordinator.federation.divergence import FRUITLESS_ROUNDS, Divergence
from coordinator.federation.method import RoundSettings
from emulator.errors import RunError
from emulator.messages import ArrayUpdates
from tests.fakes import ints


def divergence(policy="drop", other_hints=""):
    return Divergence(RoundSettings(9, 1, 1, learning_rate=0.5, nonfinite_updates=policy), other_hints)


def updates(*rows, samples=None, state=None):
    """(update, loss) of one task each of client 4 (model 0), client 4 (model 1), client 7, ..."""
    delta, loss = np.array(rows, dtype=np.float64).reshape(-1, 2).T
    clients = ints(4, 4, 7, 9)[: len(rows)]
    counts = np.ones(len(rows), dtype=np.int64) if samples is None else np.array(samples)
    return ArrayUpdates(
        clients,
        np.arange(len(rows)),
        counts,
        counts,
        delta.astype(np.float32)[:, None],
        {"loss": loss},
        {} if state is None else {"momentum": np.array(state, dtype=np.float32)[:, None]},
    )


def test_finite_updates_are_all_used():
    sent = updates((1.0, 0.5), (2.0, 0.5))
    assert divergence().usable(0, sent) == (sent, [])


def test_a_client_with_one_bad_task_keeps_its_good_one():
    used, rejected = divergence().usable(0, updates((math.nan, 0.5), (2.0, 0.5), (3.0, math.inf)))
    assert rejected == [4, 7]
    assert used.delta.tolist() == [[2.0]]


def test_solver_state_must_be_finite_too():
    used, rejected = divergence().usable(0, updates((1.0, 0.5), (2.0, 0.5), state=[0.0, math.inf]))
    assert (len(used), rejected) == (1, [4])


def test_an_update_without_samples_needs_no_finite_loss():
    sent = updates((0.0, math.nan), (2.0, 0.5), samples=[0, 3])
    assert divergence().usable(0, sent) == (sent, [])


def test_they_stop_the_run_if_so_configured():
    with pytest.raises(RunError) as raised:
        divergence("stop", " or X").usable(3, updates((1.0, 0.5), (1.0, 0.5), (math.nan, 0.5)))
    assert str(raised.value) == (
        "round 3: the update of client 7 is not finite (of 1 of 2 clients), and "
        'round.nonfinite_updates = "stop"; a lower training.learning_rate than 0.5 or X may help'
    )


def test_too_many_fruitless_rounds_in_a_row_end_the_run_also_after_it_was_stored():
    watched = divergence()
    bad, good = updates((math.nan, 0.5)), updates((1.0, 0.5))
    for sent in [bad] * (FRUITLESS_ROUNDS - 1) + [good] + [bad] * (FRUITLESS_ROUNDS - 1):
        watched.usable(0, sent)
    later = divergence()
    later.restore(watched.state())
    with pytest.raises(RunError, match="in 10 rounds in a row no update was finite"):
        later.usable(0, bad)


@pytest.mark.parametrize("value", [math.nan, np.array([[0.0, math.inf]], dtype=np.float32)])
def test_models_and_losses_that_are_not_finite_are_refused(value):
    divergence().refuse(1, 0.0, np.zeros((2, 2), dtype=np.float32))
    with pytest.raises(RunError, match="round 1: training diverged"):
        divergence().refuse(1, 0.0, value)
