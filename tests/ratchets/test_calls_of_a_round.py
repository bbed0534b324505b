"""Calls of Python and C in a round, of which nearly all its time is made: numpy is called on short arrays.

The numbers only fall, or rise in a commit whose message says by how much and why.
"""

from __future__ import annotations

from benchmarks.digits import MOST_CALLS, calls_in_a_round
from benchmarks.measure import calls_of_one
from benchmarks.population import Population
from benchmarks.rounds import RoundSizes, play
from tests.ratchets.pinned import pinned

MOST_CALLS_OF_E1 = 929

HOW_TO_FIND_WHAT_GREW = "print the functions of ours that make the most calls with the commit before too"


@pinned("numpy")
def test_a_round_makes_at_most_so_many_calls() -> None:
    """At ten thousand devices: the number does not depend on it, but for a trial of clients now and then."""
    population = Population.of(10_000)
    refuse_more(
        calls_of_one(lambda rounds: play(population, RoundSizes(rounds=rounds)), 10, 30), MOST_CALLS_OF_E1
    )


@pinned("numpy", "torch", "pyarrow", "plotly")
def test_a_round_that_is_trained_evaluated_logged_and_reported_makes_at_most_so_many_calls() -> None:
    refuse_more(calls_in_a_round(), MOST_CALLS)


def refuse_more(in_a_round: dict[str, float], most: float) -> None:
    number = sum(in_a_round.values())
    assert number <= most, f"{number:.1f}: {HOW_TO_FIND_WHAT_GREW}: {dict(list(in_a_round.items())[:40])}"
