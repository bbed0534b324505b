"""Main loop: pop the earliest event, advance virtual time, dispatch it to the coordinator, log its record."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from emulator.errors import RunError
from emulator.in_flight import InFlight
from emulator.messages import VisitRows
from emulator.ports import Coordinator, Reaction
from emulator.queue import EventQueue, VirtualClock
from emulator.storage.runlog import RoundRecord
from emulator.storage.state_tree import Tree

Observer = Callable[[RoundRecord], None]


class Log(Protocol):
    """Receives the record of each round, and its visits where they are logged."""

    def append(self, record: RoundRecord) -> None: ...

    def append_visits(self, rows: VisitRows) -> None: ...


class Emulation:
    """Runs one emulation from start to end.

    Observers are called with each record after it was logged. Progress bars and trackers are observers, never
    branches of this loop.
    """

    def __init__(self, coordinator: Coordinator, log: Log, observers: tuple[Observer, ...] = ()) -> None:
        self.coordinator = coordinator
        self.clock = VirtualClock()
        self.queue = EventQueue()
        self.in_flight = InFlight()
        self._log = log
        self._observers = observers
        self._started = False

    def run(self) -> None:
        """Run until the coordinator has finished; RunError if no event or visit is left before that."""
        for _ in self.steps():
            pass

    def steps(self) -> Iterator[None]:
        """Iterate over the steps of `run`: between two of them the run can be stored or abandoned.

        RunError if no event or visit is left before the coordinator has finished.
        """
        if not self._started:
            self._take(self.coordinator.start())
            self._started = True
            yield
        while not self.coordinator.finished:
            # Step 1: visits that end before the next event or at the same instant.
            ends = self.in_flight.first(self.queue.next_s)
            if ends.time_s.size:
                count, reaction = self.coordinator.visits_ended(ends)
                self.in_flight.pop(count)
                self.clock.advance_to(float(ends.time_s[count - 1]))
                self._take(reaction)
            # Step 2: if there are none, the next event.
            elif self.queue:
                time_s, event = self.queue.pop()
                self.clock.advance_to(time_s)
                self._take(self.coordinator.handle(event, self.clock.now_s))
            else:
                now_s = self.clock.now_s
                raise RunError(f"no event is left at {now_s:.0f} s and the run is not finished")
            yield

    def state(self) -> Tree:
        """Everything the rest of the run depends on, except its configuration, its world and its log."""
        return {
            "now_s": self.clock.now_s,
            "started": self._started,
            "queue": self.queue.state(),
            "in_flight": self.in_flight.state(),
            "coordinator": self.coordinator.state(),
        }

    def restore(self, state: Tree) -> None:
        """Resume from `state`, taken from a run of the same configuration in the same world.

        ValueError, KeyError or TypeError if `state` is not such a state.
        """
        self.clock.advance_to(state["now_s"])
        self._started = state["started"]
        self.queue.restore(state["queue"])
        self.in_flight = InFlight.from_state(state["in_flight"])
        self.coordinator.restore(state["coordinator"])

    def _take(self, reaction: Reaction) -> None:
        for time_s, event in reaction.events:
            self.queue.push(time_s, event)
        self.in_flight.push(reaction.visits)
        for ended in reaction.ended:
            self._log.append_visits(ended)
        if reaction.record is not None:
            self._log.append(reaction.record)
            for observe in self._observers:
                observe(reaction.record)
