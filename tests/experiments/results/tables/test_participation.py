"""Who takes part, and a report of runs whose rounds are not whole, by made-up runs.

40 clients in 4 speeds, of 10 each, the fastest first. Arm `sync` has rounds of 10 s with an update of each
of the first 30 clients; arm `buffered` has rounds of another number and length in each seed.
"""

import json
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

import driftscale
from emulator.errors import InputError
from emulator.storage.recorded_tables import write_clients
from experiments.results.many_runs.directories import MeasuredDirectory, progress
from experiments.results.pages.report_page import page_sections, plots, write_results
from experiments.results.reading.run_directory import ReportedRun
from experiments.results.statistics.absorbed import absorbed
from experiments.results.statistics.clients.participation import visits_by_client
from experiments.results.statistics.comparisons import Run
from experiments.results.statistics.horizon import common_horizon
from experiments.results.statistics.intervals import Estimate
from experiments.results.statistics.time_to_accuracy import accuracy_curve
from experiments.results.tables.participation import (
    TABLE,
    absorbed_updates,
    accuracy_with_visits,
    accuracy_without_visits,
    busiest_tenth,
    effective_participants,
    largest_staleness,
    mean_staleness,
    server_steps,
    without_visits,
)
from experiments.results.tables.report import Report
from experiments.results.tables.summary import summarise_directory
from tests.experiments.synthetic_runs import TIMING, a_directory, a_record, store

CLIENTS = 40
SPEED = np.arange(CLIENTS) // 10
EVERYONE = np.zeros(CLIENTS, dtype=np.int64)
LEFT_OUT = "Left out: buffered; visits outlast rounds, which wait for no cohort."


def a_sync_run(seed, rounds=6):
    records = [
        a_record(
            number,
            participants=list(range(32)),
            completed=list(range(30)),
            dropped=[30, 31],
            members=EVERYONE if number == 0 else None,
        )
        for number in range(rounds)
    ]
    return ReportedRun("sync", seed, {"num_clients": CLIENTS}, records, TIMING)


def a_buffered_run(seed):
    """Rounds of 15 s and, in the first seed, of 12 s, with the client 0 twice; the last one is empty."""
    length_s = 15.0 if seed else 12.0
    count = int(60 / length_s)
    records = [
        a_record(
            number,
            step=0,
            opened_s=length_s * number,
            dispatched_s=length_s * number,
            closed_s=length_s * (number + 1),
            participants=[39, 0, 0, 5],
            completed=[39, 0, 0],
            dropped=[5],
            members=EVERYONE if number == 0 else None,
            steps=2,
            staleness=1.0 + number % 2,
            largest_staleness=2 + number,
            in_flight=3,
        )
        for number in range(count)
    ]
    ended = {"participants": [], "completed": [], "dropped": [], "train_loss": None, "steps": 0}
    at_the_end = {"opened_s": 60.0, "dispatched_s": 60.0, "closed_s": 60.0}
    unknown = {"staleness": None, "largest_staleness": None, "in_flight": 0, "members": None}
    records.append(replace(records[-1], round=count, accuracy=0.75, **at_the_end, **ended, **unknown))
    return ReportedRun("buffered", seed, {"num_clients": CLIENTS}, records, TIMING)


def a_folder(path, runs, **settings):
    arms = list(dict.fromkeys(run.arm for run in runs))
    directory = a_directory(path, arms, sorted({run.seed for run in runs}), **settings)
    for run in runs:
        store(directory, run)
        ones = np.ones(CLIENTS)
        columns = {"download_bytes_per_s": ones, "upload_bytes_per_s": ones, "latency_s": ones}
        write_clients(
            directory.run_file(run.arm, run.seed, "clients.parquet"),
            {"seconds_per_sample": 1.0 + SPEED, **columns},
            None,
        )
    return directory


@pytest.fixture
def both(tmp_path):
    """The directory of both arms, with two seeds."""
    return a_folder(tmp_path, [make(seed) for make in (a_sync_run, a_buffered_run) for seed in (0, 1)])


def a_report(directory):
    runs = directory.reported_runs()
    return Report(directory, runs, summarise_directory(directory, runs))


def sections(directory):
    return {title: shown for (title, _), shown in page_sections(a_report(directory))["why", False].items()}


def figures_of(directory):
    return {plot.id: plot for plot in plots(a_report(directory))["why"]}


def measured(run):
    curve = accuracy_curve(run, 1)
    return Run.of(run, curve, common_horizon([run], [curve]))


def test_updates_are_those_of_completed_visits_and_those_of_one_step_are_not_stale():
    found = absorbed(a_buffered_run(0))
    assert found["updates"].tolist() == [3] * 5 + [0]
    assert found["steps"].tolist() == [2] * 5 + [0]
    run = measured(a_buffered_run(0))
    assert (mean_staleness(run), largest_staleness(run)) == (7 / 5, 6.0)
    early = replace(run, horizon=replace(run.horizon, horizon_s=24.0))
    assert (mean_staleness(early), largest_staleness(early)) == (1.5, 3.0)
    at_once = replace(run, horizon=replace(run.horizon, horizon_s=1.0))
    assert mean_staleness(at_once) is largest_staleness(at_once) is None
    whole = measured(a_sync_run(0))
    assert (server_steps(whole), absorbed_updates(whole), mean_staleness(whole)) == (6, 180, 0.0)


def figures(found):
    return {arm: [cell.figure for cell in cells] for arm, cells in found.table.rows}


def test_arms_of_both_kinds_are_beside_each_other_by_visits_staleness_and_quarter(both):
    who, stale, quarters = sections(both)["Who takes part"].tables
    assert who.table.headings == ["updates", "without a visit", "busiest tenth", "effective participants"]
    assert figures(who) == {
        "sync": ["180", "25.0 %", "13.3 %", "30.0"],
        "buffered": ["14", "95.0 %", "100.0 %", "1.8"],
    }
    assert (stale.title, stale.table.headings) == (
        "Staleness of updates",
        ["server steps", "mean staleness", "largest"],
    )
    assert figures(stale) == {"sync": ["6.0", "0.00", "0.0"], "buffered": ["9.0", "1.45", "5.5"]}
    assert (quarters.title, quarters.table.headings) == (
        "Updates by device speed",
        [f"{name} quarter (n 10)" for name in ("fastest", "second", "third", "slowest")],
    )
    assert figures(quarters) == {
        "sync": ["33.3 %", "33.3 %", "33.3 %", "0.0 %"],
        "buffered": ["66.7 %", "0.0 %", "0.0 %", "33.3 %"],
    }


def test_without_rounds_of_several_steps_the_table_has_no_steps_and_no_staleness(tmp_path):
    directory = a_folder(tmp_path, [a_sync_run(0)])
    assert [found.title for found in sections(directory)["Who takes part"].tables] == [
        *("", "Updates by device speed")
    ]
    summary = summarise_directory(directory, directory.reported_runs())
    [(_, printed)] = TABLE.with_captions(summary, as_printed=True)
    assert printed.headings == ["updates", "without a visit", "busiest tenth", "effective participants"]
    assert "staleness" not in TABLE.note(summary)
    assert "mean_staleness" in summary.as_json()["arms"]["sync"]


def test_in_a_terminal_all_columns_are_in_one_table_with_one_note(both):
    summary = a_report(both).summary
    [(_, printed)] = TABLE.with_captions(summary, as_printed=True)
    assert printed.headings[3:] == ["effective participants", "server steps", "mean staleness", "largest"]
    assert "staleness of an update" in TABLE.note(summary)


def test_without_devices_or_with_one_speed_there_are_no_quarters(both):
    for arm in both.arms():
        for seed in both.seeds():
            both.run_file(arm, seed, "clients.parquet").unlink()
    found = sections(both)["Who takes part"]
    assert len(found.tables) == 2
    assert found.remarks[0].startswith("Updates by device speed: not recorded")


def test_a_fleet_of_another_number_of_clients_is_refused(tmp_path):
    run = a_buffered_run(0)
    records = [
        replace(record, members=EVERYONE[:-1] if record.members is not None else None, completed=[38, 0, 0])
        for record in run.records
    ]
    directory = a_folder(tmp_path, [replace(run, header={"num_clients": CLIENTS - 1}, records=records)])
    with pytest.raises(InputError, match=r"clients\.parquet has 40 clients, and the log 39"):
        sections(directory)


def four_clients(completed, **changes):
    """A run of ten-second rounds of clients 0 to 3, in which these completed visits."""
    records = [a_record(number, completed=ids, dropped=[], **changes) for number, ids in enumerate(completed)]
    return ReportedRun("global", 0, {"num_clients": 4}, records, TIMING)


def test_who_takes_part_among_four_clients_is_as_worked_out_by_hand():
    """Six visits, of clients 0, 1 and 2 in shares of 1/2, 1/3 and 1/6; client 3 has none.

    The tenth of four clients is one, client 0. 1 / (1/4 + 1/9 + 1/36) = 36 / 14.
    """
    accuracy = np.array([0.5, 0.75, 0.25, 0.125], dtype=np.float32)
    run = measured(four_clients([[0, 1, 2], [0, 1], [0]], client_accuracy=accuracy))
    assert visits_by_client(run).tolist() == [3, 2, 1, 0]
    assert (without_visits(run), busiest_tenth(run)) == (1 / 4, 1 / 2)
    assert effective_participants(run) == pytest.approx(36 / 14, abs=1e-15)
    assert (accuracy_with_visits(run), accuracy_without_visits(run)) == (0.5, 0.125)


def test_visits_after_the_horizon_do_not_count():
    run = measured(four_clients([[0, 1], [2], [3, 3, 3, 3]]))
    early = replace(run, horizon=replace(run.horizon, horizon_s=20.0))
    assert [without_visits(early), busiest_tenth(early), effective_participants(early)] == [1 / 4, 1 / 3, 3.0]
    assert [without_visits(run), busiest_tenth(run)] == [0.0, 4 / 7]


def test_of_equal_visits_the_effective_number_is_that_of_the_clients_and_of_none_there_is_none():
    equal, nobody = measured(four_clients([[0, 1, 2, 3]] * 2)), measured(four_clients([[], []]))
    assert (effective_participants(equal), busiest_tenth(equal), without_visits(equal)) == (4.0, 0.25, 0.0)
    assert (effective_participants(nobody), busiest_tenth(nobody), without_visits(nobody)) == (
        None,
        None,
        1.0,
    )


def test_groups_without_a_scored_client_have_no_accuracy_and_clients_that_are_not_scored_are_in_none():
    accuracy = np.array([0.5, 0.25], dtype=np.float32)
    run = four_clients([[0, 2], [1]], client_accuracy=accuracy)
    for scored, found in {(0, 1): (0.375, None), (0, 3): (0.5, 0.25), (2, 3): (0.5, 0.25)}.items():
        of_scored = measured(replace(run, header={**run.header, "scored_clients": list(scored)}))
        assert (accuracy_with_visits(of_scored), accuracy_without_visits(of_scored)) == found
    unknown = measured(four_clients([[0]]))
    assert accuracy_with_visits(unknown) is accuracy_without_visits(unknown) is None


def test_many_runs_show_how_many_take_part_where_some_row_has_less_than_four_fifths_of_another():
    by_key = {of.key: of for of in TABLE.in_many_runs}

    def shown(key, *values):
        return by_key[key].only_if([Estimate(value, None, [value]) for value in values])

    assert [shown("effective_participants", 10.0, other) for other in (8.0, 7.9)] == [False, True]
    assert [shown("effective_participants", None, None), shown("effective_participants", 10.0)] == [False] * 2
    assert [shown("without_visits", 0.5, other) for other in (0.6, 0.61)] == [False, True]
    assert [shown("without_visits", *values) for values in ((0.9, 0.9), (1.0, 0.9))] == [False, True]


def test_what_rounds_waited_for_leaves_out_the_arms_whose_rounds_wait_for_no_cohort(both):
    waited, drawn = sections(both)["Rounds, and what they waited for"], figures_of(both)
    assert [arm for table in waited.tables for arm, _ in table.table.rows] == ["sync"]
    assert waited.tables[0].notes[-1] == LEFT_OUT
    assert drawn["waiting"].caption.endswith(LEFT_OUT)
    assert "Rounds of buffered may have several server steps" in drawn["durations"].caption
    costs = {row.arm: row["waiting_for_responses_s"] for row in a_report(both).summary.rows}
    assert (costs["sync"].mean, costs["buffered"].mean) == (6.0, None)


def test_of_such_arms_alone_nothing_is_said_on_what_rounds_waited_for(tmp_path):
    directory = a_folder(tmp_path, [a_buffered_run(0)])
    waited = sections(directory)["Rounds, and what they waited for"]
    assert (waited.tables, waited.lead) == ([], "")
    assert waited.remarks == ["Not shown: of all arms, visits outlast rounds, which wait for no cohort."]
    assert not {"waiting", "timeline"} & figures_of(directory).keys()
    results = driftscale.load(tmp_path)
    with pytest.raises(InputError, match="cannot be drawn: of all arms, visits outlast rounds"):
        results.plot_waiting()
    with pytest.raises(InputError, match="no timeline of arm 'buffered': visits outlast rounds"):
        results.plot_timeline("buffered", 0, 0)


@pytest.mark.slow
def test_runs_of_different_numbers_of_rounds_are_reported_loaded_and_compared(both, tmp_path_factory):
    write_results(both)
    page = both.report_path.read_text()
    assert "Who takes part" in page
    rounds = pq.read_table(both.rounds_path)
    assert rounds["steps"].to_pylist() == [None] * 12 + [2] * 5 + [0] + [2] * 4 + [0]
    assert rounds["staleness"].to_pylist()[12:15] == [1.0, 2.0, 1.0]
    summary = json.loads(both.summary_path.read_text())["arms"]["buffered"]
    assert summary["absorbed_updates"]["per_seed"] == [15.0, 12.0]
    assert summary["rounds"]["per_seed"] == [6.0, 5.0]
    assert summary["effective_participants"]["per_seed"] == [pytest.approx(9 / 5)] * 2  # 1/3 and 2/3
    results = driftscale.load(both.path)
    assert results.rounds.in_flight.dtype == "Int64"
    assert results.clients_of("buffered", 0).participations.tolist()[0] == 10
    known = progress(MeasuredDirectory.read(both, "both").runs[-1].log)
    assert known["closed_s"].tolist() == [15.0, 30.0, 45.0, 60.0, 60.0]
    other = a_folder(tmp_path_factory.mktemp("other"), [a_sync_run(seed, rounds=8) for seed in (0, 1)])
    compared = driftscale.compare(both.path, other.path)
    assert list(compared.frame.arm) == ["sync", "buffered"]  # up to 60 s the arm sync is the same in both
    assert "mean staleness" in repr(compared)
    assert "effective participants" in repr(compared)
    assert [row["without_visits"].mean for row in compared.section.rows] == [0.25, 0.95]
    assert [row["busiest_tenth"].mean for row in compared.section.rows] == [4 / 30, 1.0]
