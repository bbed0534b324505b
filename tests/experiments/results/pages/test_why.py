"""The whole answer to "Why?", of run directories with and without visits."""

import pyarrow as pa
import pyarrow.parquet as pq

from emulator.messages import NamedNumbers, Trigger
from emulator.storage.recorded_tables import VISITS
from experiments.results.pages.report_page import ROUNDS, page_sections, plots
from experiments.results.reading.run_directory import ReportedRun
from experiments.results.tables.report import Report
from experiments.results.tables.summary import summarise_directory
from tests.experiments.synthetic_runs import TIMING, a_directory, a_record, store

FIRED = Trigger(0.5, 1.0, 0.25, 2, True)


def recorded(path, *, with_visits, compared=FIRED):
    """(section, plots) of three rounds, each closed by client 2, which uploads for 5 s."""
    directory = a_directory(path, ["global", "fielding"], [0])
    for arm in directory.arms():
        trigger = compared if arm == "fielding" else None
        tried = {2: 0.5} if arm == "fielding" else None
        records = [
            a_record(number, clusters=[0, 1], trigger=trigger, silhouettes=tried) for number in range(3)
        ]
        store(directory, ReportedRun(arm, 0, {}, records, TIMING))
        if with_visits:
            pq.write_table(the_visits(), directory.seed_path(arm, 0) / "visits.parquet")
    runs = directory.reported_runs()
    report = Report(directory, runs, summarise_directory(directory, runs))
    return page_sections(report)["why", False][ROUNDS], plots(report)["why"]


def the_visits():
    rows = [
        {
            "round": number,
            "visit": 4 * number + client,
            "client": client,
            "device": 7,
            "lane": 0,
            "models": [0],
            "dispatched_s": 10.0 * number + 1,
            "requests_s": 0.0,
            "download_s": 1.0,
            "compute_s": 3.0,
            "upload_s": 5.0 if client == 2 else 1.0,
            "crashed": False,
            "end_s": 10.0 * number + (10 if client == 2 else 6),
            "outcome": "completed",
            "download_bytes": 1.0,
            "upload_bytes": 1.0,
            "payload_bytes": 2.0,
        }
        | ({"end_s": 10.0 * number + 3, "outcome": "dropped"} if client == 3 else {})
        for number in range(3)
        for client in range(4)
    ]
    return pa.Table.from_pylist(rows, VISITS)


def test_with_visits_the_page_says_what_rounds_waited_for_and_who_closed_them(tmp_path):
    section, drawn = recorded(tmp_path, with_visits=True)
    assert [plot.id for plot in drawn][:4] == ["trigger", "silhouettes", "waiting", "timeline"]
    assert "global 10.0 s (upload 50 %, compute 30 %, download 10 %, before dispatch 10 %)" in section.lead
    lengths, closed = section.tables
    assert [cell.figure for cell in lengths.table.rows[0][1]] == [
        *("3", "10.0 s", "10.0 %", "10.0 %", "30.0 %", "50.0 %")
    ]
    assert [(arm, [cell.figure for cell in cells][:6]) for arm, cells in closed.table.rows] == [
        (arm, ["0", "2", "7", "3", "100.0 %", "9.00 s"]) for arm in ("global", "fielding")
    ]


def test_without_visits_the_page_names_the_option_that_records_them(tmp_path):
    section, drawn = recorded(tmp_path, with_visits=False)
    captions = {plot.id: plot.caption for plot in drawn}
    assert list(captions)[:3] == ["trigger", "silhouettes", "waiting"]
    assert "timeline" not in captions
    assert "round.log_visits = true" in captions["waiting"]
    assert "visits 90 %, before dispatch 10 %" in section.lead
    assert [table.title for table in section.tables] == ["Lengths of rounds"]


def test_a_trigger_with_numbers_of_its_own_is_drawn_and_named(tmp_path):
    compared = NamedNumbers({"limit": 0.75, "spread": 0.5, "far": [1.0, 2.0]}, 2, False)
    _, (plot, *_) = recorded(tmp_path, with_visits=False, compared=compared)
    assert (plot.id, plot.title) == ("trigger", "When all clients were re-clustered: what triggers compared")
    assert plot.caption.endswith("has a line for each, or for each cluster: spread, far.")
    assert [trace["name"] for trace in plot.figure.data] == ["limit", "spread", "far 0", "far 1", "fired"]
