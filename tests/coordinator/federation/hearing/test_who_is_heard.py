"""Who reports, when, and who is waited for: settings of `round.hear`, and clusterers that follow cohorts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from coordinator.candidates import Candidates
from coordinator.clusterers.fielding import Fielding, FieldingSettings
from coordinator.clusterers.single import Single
from coordinator.population import Hear
from coordinator.selectors import Selector
from coordinator.view import View
from emulator.arrays import Ints
from emulator.emulation import Emulation
from emulator.plugins import NoSettings
from emulator.storage.runlog import RoundRecord
from emulator.storage.state_tree import from_bytes, to_bytes
from tests.fakes import (
    NOTHING,
    FakeAvailability,
    FakeClusterer,
    FakeExecutor,
    FakeStream,
    MemoryLog,
    Population,
    a_fleet,
    fresh,
    ints,
    one_hot,
)

INF = math.inf

OFTEN_AWAY = FakeAvailability(
    {
        1: [(0.0, 5.0), (20.0, 22.0)],
        2: [(0.0, 5.0), (24.0, INF)],
        3: [(0.0, 5.0), (11.0, INF)],
        4: [(0.0, 5.0)],
    }
)
"""Client 0 is always online, 1 only between two openings of rounds, and 4 never again."""


def five(hear: Hear) -> Population:
    """Five clients that drift in round 1; client 3 drifts back in round 2. Client 0 alone has samples.

    A report is 8 bytes and takes 8 s; 2 s of client 3, and 64 s of client 4. A visit takes 9 s.
    """
    labels = [[0, 0, 0, 0, 0], [1, 1, 1, 1, 1], [1, 1, 1, 0, 1], [1, 1, 1, 0, 1]]
    return Population(
        FakeExecutor([1.0] * 5),
        stream=FakeStream([one_hot(*row, of=2) for row in labels], train=[1, 0, 0, 0, 0]),
        availability=OFTEN_AWAY,
        fleet=a_fleet(5, upload_bytes_per_s=[1.0, 1.0, 1.0, 4.0, 0.125]),
        clusterer=FakeClusterer({0: fresh([0] * 5)}, reports=True),
        participants=1,
        rounds=4,
        hear=hear,
    )


def played(population: Population) -> tuple[list[RoundRecord], list[View]]:
    assert isinstance(population.clusterer, FakeClusterer)
    return population.play().records, population.clusterer.views


def drifted(views: list[View]) -> list[list[int]]:
    return [view.drifted.tolist() for view in views]


def seconds_label(view: View) -> list[float]:
    """The share of the second label in each client's last report."""
    shares: list[float] = view.reports[:, 1].tolist()
    return shares


def test_online_clients_alone_are_heard_by_default() -> None:
    records, views = played(five("online"))
    assert [record.opened_s for record in records] == [0, 9, 26, 43]
    # Client 2 is back at 26 s; 3 as well, but it has drifted back; client 1 came and went unheard.
    assert drifted(views) == [[0, 1, 2, 3, 4], [0], [2], []]
    assert [view.changed.tolist() for view in views[1:]] == [[0], [2, 3], []]
    assert [record.control_bytes for record in records] == [40, 48, 56, 56]
    assert [record.dispatched_s - record.opened_s for record in records] == [0, 8, 8, 0]


def test_everyone_is_heard_and_charged_and_only_those_online_are_waited_for() -> None:
    records, views = played(five("everyone"))
    assert [record.opened_s for record in records] == [0, 9, 26, 37]
    assert drifted(views) == [[0, 1, 2, 3, 4], [0, 1, 2, 3, 4], [3], []]
    assert [seconds_label(view) for view in views[1:]] == [[1] * 5, [1, 1, 1, 0, 1], [1, 1, 1, 0, 1]]
    assert [(record.changed, record.reported) for record in records] == [(5, 5), (5, 5), (1, 1), (0, 0)]
    assert [record.control_bytes for record in records] == [40, 80, 88, 88]
    # At 9 s client 0 alone is online, and reports for 8 s; at 26 s client 3, for 2 s.
    assert [record.dispatched_s - record.opened_s for record in records] == [0, 8, 2, 0]


def test_an_offline_client_that_drifted_is_not_waited_for_beside_an_online_one_that_did_not() -> None:
    population = Population(
        FakeExecutor([1.0, 1.0]),
        stream=FakeStream([one_hot(0, 0, of=2), one_hot(0, 1, of=2)], touched=[[0, 0], [1, 1]]),
        availability=FakeAvailability({1: [(-INF, 9.0)]}),
        clusterer=FakeClusterer({0: fresh([0, 0])}, reports=True),
        rounds=2,
        hear="everyone",
    )
    second = population.play().records[1]
    assert (second.changed, second.reported, second.control_bytes) == (2, 1, 24)
    assert second.dispatched_s == second.opened_s


def test_clients_check_in_between_rounds_with_the_data_they_held_then() -> None:
    records, views = played(five("check_in"))
    assert [record.opened_s for record in records] == [0, 9, 26, 41]
    # Clients 1, 2 and 3 checked in at 20, 24 and 11 s, with the second label; at 26 s client 3 has the first
    # one again, and reports that too. Client 4 is never online again.
    assert drifted(views) == [[0, 1, 2, 3, 4], [0], [1, 2, 3], []]
    assert views[2].changed.tolist() == [1, 2, 3]
    assert seconds_label(views[2]) == [1, 1, 1, 0, 0]
    assert [(record.changed, record.reported) for record in records] == [(5, 5), (1, 1), (4, 4), (0, 0)]
    assert [record.control_bytes for record in records] == [40, 48, 80, 80]
    # At 26 s client 1 needs 2 s more for its report, client 2 needs 6, and client 3 needs 2 for its second.
    assert [record.dispatched_s - record.opened_s for record in records] == [0, 8, 6, 0]


def test_a_client_that_still_sends_what_it_checked_in_with_sends_newer_data_after_it() -> None:
    population = five("check_in")
    # Client 3 is back at 25 s, and needs 8 s for each report: at 26 s, 7 + 8 s are left.
    population.fleet = a_fleet(5)
    population.availability = FakeAvailability({**OFTEN_AWAY.intervals, 3: [(0.0, 5.0), (25.0, INF)]})
    records, _ = played(population)
    assert records[2].reported == 4
    assert records[2].dispatched_s - records[2].opened_s == 15


def test_a_client_that_comes_online_as_a_round_opens_reports_the_data_of_that_round() -> None:
    population = five("check_in")
    population.availability = FakeAvailability({**OFTEN_AWAY.intervals, 3: [(0.0, 5.0), (26.0, INF)]})
    records, views = played(population)
    assert drifted(views)[2] == [1, 2]
    assert (records[2].changed, records[2].reported) == (3, 2)


def waiting(hear: Hear) -> Population:
    """Three clients that drift in round 1, which needs all three; it waits for 1 and 2, offline at 9 s."""
    return Population(
        FakeExecutor([1.0] * 3),
        stream=FakeStream([one_hot(*[step] * 3, of=2) for step in (0, 1)]),
        availability=FakeAvailability(
            {1: [(0.0, 9.0), (30.0, 40.0), (60.0, INF)], 2: [(0.0, 9.0), (50.0, INF)]}
        ),
        clusterer=FakeClusterer({0: fresh([0] * 3)}, reports=True),
        min_online=3,
        rounds=2,
        hear=hear,
    )


def test_clients_check_in_while_a_round_waits() -> None:
    # The round is opened at 9 s, again at 50 s, when client 1 is offline again, and at 60 s.
    records, views = played(waiting("online"))
    assert drifted(views)[1:] == [[0], [2], [1]]
    assert records[1].dispatched_s == 68
    # Client 1 checks in at 30 s.
    records, views = played(waiting("check_in"))
    assert drifted(views)[1:] == [[0], [1, 2], []]
    assert (records[1].dispatched_s, records[1].control_bytes) == (60, 48)


@pytest.mark.parametrize("hear", ["online", "everyone", "check_in"])
def test_a_clusterer_without_reports_sees_only_clients_that_can_respond_to_it(hear: Hear) -> None:
    population = five(hear)
    population.clusterer = FakeClusterer({0: fresh([0] * 5)})
    records, views = played(population)
    assert [record.opened_s for record in records] == [0, 9, 18, 27]
    assert [view.changed.tolist() for view in views[1:]] == [[0], [3], [2]]


# -- following cohorts -----------------------------------------------------------------------------------


class ByScript(Selector):
    """Selects the given clients in each round."""

    Settings = NoSettings

    def __init__(self, *cohorts: list[int]) -> None:
        self.cohorts = cohorts

    def select(self, candidates: Candidates, wanted: Ints, view: View) -> Ints:
        return ints(*self.cohorts[view.round])


class Following(FakeClusterer):
    """A clusterer that follows the participants."""

    @property
    def follows_participants(self) -> bool:
        return True


def alternating(steps: int) -> FakeStream:
    """The stream of four clients whose label alternates."""
    return FakeStream([one_hot(*[step % 2] * 4, of=2) for step in range(steps)])


def following(**changes: object) -> Population:
    """Four clients whose label alternates. Client 1 drops out of the first round, and reports in 8 s."""
    settings = {
        "availability": FakeAvailability({1: [(-INF, 5.0), (6.0, INF)]}),
        "clusterer": Following({0: fresh([0] * 4)}, reports=True),
        "stream": alternating(4),
        **changes,
    }
    return Population(
        FakeExecutor([1.0] * 4),
        selector=ByScript([0, 1], [2, 3], [1, 2], [0]),
        participants=2,
        rounds=4,
        **settings,  # type: ignore[arg-type]
    )


def test_only_clients_whose_update_arrived_in_the_last_round_are_followed() -> None:
    records, views = played(following())
    assert [record.completed for record in records] == [[0], [2, 3], [1, 2], [0]]
    assert [view.changed.tolist() for view in views] == [[0, 1, 2, 3], [0], [2, 3], [1, 2]]
    # In round 2 the label is that of the registration: 2 and 3 have nothing to report. In round 3 client 1 is
    # followed for the first time.
    assert drifted(views) == [[0, 1, 2, 3], [0], [], [1, 2]]
    assert seconds_label(views[3]) == [1, 1, 1, 0]
    assert [record.control_bytes for record in records] == [32, 40, 40, 56]


def test_a_participant_that_is_offline_keeps_its_news_until_it_takes_part_again() -> None:
    # Client 2 is offline at the opening of round 2, from 25 to 30 s, and reports in round 3, after round 2.
    away = FakeAvailability({2: [(-INF, 26.0), (30.0, INF)]})
    records, views = played(following(availability=away))
    assert records[2].opened_s == 26
    assert [view.changed.tolist() for view in views[1:3]] == [[0, 1], [3]]
    assert 2 in views[3].changed


def test_a_participant_that_is_offline_checks_in_unless_another_round_has_opened_without_it() -> None:
    def checked(until_s: float) -> list[list[int]]:
        away = FakeAvailability({2: [(-INF, 26.0), (until_s, INF)]})
        population = following(availability=away, hear="check_in", stream=alternating(3))
        population.selector, population.rounds = ByScript([0, 1], [2, 3], [0, 1], [0, 1], [0, 1]), 5
        return [view.changed.tolist() for view in played(population)[1]]

    # Round 2 opens at 26 s, with the last arrivals, round 3 at 35 s; client 2 takes part in round 1 alone.
    assert checked(until_s=30.0)[2:] == [[3], [0, 1, 2], []]
    assert checked(until_s=36.0)[2:] == [[3], [0, 1], []]


def test_everyone_of_the_last_cohort_is_heard_if_everyone_is() -> None:
    away = FakeAvailability({2: [(-INF, 26.0), (30.0, INF)]})
    _, views = played(following(availability=away, hear="everyone"))
    assert views[2].changed.tolist() == [2, 3]


def test_a_global_clustering_is_of_the_last_report_of_every_client() -> None:
    # All four turn to the other label in round 1, and only client 0, the first cohort, is followed.
    clusterer = Fielding(FieldingSettings(trigger={"threshold": 0}, follow="participants", max_clusters=2))
    population = Population(
        FakeExecutor([1.0] * 4),
        stream=FakeStream([one_hot(0, 0, 1, 1, of=2), one_hot(1, 1, 0, 0, of=2)]),
        clusterer=clusterer,
        selector=ByScript([0], [0]),
        participants=1,
        rounds=2,
    )
    second = population.play().records[1]
    assert (second.changed, second.reported, second.reclustered) == (1, 1, True)
    members = second.members
    assert members is not None
    assert members[0] == members[2] == members[3] != members[1]


def test_all_clients_are_followed_unless_the_clusterer_says_otherwise() -> None:
    assert not Single(NOTHING).follows_participants
    assert not Fielding(FieldingSettings()).follows_participants
    assert Fielding(FieldingSettings(follow="participants")).follows_participants


# -- resuming --------------------------------------------------------------------------------------------


class Reporting(Single):
    """One cluster of clients that report; it follows the participants, if `follows` is true."""

    def __init__(self, follows: bool) -> None:
        super().__init__(NOTHING)
        self.follows = follows

    @property
    def needs_reports(self) -> bool:
        return True

    @property
    def watches_data(self) -> bool:
        return True

    @property
    def follows_participants(self) -> bool:
        return self.follows


STORIES: dict[str, Callable[[], Population]] = {
    "online": lambda: replace(five("online"), clusterer=Reporting(False)),
    "everyone": lambda: replace(five("everyone"), clusterer=Reporting(False)),
    "check_in": lambda: replace(five("check_in"), clusterer=Reporting(False)),
    "check_in while waiting": lambda: replace(waiting("check_in"), clusterer=Reporting(False)),
    "participants": lambda: following(clusterer=Reporting(True)),
}


@pytest.mark.slow
@pytest.mark.parametrize("make", STORIES.values(), ids=STORIES)
def test_a_run_stored_after_any_step_and_resumed_is_the_run_that_was_never_stopped(
    make: Callable[[], Population],
) -> None:
    whole = MemoryLog()
    emulation = Emulation(make().coordinator(), whole)
    stored = [(to_bytes(emulation.state()), len(whole.records)) for _ in emulation.steps()]
    assert len(stored) > 8
    for content, rounds in stored:
        log = MemoryLog()
        resumed = Emulation(make().coordinator(), log)
        resumed.restore(from_bytes(content))
        assert to_bytes(resumed.state()) == content
        resumed.run()
        assert log.records == whole.records[rounds:]
