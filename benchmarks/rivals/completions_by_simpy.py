"""Asynchronous visits by SimPy: one process per visit in flight, which starts the next visit at its end."""

from __future__ import annotations

from collections.abc import Generator
from itertools import count

import numpy as np
import simpy

from emulator.arrays import Floats, Ints


def complete_by_simpy(visit_s: Floats, in_flight: int, completions: int) -> Ints:
    """The visits in the order in which they end, of shape (completions,)."""
    lengths_s = visit_s.tolist()
    environment = simpy.Environment()
    following = count()
    ended: list[int] = []
    enough = environment.event()

    def slot() -> Generator[simpy.Event, None, None]:
        while True:
            visit = next(following)
            yield environment.timeout(lengths_s[visit])
            ended.append(visit)
            if len(ended) == completions:
                enough.succeed()

    for _ in range(in_flight):
        environment.process(slot())
    environment.run(until=enough)
    return np.array(ended[:completions])
