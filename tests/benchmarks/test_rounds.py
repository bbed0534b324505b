from __future__ import annotations

import numpy as np
import pytest

from benchmarks.population import SEED, Population
from benchmarks.rivals.rounds_by_scan import ScannedRounds, registry
from benchmarks.rivals.rounds_by_simpy import SimpyRounds, play_visits
from benchmarks.rounds import (
    RoundSizes,
    fleet_size_figures,
    half_tried,
    oort_figures,
    play,
    round_figures,
    short,
)
from emulator.seeding import RandomStreams
from traces.availability.diurnal import Diurnal, DiurnalSettings

CLIENTS = 400
SIZES = RoundSizes(participants=10, rounds=6)


def ignore(text: str) -> None:
    pass


@pytest.fixture(scope="module")
def population() -> Population:
    return Population.of(CLIENTS)


def test_simpy_completes_the_clients_that_we_complete_and_ends_when_we_end(population: Population) -> None:
    times = play(population, SIZES)
    assert len(times.records) == SIZES.rounds + 2
    closed_together = 0
    for record in times.records:
        clients = np.array(record.participants)
        assert len(clients) == SIZES.wanted
        # The instant executor has one parameter, of 4 bytes.
        due_s = record.dispatched_s + population.visit_s(clients, bytes_each_way=4.0)
        offline_s = population.availability.next_offline_s(clients, record.dispatched_s)
        closed = play_visits(clients, due_s, offline_s, SIZES.participants, record.dispatched_s)
        assert sorted(closed.completed) == sorted(record.completed)
        assert closed.end_s == pytest.approx(record.closed_s)
        closed_together += len(closed.completed) == SIZES.participants
    assert closed_together > 0


def test_a_round_of_simpy_ends_with_its_last_visit_when_too_many_drop_out() -> None:
    clients = np.array([3, 5, 8])
    closed = play_visits(clients, np.array([14.0, 12.0, 16.0]), np.array([99.0, 11.0, 99.0]), 3, 10.0)
    assert closed.completed == [3, 8]
    assert closed.end_s == 16.0


def test_simpy_draws_clients_that_are_online_and_advances_from_round_to_round(population: Population) -> None:
    rounds = SimpyRounds(population, SIZES.participants, SIZES.wanted)
    first, second = rounds.play_round(), rounds.play_round()
    assert len(set(first.completed)) == len(first.completed) <= SIZES.participants
    assert population.availability.online(np.array(first.completed), 0.0).all()
    assert 0 < first.end_s < second.end_s


@pytest.mark.parametrize("time_s", [0.0, 3600.0, 50_000.0, 86_399.0, 300_000.0, 2_000_000.0])
def test_an_object_knows_when_its_device_is_online(population: Population, time_s: float) -> None:
    ours = population.availability.online(np.arange(CLIENTS), time_s)
    assert [client.is_online(time_s) for client in registry(population)] == ours.tolist()


def test_an_object_knows_how_long_its_visit_takes(population: Population) -> None:
    theirs = [client.visit_s() for client in registry(population)]
    np.testing.assert_allclose(theirs, population.visit_s(np.arange(CLIENTS)))


def test_a_scanned_round_completes_the_first_clients_to_return(population: Population) -> None:
    scanned = ScannedRounds(population, 3, 5)
    completed = scanned.play_round()
    back_s = population.visit_s(np.array(completed))
    assert (np.diff(back_s) >= 0).all()
    assert scanned.now_s == pytest.approx(back_s[-1])


def test_the_population_is_that_of_a_run() -> None:
    phones = Population.of(50)
    run = Diurnal(DiurnalSettings()).build(50, RandomStreams(SEED).generator("availability"), locate=None)  # type: ignore[arg-type]
    assert (phones.availability.device_of == run.device_of).all()
    everyone = np.arange(50)
    assert (phones.availability.next_online_s(everyone, 5e4) == run.next_online_s(everyone, 5e4)).all()


@pytest.mark.slow
def test_a_round_has_a_figure_against_each_reference() -> None:
    against_simpy, against_objects = round_figures(CLIENTS, 2, ignore, SIZES)
    assert (against_simpy.name, against_objects.name) == ("e1-round", "e1-round-against-objects")
    assert against_simpy.value == against_objects.value
    assert against_simpy.unit == "ms"


def test_fleet_sizes_lie_on_two_curves_and_the_smallest_is_their_reference() -> None:
    figures = fleet_size_figures((200, 400), 2, ignore, SIZES)
    assert [(item.name, item.curve, item.size) for item in figures] == [
        ("e1-round-200", "round", 200),
        ("e1-round-400", "round", 400),
        ("e1-selection-200", "selection", 200),
        ("e1-selection-400", "selection", 400),
    ]
    assert [item.ratio == 1 for item in figures] == [True, False, True, False]
    assert figures[2].value < figures[0].value


def test_oort_selects_among_tried_and_untried_clients(population: Population) -> None:
    oort = half_tried(population)
    tried = oort.state()["_last_round"].copy()
    records = play(population, SIZES, oort).records
    assert set(tried[records[0].participants].tolist()) == {0, 1}
    (selection,) = oort_figures(CLIENTS, 2, ignore, SIZES)
    assert (selection.name, selection.unit) == ("oort-selection", "ms")


def test_sizes_in_names_are_short() -> None:
    assert [short(size) for size in (10_000, 100_000, 1_000_000, 1_500, 50)] == [
        "10k",
        "100k",
        "1m",
        "1500",
        "50",
    ]
