"""The completed visits of each client, of rounds of ten seconds, and how they are spread."""

import numpy as np
import pytest

from emulator.errors import InputError
from experiments.results.reading.run_directory import ReportedRun
from experiments.results.statistics.clients.participation import (
    completed_visits,
    effective_number,
    share_of_busiest_tenth,
)
from experiments.results.statistics.comparisons import let_go
from experiments.results.tables.participation import NOTE
from tests.experiments.synthetic_runs import TIMING, a_record


def a_run(completed, **changes):
    """A run of four clients that completed these visits, round by round."""
    records = [a_record(number, completed=ids, **changes) for number, ids in enumerate(completed)]
    return ReportedRun("global", 3, {}, records, TIMING)


def test_visits_count_from_the_end_of_their_round_and_a_client_may_have_several_in_one():
    found = completed_visits(a_run([[0, 2], [], [2, 2, 3]]))
    by_horizon = {0.0: [0, 0, 0, 0], 10.0: [1, 0, 1, 0], 29.9: [1, 0, 1, 0], 30.0: [1, 0, 3, 1]}
    assert {horizon_s: found.by_client(horizon_s).tolist() for horizon_s in by_horizon} == by_horizon


def test_they_stay_known_of_a_log_that_was_let_go():
    run = a_run([[0, 2], [1]])
    known = completed_visits(run)
    assert completed_visits(let_go(run)) is known


def test_of_a_log_that_does_not_tell_its_clients_no_visits_are_known():
    found = completed_visits(a_run([[0, 7]], members=None))
    assert found.by_client(10.0).tolist() == []


@pytest.mark.parametrize("client", [4, -1])
def test_a_visit_of_a_client_that_the_run_does_not_have_is_refused(client):
    wrong = f"'global', seed 3: its log is damaged, client {client} is not one of the 4"
    with pytest.raises(InputError, match=wrong):
        completed_visits(a_run([[0], [1, client]]))


def test_the_busiest_tenth_of_eleven_clients_is_the_busiest_two():
    assert share_of_busiest_tenth(np.array([5, *[1] * 10])) == 6 / 15


def test_of_visits_drawn_by_lot_the_effective_number_is_as_the_note_says():
    clients, each = 1000, 3
    drawn = np.random.default_rng(7).integers(0, clients, clients * each)
    assert effective_number(np.bincount(drawn, minlength=clients)) == pytest.approx(1000 * 3 / 4, rel=0.02)
    assert "it is about N v / (v + 1)" in NOTE
