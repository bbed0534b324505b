"""The fake ports of the contracts behave like those of a run."""

from __future__ import annotations

import numpy as np
import pytest

from emulator.arrays import Floats
from experiments import contracts
from experiments.contracts.ports import HELD_STEPS, SLOT_S, LabelStream, Presence
from experiments.contracts.rounds import Rounds, Scripted
from tests.fakes import fresh
from tests.traces.tiny import Row, trace_of
from traces.trace import TraceStream

STEPS, CLIENTS = 5, 3
SHARES: Floats = np.full((STEPS, CLIENTS, 4), 0.25)


def test_presence_passes_the_contract_of_availability() -> None:
    online = np.random.default_rng(0).random((9, 20)) < 0.5
    times_s = [0.0, 1.0, SLOT_S, 3.5 * SLOT_S, 8 * SLOT_S, 100 * SLOT_S]
    contracts.check_availability(Presence(online), 20, times_s)


@pytest.mark.parametrize("silent_step", [None, 2])
def test_samples_arrive_and_expire_as_in_a_trace(silent_step: int | None) -> None:
    """Compares with a trace of equal training samples, and one test sample per client that never expires."""
    stream, everyone = LabelStream(SHARES, 2, silent_step), np.arange(CLIENTS)
    stream.advance_to_round(2 * STEPS)
    rows: list[Row] = [(client, 1, 0, 0) for client in range(CLIENTS)]
    sizes = np.diff(stream._borders, axis=1)
    for client, column in np.ndindex(*sizes.shape):
        rows += [(client, 0, column + 1 - HELD_STEPS, 0)] * int(sizes[client, column])
    real = TraceStream(trace_of(rows, retain_steps=HELD_STEPS, rounds_per_step=2, test_retain_steps=99))
    stream = LabelStream(SHARES, 2, silent_step)
    for round_ in range(2 * STEPS):
        assert stream.advance_to_round(round_).tolist() == real.advance_to_round(round_).tolist()
        assert stream.step == real.step
        assert (
            stream.held(everyone, "train").counts().tolist() == real.held(everyone, "train").counts().tolist()
        )
        for first in range(-1, STEPS):
            for last in range(STEPS):
                ours, theirs = (source.arrived(everyone, first, last).counts() for source in (stream, real))
                assert ours.tolist() == theirs.tolist(), (round_, first, last)


def test_in_a_silent_step_samples_expire_and_none_arrive() -> None:
    stream, everyone = LabelStream(SHARES, silent_step=1), np.arange(CLIENTS)
    stream.advance_to_round(0)
    assert stream.advance_to_round(1).tolist() == [0, 1, 2]
    assert stream.arrived(everyone, 1, 1).counts().tolist() == [0, 0, 0]
    assert (stream.held(everyone, "train").counts() > 0).all()


def test_a_round_without_clients_online_waits_and_is_opened_again() -> None:
    """All clients are offline in the second round until its visits begin."""
    online = np.ones((9, CLIENTS), dtype=bool)
    online[3] = False
    seen = []

    class Seeing(Scripted):
        def on_data(self, view):  # type: ignore[no-untyped-def]
            seen.append(view.round)
            return super().on_data(view)

    rounds = Rounds(LabelStream(SHARES), online, clusterer=Seeing({0: fresh([0, 0, 0], num_parameters=6)}))
    for _ in range(3):
        rounds.play()
    assert seen == [0, 1, 1, 2]
