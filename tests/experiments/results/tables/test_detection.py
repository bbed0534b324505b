"""Tables of detectors, of the run that statistics/detection/test_scores.py works out by hand."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import driftscale
from emulator.errors import DataFileError
from experiments.cli.tables import print_summary
from experiments.results.pages.report_page import write_results
from experiments.results.reading.detection import DetectionSettings
from experiments.results.tables.detection import TABLE, detector_tables
from experiments.results.tables.summary import summarise
from tests.experiments.results.statistics.detection.test_scores import DECIDED, DRIFTS, FLAGGED
from tests.experiments.running.played import play
from tests.experiments.small import small
from tests.experiments.synthetic_runs import a_detecting_run, a_directory, a_run, store

SETTINGS = DetectionSettings("changed", 2, None, 3)


def a_summary(run=None, **changes):
    run = run or a_detecting_run("global", 0, DECIDED, FLAGGED, DRIFTS)
    return summarise(
        [run], name="x", window=1, reference_arm="global", detection=replace(SETTINGS, **changes)
    )


def figures(table):
    return [[cell.figure for cell in cells] for _, cells in table.rows]


def test_a_row_for_each_detector_by_drift_and_by_decision():
    by_drift, by_decision = detector_tables(a_summary().detection, in_terminal=False)
    assert dict(zip(by_drift.headings, *figures(by_drift), strict=True)) == {
        "detector": "watch",
        "drifts": "3.0",
        "found": "1.0",
        "never asked": "1.0",
        "found of those asked": "50.0 %",
        "found of all": "33.3 %",
        "of those found: rounds, median": "2.0",
        "rounds, 90 %": "2.0",
        "time, median": "30.0 s",
        "time, 90 %": "30.0 s",
        "until asked": "20.0 s",
        "from asked to found": "10.0 s",
        "false alarms per 1,000 decisions": "125",
        "numbers clipped": "7.0",
        "found, gradual": "0.0 %",
        "found, sudden": "50.0 %",
    }
    assert figures(by_decision) == [
        ["watch", "8.0", "2.0", "2.0", "1.0", "3.0", "50.0 %", "66.7 %", "40.0 %", "50.0 %"]
    ]


def test_the_note_says_what_was_scored_and_what_should_be_a_flag():
    note = TABLE.note(a_summary())
    assert "Scored are the rounds from 2 to the last." in note
    assert "at most 3 rounds after it" in note
    assert "should be a flag if the client's data are of another distribution than in round 1. These" in note
    assert "from 2 to 8." in TABLE.note(a_summary(last_round=8))
    assert "than in round 1, in rounds 3 to 5. A flag that stays up after these" in TABLE.note(
        a_summary(positive=(3, 5))
    )
    by_kind = TABLE.note(a_summary(positive={"sudden": (3, 5), "gradual": (4, 9)}))
    assert "in the rounds of its kind (sudden: 3 to 5, gradual: 4 to 9); of other kinds it never" in by_kind
    assert "No run has" not in by_kind
    assert "No run has a drift of the kind swap." in TABLE.note(a_summary(positive={"swap": (3, 5)}))


def test_the_note_says_when_a_detector_of_each_sort_decides():
    note = TABLE.note(a_summary(a_detecting_run("global", 0, DECIDED, FLAGGED, DRIFTS, watched="arrivals")))
    assert (
        "to the decision, which a detector of representations makes as its round opens, one of "
        "training at its close, and one of arrivals by then. They are the time"
    ) in note


def test_a_summary_names_arrivals_that_are_watched(tmp_path):
    directory = a_directory(
        tmp_path, ["global"], [0], report={"window": 1}, detection={"first_round": 2, "tolerance": 3}
    )
    store(directory, a_detecting_run("global", 0, DECIDED, FLAGGED, DRIFTS, watched="arrivals"))
    write_results(directory)
    watch = json.loads(directory.summary_path.read_text())["detection"]["arms"]["global"]["watch"]
    assert (watch["watched"], watch["delay_s_median"]["mean"]) == ("arrivals", 30.0)
    assert driftscale.load(directory.path).detection.watched.to_list() == ["arrivals"]


def test_detectors_that_decided_nothing_are_named():
    quiet = a_detecting_run("global", 0, {}, {}, DRIFTS)
    summary = a_summary(quiet)
    assert TABLE.note(summary) == "No decision in the scored rounds was made by watch of global."
    assert TABLE.with_captions(summary, as_printed=True) == []
    assert "No decision" not in TABLE.note(a_summary())


def test_detectors_without_decisions_have_no_row_beside_others():
    run = a_detecting_run("global", 0, DECIDED, FLAGGED, DRIFTS)
    both = replace(run, header={**run.header, "detectors": {"idle": "representation", "watch": "training"}})
    summary = a_summary(both)
    assert [cells[0] for cells in figures(detector_tables(summary.detection, in_terminal=False)[0])] == [
        "watch"
    ]
    assert "No decision in the scored rounds was made by idle of global." in TABLE.note(summary)
    assert set(summary.as_json()["detection"]["arms"]["global"]) == {"idle", "watch"}


def written(path, **detection):
    table = {"detection": {"positive": "changed", "first_round": 2, "tolerance": 3, **detection}}
    directory = a_directory(path, ["global", "static"], [0], report={"window": 1}, **table)
    store(directory, a_run("static", 0, [0.5] * 10))
    store(directory, a_detecting_run("global", 0, DECIDED, FLAGGED, DRIFTS))
    return directory


@pytest.mark.slow
def test_a_report_and_its_summary_have_detectors_if_runs_recorded_decisions(tmp_path, capsys):
    directory = written(tmp_path)
    summary = write_results(directory)
    stored = json.loads(directory.summary_path.read_text())["detection"]
    assert {key: stored[key] for key in ("positive", "first_round", "last_round", "tolerance")} == {
        "positive": "changed",
        "first_round": 2,
        "last_round": None,
        "tolerance": 3,
    }
    assert list(stored["arms"]) == ["global"]  # the other has no detector
    watch = stored["arms"]["global"]["watch"]
    assert (watch["watched"], watch["f1"]) == ("training", {"mean": 0.5, "ci95": None, "per_seed": [0.5]})
    assert watch["kinds"]["sudden"]["found"]["per_seed"] == [1]
    page = directory.report_path.read_text()
    assert '<section id="detection">' in page
    assert "flatter latches" in page
    print_summary(summary)
    printed = capsys.readouterr().out
    assert "synthetic: drifts found by detectors" in printed
    assert "decisions of detectors, one by one" in printed


@pytest.mark.slow
def test_without_decisions_nothing_is_there(tmp_path, capsys):
    directory = a_directory(tmp_path, ["global"], [0], report={"window": 1})
    store(directory, a_run("global", 0, [0.5] * 10))
    summary = write_results(directory)
    assert summary.detection is None
    assert "detection" not in json.loads(directory.summary_path.read_text())
    assert 'id="detection"' not in directory.report_path.read_text()
    print_summary(summary)
    assert "detector" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"tolerance": -1}, "detection.tolerance must be a whole number"),
        ({"positive": [3]}, "detection.positive must be"),
        ({"positive": {"sudden": "changed"}}, "detection.positive must be"),
        ({"last_round": 1}, "detection.last_round must be detection.first_round or a later one"),
    ],
)
def test_a_recorded_table_that_breaks_a_rule_is_refused(tmp_path, changes, problem):
    directory = written(tmp_path, **changes)
    with pytest.raises(DataFileError, match=problem):
        directory.experiment()


def test_positive_is_written_as_the_configuration_has_it():
    for positive, expected in (((3, 5), [3, 5]), ({"sudden": (3, 5)}, {"sudden": [3, 5]}), ("changed",) * 2):
        stored = json.loads(json.dumps(a_summary(positive=positive).as_json()))
        assert stored["detection"]["positive"] == expected


def test_a_played_run_is_scored_against_the_drifts_of_its_trace(tmp_path):
    """Clients that report when their label shares have changed are flagged at once, also without a drift."""
    swap = {"what": {"swap": [[3, 8]]}, "on": "arrivals", "clients": {"share": 0.5}, "at_step": 3}
    arms = [
        {"name": "watched", "detectors": {"jump": "loss_jump"}},
        {"name": "fielding", "clusterer": {"kind": "fielding"}, "detectors": {"moved": "changed"}},
    ]
    detection = {"first_round": 2, "tolerance": 6}
    play(
        small(trace={"changes": [swap]}, round={"rounds": 12}, arm=arms, detection=detection),
        tmp_path / "out",
    )
    results = driftscale.load(tmp_path / "out")
    jump, moved = results.detection.to_dict("records")
    assert (jump["watched"], jump["decisions"]) == ("training", 10 * 3)  # three participants in ten rounds
    assert (moved["watched"], moved["recall_asked"], moved["delay_rounds_90"]) == ("representation", 1.0, 0.0)
    drifts = results.drifts
    assert moved["drifts"] == (drifts.detector == "moved").sum() == moved["found"] + moved["never_asked"]
    swapped = drifts[(drifts.kind == "swap") & (drifts.detector == "moved")]
    assert swapped.onset.to_list() == [6] * 6  # half of the clients; data steps are of two rounds
    assert (swapped.before.to_list(), swapped.after.to_list()) == ([0] * 6, [1] * 6)
