from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from emulator.emulation import Emulation
from emulator.errors import RunError
from emulator.events import DispatchDue, Event, RoundDeadline, RoundOpened
from emulator.in_flight import VisitEnds
from emulator.messages import COMPLETED
from emulator.ports import Reaction
from emulator.storage.runlog import RoundRecord
from tests.emulator.storage.test_runlog import RECORD


@dataclass
class FakeCoordinator:
    """Reacts to each event by the script, finishes after the event `last`, and records events in `story`."""

    opening: Reaction
    script: dict[Event, Reaction]
    last: Event
    story: list[str]
    finished: bool = False
    takes: int = 1_000_000
    reaction: Reaction = field(default_factory=Reaction)

    def start(self) -> Reaction:
        self.story.append("start")
        return self.opening

    def handle(self, event: Event, now_s: float) -> Reaction:
        self.story.append(f"{now_s:g} {type(event).__name__}")
        self.finished = event == self.last
        return self.script.get(event, Reaction())

    def visits_ended(self, ends: VisitEnds) -> tuple[int, Reaction]:
        """Process at most `takes` ends; the reaction is returned by the first call only."""
        count = min(self.takes, len(ends))
        taken = ends.part(0, count)
        for time_s, visit in zip(taken.time_s, taken.visit, strict=True):
            self.story.append(f"{time_s:g} visit {visit}")
        reaction, self.reaction = self.reaction, Reaction()
        return count, reaction


@dataclass
class FakeLog:
    story: list[str] = field(default_factory=list)

    def append_visits(self, rows: object) -> None: ...

    def append(self, record: RoundRecord) -> None:
        self.story.append(f"logged {record.round}")


def observer(name: str, story: list[str]) -> Callable[[RoundRecord], None]:
    return lambda record: story.append(f"{name} saw {record.round}")


def test_the_earliest_event_moves_the_clock_and_a_record_is_logged_before_it_is_observed() -> None:
    story: list[str] = []
    opened, due, deadline = RoundOpened(0), DispatchDue(0), RoundDeadline(0)
    coordinator = FakeCoordinator(
        opening=Reaction([(0.0, opened)]),
        script={
            opened: Reaction([(9.0, deadline), (4.0, due)]),
            due: Reaction(record=replace(RECORD, round=0)),
            deadline: Reaction([(11.0, opened)], record=replace(RECORD, round=1)),
        },
        last=deadline,
        story=story,
    )
    emulation = Emulation(coordinator, FakeLog(story), (observer("a", story), observer("b", story)))
    emulation.run()
    assert story == [
        "start",
        "0 RoundOpened",
        "4 DispatchDue",
        "logged 0",
        "a saw 0",
        "b saw 0",
        "9 RoundDeadline",
        "logged 1",
        "a saw 1",
        "b saw 1",
    ]
    assert emulation.clock.now_s == 9.0
    assert len(emulation.queue) == 1  # events after the end are not processed


def visits(*rows: tuple[float, int]) -> VisitEnds:
    """Ends of visits from rows (time_s, visit)."""
    time_s, visit = zip(*rows, strict=True)
    return VisitEnds(
        np.array(time_s), np.zeros(len(rows), np.int64), np.array(visit), np.full(len(rows), COMPLETED)
    )


def test_events_of_one_instant_are_played_in_their_order_whatever_the_reaction_listed_first() -> None:
    story: list[str] = []
    opened, due, deadline = RoundOpened(1), DispatchDue(1), RoundDeadline(0)
    opening = Reaction([(5.0, due), (5.0, opened), (5.0, deadline)])
    Emulation(FakeCoordinator(opening, {}, due, story), FakeLog()).run()
    assert story == ["start", "5 RoundDeadline", "5 RoundOpened", "5 DispatchDue"]


def test_visits_end_before_an_event_of_the_same_instant_and_after_an_earlier_one() -> None:
    story: list[str] = []
    opening = Reaction([(5.0, RoundDeadline(0)), (8.0, RoundOpened(1))], visits((6.0, 2), (4.0, 0), (5.0, 1)))
    emulation = Emulation(FakeCoordinator(opening, {}, RoundOpened(1), story), FakeLog())
    emulation.run()
    assert story == [
        "start",
        "4 visit 0",
        "5 visit 1",
        "5 RoundDeadline",
        "6 visit 2",
        "8 RoundOpened",
    ]
    assert len(emulation.in_flight) == 0


def test_visits_that_were_not_taken_come_again_with_what_was_sent_out_in_between() -> None:
    story: list[str] = []
    opening = Reaction([(9.0, RoundOpened(1))], visits((4.0, 0), (6.0, 1)))
    coordinator = FakeCoordinator(opening, {}, RoundOpened(1), story, takes=1)
    coordinator.reaction = Reaction([(4.5, RoundDeadline(0))], visits((5.0, 2)))
    Emulation(coordinator, FakeLog()).run()
    assert story == [
        "start",
        "4 visit 0",
        "4.5 RoundDeadline",
        "5 visit 2",
        "6 visit 1",
        "9 RoundOpened",
    ]


def test_the_clock_stands_at_the_last_visit_that_was_taken() -> None:
    opening = Reaction(visits=visits((4.0, 0), (6.0, 1), (7.0, 2)))
    coordinator = FakeCoordinator(opening, {}, RoundOpened(1), [], takes=2)
    emulation = Emulation(coordinator, FakeLog())
    with pytest.raises(RunError, match="no event is left at 7 s"):
        emulation.run()
    assert coordinator.story == ["start", "4 visit 0", "6 visit 1", "7 visit 2"]


def test_a_coordinator_that_is_finished_at_the_start_plays_nothing() -> None:
    story: list[str] = []
    coordinator = FakeCoordinator(Reaction([(1.0, RoundOpened(0))]), {}, RoundOpened(0), story, finished=True)
    Emulation(coordinator, FakeLog()).run()
    assert story == ["start"]


def test_a_run_with_nothing_left_to_happen_ends_with_an_error_that_says_when() -> None:
    log = FakeLog()
    coordinator = FakeCoordinator(
        opening=Reaction([(90.0, RoundOpened(0))], record=replace(RECORD, round=0)),
        script={},
        last=RoundOpened(7),
        story=[],
    )
    with pytest.raises(RunError, match="no event is left at 90 s"):
        Emulation(coordinator, log).run()
    assert log.story == ["logged 0"]


def test_an_event_in_the_past_is_refused() -> None:
    opened = RoundOpened(0)
    coordinator = FakeCoordinator(
        opening=Reaction([(5.0, opened)]),
        script={opened: Reaction([(4.0, RoundDeadline(0))])},
        last=RoundOpened(7),
        story=[],
    )
    with pytest.raises(ValueError, match=r"not before now \(5.0\)"):
        Emulation(coordinator, FakeLog()).run()
