"""Calls of Python and C in a round, of which nearly all its time is made: numpy is called on short arrays.

The number only falls, or rises in a commit whose message says by how much and why.
"""

from __future__ import annotations

import sys
from collections import Counter
from types import FrameType
from typing import Any

from experiments.bench.population import Population
from experiments.bench.rounds import RoundSizes, play
from tests.ratchets.pinned import pinned

FEW, MORE = 10, 30
MOST_CALLS = 931

HOW_TO_FIND_WHAT_GREW = "print the functions of ours that make the most calls with the commit before too"


@pinned("numpy")
def test_a_round_makes_at_most_so_many_calls() -> None:
    """At ten thousand devices: the number does not depend on it, but for a trial of clients now and then."""
    population = Population.of(10_000)
    play(population, RoundSizes(rounds=FEW))  # imports, and what is cached
    more = calls(population, MORE)
    more.subtract(calls(population, FEW))
    in_a_round = {where: count / (MORE - FEW) for where, count in more.most_common()}
    number = sum(in_a_round.values())
    assert number <= MOST_CALLS, (
        f"{number:.1f}: {HOW_TO_FIND_WHAT_GREW}: {dict(list(in_a_round.items())[:40])}"
    )


def calls(population: Population, rounds: int) -> Counter[str]:
    """The calls in `rounds` rounds and two more, by the function of ours that makes them."""
    number: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _: Any) -> None:
        if event in ("call", "c_call"):
            caller: FrameType | None = frame
            while caller is not None and "site-packages" in caller.f_code.co_filename:
                caller = caller.f_back
            number["?" if caller is None else caller.f_code.co_qualname] += 1

    sys.setprofile(count)
    try:
        play(population, RoundSizes(rounds=rounds))
    finally:
        sys.setprofile(None)
    return number
