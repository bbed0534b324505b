"""A round by SimPy: one process per visit, on the same arrays, without any other bookkeeping."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field

import numpy as np
import simpy

from benchmarks.population import SEED, Population
from emulator.arrays import NO_IDS, Floats, Ints


@dataclass(frozen=True)
class Closed:
    """The end of a round: the clients whose visits completed, in order of return, and its time."""

    completed: list[int]
    end_s: float


@dataclass
class SimpyRounds:
    """Successive rounds; participants are drawn at random, and those that are offline are drawn again."""

    population: Population
    participants: int
    wanted: int
    now_s: float = 0.0
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(SEED))

    def play_round(self) -> Closed:
        clients = self._draw()
        due_s = self.now_s + self.population.visit_s(clients)
        offline_s = self.population.availability.next_offline_s(clients, self.now_s)
        closed = play_visits(clients, due_s, offline_s, self.participants, self.now_s)
        self.now_s = closed.end_s
        return closed

    def _draw(self) -> Ints:
        """Ids of online clients, ascending, of shape (wanted,)."""
        online = NO_IDS
        while len(online) < self.wanted:
            drawn = self.rng.integers(len(self.population), size=8 * self.wanted)
            online = np.concatenate([online, drawn[self.population.availability.online(drawn, self.now_s)]])
            _, first = np.unique(online, return_index=True)
            online = online[np.sort(first)]
        return np.sort(online[: self.wanted])


def play_visits(clients: Ints, due_s: Floats, offline_s: Floats, participants: int, start_s: float) -> Closed:
    """Play visits until `participants` of them have completed, or all have ended.

    A visit is dropped if its client goes offline before it is due. Columns have shape (n,).
    """
    environment = simpy.Environment(initial_time=start_s)
    completed: list[int] = []
    enough = environment.event()

    def visit(client: int, length_s: float, drops: bool) -> Generator[simpy.Event, None, None]:
        yield environment.timeout(length_s)
        if not drops and len(completed) < participants:
            completed.append(client)
            if len(completed) == participants:
                enough.succeed()

    ends_s = np.minimum(due_s, offline_s) - start_s
    visits = [
        environment.process(visit(client, length_s, drops))
        for client, length_s, drops in zip(
            clients.tolist(), ends_s.tolist(), (offline_s < due_s).tolist(), strict=True
        )
    ]
    environment.run(until=enough | environment.all_of(visits))
    return Closed(completed, float(environment.now))
