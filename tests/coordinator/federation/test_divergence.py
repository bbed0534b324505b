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


def usable(watched, sent, round_=0):
    """Which of the updates are usable, and the clients of the others."""
    used, rejected = watched.usable(round_, sent)
    return used.tolist(), rejected


def test_finite_updates_are_all_used():
    assert usable(divergence(), updates((1.0, 0.5), (2.0, 0.5))) == ([True, True], [])


def test_a_client_with_one_bad_task_keeps_its_good_one():
    sent = updates((math.nan, 0.5), (2.0, 0.5), (3.0, math.inf))
    assert usable(divergence(), sent) == ([False, True, False], [4, 7])


def test_an_update_beside_solver_state_that_is_not_finite_is_used():
    sent = updates((1.0, 0.5), (2.0, 0.5), state=[0.0, math.inf])
    assert usable(divergence(), sent) == ([True, True], [])


def test_clients_that_forget_are_noted_or_stop_the_run():
    assert divergence().forgotten(2, ints(4, 7)) == [4, 7]
    assert divergence("stop").forgotten(2, ints()) == []
    problem = r"^round 2: what client 4 was to remember is not finite \(of 2 such\)"
    with pytest.raises(RunError, match=problem):
        divergence("stop").forgotten(2, ints(4, 7))


def test_an_update_without_samples_needs_no_finite_loss():
    sent = updates((0.0, math.nan), (2.0, 0.5), samples=[0, 3])
    assert usable(divergence(), sent) == ([True, True], [])


def test_they_stop_the_run_if_so_configured():
    with pytest.raises(RunError) as raised:
        divergence("stop", " or X").usable(3, updates((1.0, 0.5), (1.0, 0.5), (math.nan, 0.5)))
    assert str(raised.value) == (
        "round 3: the update of client 7 is not finite (of 1 of 2 clients), and "
        'round.nonfinite_updates = "stop"; a lower training.learning_rate than 0.5 or X may help'
    )


BAD, GOOD = updates((math.nan, 0.5)), updates((1.0, 0.5))


def play(watched, *rounds):
    """Rounds, each with the updates of its server steps."""
    for number, steps in enumerate(rounds):
        for sent in steps:
            watched.usable(number, sent)
        watched.round_closes(number)


def test_too_many_fruitless_rounds_in_a_row_end_the_run_also_after_it_was_stored():
    watched = divergence()
    play(watched, *[[BAD]] * (FRUITLESS_ROUNDS - 1), [GOOD], *[[BAD]] * (FRUITLESS_ROUNDS - 1))
    later = divergence()
    later.restore(watched.state())
    later.usable(7, BAD)
    with pytest.raises(RunError, match=r"^round 7: .*in 10 rounds in a row no update was finite"):
        later.round_closes(7)


def test_a_round_of_several_steps_is_fruitless_only_if_all_of_them_are():
    play(divergence(), *[[BAD, GOOD, BAD]] * (2 * FRUITLESS_ROUNDS))
    with pytest.raises(RunError, match="training diverged"):
        play(divergence(), *[[BAD] * 3] * FRUITLESS_ROUNDS)
    # Rounds count, not steps.
    play(divergence(), *[[BAD] * 100] * (FRUITLESS_ROUNDS - 1))


def test_rounds_without_training_neither_count_nor_interrupt():
    watched = divergence()
    play(watched, *[[BAD], []] * (FRUITLESS_ROUNDS - 1))
    with pytest.raises(RunError, match="training diverged"):
        play(watched, [BAD])


def test_what_a_round_has_come_to_is_stored_between_its_steps():
    watched, later = divergence(), divergence()
    play(watched, *[[BAD]] * (FRUITLESS_ROUNDS - 1))
    watched.usable(9, GOOD)
    later.restore(watched.state())
    later.usable(9, BAD)
    later.round_closes(9)


@pytest.mark.parametrize("value", [math.nan, np.array([[0.0, math.inf]], dtype=np.float32)])
def test_models_and_losses_that_are_not_finite_are_refused(value):
    divergence().refuse(1, 0.0, np.zeros((2, 2), dtype=np.float32))
    with pytest.raises(RunError, match="round 1: training diverged"):
        divergence().refuse(1, 0.0, value)
