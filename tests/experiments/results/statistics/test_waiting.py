import numpy as np
import pyarrow as pa
import pytest

from emulator.errors import InputError
from experiments.results.statistics.clients.visits import VisitColumns, cut_phases
from experiments.results.statistics.closers import closers, most_often
from experiments.results.statistics.waiting import BETWEEN, COMPONENTS, NOBODY, waiting
from tests.experiments.synthetic_runs import a_record


def a_visit(round_, visit, *, end_s, phases=(0.0, 1.0, 2.0, 3.0), outcome="completed", **changes):
    """A visit of client `visit`, dispatched at 1 s."""
    planned = dict(zip(("requests_s", "download_s", "compute_s", "upload_s"), phases, strict=True))
    row = {"round": round_, "visit": visit, "client": visit, "device": None, "lane": 0, "models": [0]}
    row |= {"dispatched_s": 1.0, **planned, "end_s": end_s, "outcome": outcome, "crashed": False}
    return {**row, **changes}


def visits_of(*rows):
    return VisitColumns.from_table(pa.Table.from_pylist(list(rows)))


def a_round(number, participants, *, opened_s=0.0, dispatched_s=1.0, closed_s):
    return a_record(
        number,
        participants=list(range(participants)),
        opened_s=opened_s,
        dispatched_s=dispatched_s,
        closed_s=closed_s,
    )


def of_one_round(closed_s, *rows):
    waited = waiting([a_round(0, len(rows), closed_s=closed_s)], visits_of(*rows))
    assert waited.seconds.sum() == pytest.approx(closed_s, rel=1e-15)
    split = dict(zip(COMPONENTS, waited.seconds[0].tolist(), strict=True))
    return {name: seconds for name, seconds in split.items() if seconds}, waited.closing[0]


def test_whole_numbers_are_exact_beside_visits_without_a_device():
    largest = 2**63 - 1  # no float has this value
    visits = visits_of(a_visit(0, largest, end_s=7.0, device=largest), a_visit(0, 1, end_s=7.0))
    assert (visits.client.tolist(), visits.device.tolist()) == ([largest, 1], [largest, -1])


def test_a_round_waits_for_the_phases_of_the_last_participant_that_completed():
    split, closing = of_one_round(
        12.0, a_visit(0, 0, end_s=7.0), a_visit(0, 1, end_s=12.0, phases=(1.0, 2.0, 5.0, 3.0))
    )
    assert split == {"before dispatch": 1, "requests": 1, "download": 2, "compute": 5, "upload": 3}
    assert closing == 1


def test_an_abandoned_visit_does_not_close_the_round_that_ends_it():
    split, closing = of_one_round(
        7.0,
        a_visit(0, 0, end_s=7.0, phases=(9.0, 9.0, 9.0, 9.0), outcome="abandoned"),
        a_visit(0, 1, end_s=7.0),
    )
    assert split == {"before dispatch": 1, "download": 1, "compute": 2, "upload": 3}
    assert closing == 1


def test_a_drop_out_after_the_last_participant_has_returned_closes_the_round():
    split, closing = of_one_round(9.0, a_visit(0, 0, end_s=7.0), a_visit(0, 1, end_s=9.0, outcome="dropped"))
    assert split == {"before dispatch": 1, "drop-out": 8}
    assert closing == 1


def test_of_visits_that_end_with_the_round_a_completed_one_closes_it_and_then_the_lowest():
    ends = [a_visit(0, 0, end_s=7.0, outcome="dropped"), a_visit(0, 1, end_s=7.0), a_visit(0, 2, end_s=7.0)]
    assert of_one_round(7.0, *ends)[1] == 1


def test_a_round_that_ends_with_no_visit_waited_for_its_deadline():
    split, closing = of_one_round(
        21.0, a_visit(0, 0, end_s=7.0), a_visit(0, 1, end_s=21.0, outcome="abandoned")
    )
    assert split == {"before dispatch": 1, "deadline": 20}
    assert closing == NOBODY


def test_a_client_that_drops_out_at_the_deadline_does_not_close_the_round():
    ends = [a_visit(0, 0, end_s=21.0, outcome="dropped"), a_visit(0, 1, end_s=21.0, outcome="abandoned")]
    assert of_one_round(21.0, *ends) == ({"before dispatch": 1, "deadline": 20}, NOBODY)


def test_no_visit_closes_a_round_of_fixed_duration():
    visits = visits_of(a_visit(0, 0, end_s=7.0))
    waited = waiting([a_round(0, 1, closed_s=7.0)], visits, is_fixed=True)
    assert (waited.totals_s["deadline"], waited.totals_s["upload"], waited.closing[0]) == (6, 0, NOBODY)


def test_a_round_of_which_every_visit_is_abandoned_waited_for_its_deadline():
    abandoned = [a_visit(0, visit, end_s=5.0, outcome="abandoned") for visit in range(2)]
    assert of_one_round(5.0, *abandoned) == ({"before dispatch": 1, "deadline": 4}, NOBODY)


def test_without_visits_only_the_dispatch_splits_a_round():
    waited = waiting([a_round(0, 2, closed_s=7.0)], None)
    assert {name: waited.totals_s[name] for name in ("before dispatch", "visits", "upload")} == {
        "before dispatch": 1,
        "visits": 6,
        "upload": 0,
    }


def test_lengths_and_the_time_between_rounds_add_up_to_the_time_of_the_run():
    records = [
        a_round(0, 1, closed_s=7.0),
        a_round(1, 1, opened_s=9.5, dispatched_s=10.0, closed_s=16.0),
        a_round(2, 1, opened_s=16.0, dispatched_s=16.0, closed_s=18.5),
    ]
    rows = [
        a_visit(0, 0, end_s=7.0),
        a_visit(1, 1, end_s=16.0, dispatched_s=10.0),
        a_visit(2, 2, end_s=18.5, dispatched_s=16.0, outcome="dropped"),
    ]
    waited = waiting(records, visits_of(*rows))
    assert waited.between_s.tolist() == [2.5, 0.0, 0.0]
    assert waited.seconds.sum(axis=1).tolist() == [7.0, 6.5, 2.5]
    assert sum(waited.totals_s.values()) == 18.5
    assert waited.totals_s[BETWEEN] == 2.5


def test_rounding_of_the_ends_of_visits_is_left_to_the_upload():
    phases = (0.1, 0.2, 0.3, 0.7)
    end_s = 0.1 + (0.1 + ((0.2 + 0.3) + 0.7))
    record = a_round(0, 1, dispatched_s=0.1, closed_s=end_s)
    waited = waiting([record], visits_of(a_visit(0, 0, dispatched_s=0.1, end_s=end_s, phases=phases)))
    assert waited.seconds.sum() == pytest.approx(end_s, rel=1e-15)
    assert waited.totals_s["upload"] == pytest.approx(0.7, rel=1e-14)


def test_a_round_whose_visits_are_missing_is_refused():
    with pytest.raises(InputError, match=r"^round 0: 1 visits are recorded, and the log has 2 participants$"):
        waiting([a_round(0, 2, closed_s=7.0)], visits_of(a_visit(0, 0, end_s=7.0)))


def test_phases_are_cut_at_the_end_of_a_visit():
    visits = visits_of(
        a_visit(0, 0, end_s=7.0),
        a_visit(0, 1, end_s=3.5, outcome="dropped"),
        a_visit(0, 2, end_s=1.0, outcome="dropped"),
    )
    assert cut_phases(visits).tolist() == [[0, 1, 2, 3], [0, 1, 1.5, 0], [0, 0, 0, 0]]


def test_clients_that_closed_rounds_are_counted_with_their_slowness():
    records = [a_round(number, 1, closed_s=7.0) for number in range(3)]
    rows = [a_visit(number, number, end_s=7.0, client=client) for number, client in enumerate([2, 0, 2])]
    visits = visits_of(*rows)
    speeds = {"seconds_per_sample": [1.0, 2.0, 8.0], "download_bytes_per_s": [10.0, 5.0, 1.0]}
    clients = pa.table({**speeds, "upload_bytes_per_s": [2.0, 2.0, 2.0]})
    twice, once = closers(5, waiting(records, visits), visits, clients)
    assert (twice.seed, twice.client, twice.rounds, twice.share, twice.waited_s) == (5, 2, 2, 2 / 3, 12)
    assert twice.slowness == [4, 5, 1]
    assert (once.client, once.slowness[0]) == (0, 0.5)
    assert most_often([once, twice], 1) == [twice]


@pytest.mark.parametrize("client", [-1, 3, 2**63 - 1])
def test_a_visit_of_a_client_that_is_not_recorded_is_refused(client):
    visits = visits_of(a_visit(0, 0, end_s=7.0, client=client))
    waited = waiting([a_round(0, 1, closed_s=7.0)], visits)
    clients = pa.table({"seconds_per_sample": [1.0, 2.0, 8.0]})
    with pytest.raises(InputError, match=f"^a visit is of client {client}, and 3 clients are recorded$"):
        closers(5, waited, visits, clients)


def test_the_visits_of_a_round_are_found_by_their_number():
    visits = visits_of(a_visit(0, 0, end_s=7.0), a_visit(2, 1, end_s=7.0), a_visit(2, 2, end_s=7.0))
    assert visits.of_round(2).visit.tolist() == [1, 2]
    assert len(visits.of_round(1)) == 0
    assert np.isnan(visits.phases_s).sum() == 0
