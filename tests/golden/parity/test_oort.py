"""Oort selects in whole rounds as FedScale's training selector does: the same clients, for the same reasons.

Random streams differ, and so in both each draw takes "the heaviest" or "the lightest" of its candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from coordinator.candidates import Candidates
from coordinator.selectors import utility
from coordinator.selectors.oort import Oort
from coordinator.selectors.utility import OortSettings
from emulator.arrays import Bools, Floats, Ints
from emulator.messages import ArrayUpdates, EndedVisits, Outcome, SampleRanges
from tests.golden.parity.recorded import recorded

CASES = recorded("oort")["cases"]
SIGNS = {"heaviest": -1, "lightest": 1}


def the_first(sign: int) -> Callable[[Floats, int, np.random.Generator], Ints]:
    """A draw of the `count` first by sign x share of all weight; ties, to 12 digits, go to the lowest."""

    def drawn(weight: Floats, count: int, generator: np.random.Generator) -> Ints:
        order = np.argsort(sign * np.round(weight / weight.sum(), 12), kind="stable")
        return np.sort(order[:count])

    return drawn


def view_of(case: Mapping[str, Any]) -> Any:
    """All clients hold samples; the first, random draw is the one that was given to both."""
    samples, expected_s = np.array(case["samples"]), np.array(case["expected_s"])
    ends, stream = np.cumsum(samples), SimpleNamespace(choice=lambda *_, **__: np.array(case["first"]))
    return SimpleNamespace(
        num_clients=len(samples),
        holding=samples > 0,
        local_steps=case["steps"],
        batch_size=case["batch_size"],
        held=lambda ids: SampleRanges.one_each(ends[ids] - samples[ids], ends[ids]),
        expected_s=lambda ids: expected_s[ids],
        rngs=lambda purpose, lanes: [stream] * len(lanes),
    )


def online(round_: Mapping[str, Any], num_clients: int) -> Bools:
    """(N,) the bits of a hexadecimal number, the first client's first."""
    found: Bools = np.unpackbits(np.frombuffer(bytes.fromhex(round_["online"]), "u1"), count=num_clients) > 0
    return found


def back(oort: Oort, clients: Ints, round_: Mapping[str, Any], samples: Ints) -> None:
    """Visits end: the late ones are abandoned, the others bring their loss."""
    late, none, zeros = np.array(round_["late"]) > 0, 0 * clients, np.zeros(len(clients))
    outcome = np.where(late, int(Outcome.ABANDONED), int(Outcome.COMPLETED))
    came, ones = clients[~late], np.ones(len(clients) - late.sum(), dtype=np.int64)
    losses = {"loss_squared": np.array(round_["loss_squared"])[~late]}
    delta = np.zeros((len(came), 1), dtype=np.float32)
    oort.feedback(
        EndedVisits(clients, clients, none, zeros, np.array(round_["duration_s"]), outcome, none),
        ArrayUpdates(came, ones, samples[came], ones, delta, losses),
    )


@pytest.mark.parametrize("case", CASES, ids=[f"{case['draws']}-{case['clients']}" for case in CASES])
def test_every_round_selects_the_same_clients(
    case: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(utility, "drawn", the_first(SIGNS[case["draws"]]))
    oort, view, samples = Oort(OortSettings()), view_of(case), np.array(case["samples"])
    wanted, everyone = np.array([case["participants"]]), np.arange(case["clients"])
    for number, round_ in enumerate(case["rounds"]):
        mask = online(round_, case["clients"])
        selected = oort.select(Candidates([everyone], lambda ids, mask=mask: mask[ids]), wanted, view)
        assert selected.tolist() == round_["selected"], number
        state = oort.state()
        assert state["_percentile"] == round_["round_threshold"], number
        assert state["_exploration"] == pytest.approx(round_["exploration"], abs=1e-12), number
        back(oort, selected, round_, samples)
    if "final" in case:
        final, state = case["final"], oort.state()
        np.testing.assert_allclose(state["_utility"], final["utility"], rtol=0, atol=1e-4)
        np.testing.assert_allclose(state["_duration_s"], final["duration_s"], rtol=0, atol=1e-3)
