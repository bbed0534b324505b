"""Asynchronous visits as SimPy plays them: as many processes as visits in flight, each starting the next."""

from __future__ import annotations

from collections.abc import Generator
from itertools import count

import numpy as np
import simpy

from emulator.arrays import Floats, Ints


def complete_by_simpy(visit_s: Floats, in_flight: int, completions: int) -> Ints:
    """(completions,) the visits in the order in which they end."""
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
