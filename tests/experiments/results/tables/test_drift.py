"""The tables around a drift, at 120 s in runs of ten-second rounds; arm `ditto` has a personal accuracy."""

from dataclasses import replace

import pytest

from experiments.results.pages.report_page import page_sections
from experiments.results.reading.configured_arms import configured_arms
from experiments.results.tables.drift import TABLE
from experiments.results.tables.report import Report
from experiments.results.tables.summary import summarise, summarise_directory
from tests.experiments.synthetic_runs import a_directory, a_run, store

BEFORE = [0.0, 0.0, *[0.5] * 10]
FALLS = [*BEFORE, *[0.25] * 8]
RECOVERS = [*BEFORE, 0.25, *[0.5] * 7]


def a_personal_run(seed, personal):
    run = a_run("ditto", seed, FALLS)
    records = [
        replace(record, personal_accuracy=value) for record, value in zip(run.records, personal, strict=True)
    ]
    return replace(run, records=records)


def a_summary(runs, **settings):
    changes = {"window": 1, "reference_arm": "tuned", "event_rounds": [12], **settings}
    return summarise(runs, name="x", **changes)


def a_report(path, runs, **changes):
    drift = {"kind": "label_mix", "events": [{"round": 12, "share": 0.5, "mixes": 2}]}
    settings = {"trace": {"source": "digits", "drift": drift}, **changes}
    directory = a_directory(path, list(dict.fromkeys(run.arm for run in runs)), [0], **settings)
    for run in runs:
        store(directory, run)
    stored = directory.reported_runs()
    return Report(directory, stored, summarise_directory(directory, stored))


def test_the_figures_of_each_accuracy_are_over_seeds_and_gains_are_paired():
    runs = [a_run("tuned", seed, RECOVERS) for seed in (0, 1)]
    tuned, ditto = a_summary([*runs, *(a_personal_run(seed, RECOVERS) for seed in (0, 1))]).rows
    assert ditto["accuracy_before_drift"].per_seed == [0.5, 0.5]
    assert ditto["accuracy_after_drift"].mean == (0.5 * 10 + 0.25 * 70) / 80
    assert tuned["accuracy_drift_difference_pp"].mean == pytest.approx(-25 * 10 / 80)
    assert tuned["accuracy_drift_area_pp_h"].mean == 25 * 10 / 3600
    assert ditto["accuracy_after_drift_gain_pp"].per_seed == [pytest.approx(-25 * 60 / 80)] * 2
    assert tuned["accuracy_after_drift_gain_pp"] is None
    assert ditto["personal_accuracy_after_drift"].mean == tuned["accuracy_after_drift"].mean
    # The clients of the first arm use what serves them.
    assert tuned["personal_accuracy_after_drift"] == tuned["accuracy_after_drift"]
    assert ditto["personal_accuracy_after_drift_gain_pp"].per_seed == [0.0, 0.0]


def test_recovery_is_in_json_alone_with_what_it_took_and_null_if_there_is_none():
    tuned = a_run("tuned", 0, RECOVERS)
    tuned.header.update(num_parameters=25, num_clients=4)  # models of 100 bytes, three a round
    arm = {"name": "tuned", "training": {"local_steps": 5, "batch_size": 4}}
    runs = [tuned, a_personal_run(0, RECOVERS)]
    summary = a_summary(runs, configured=configured_arms({"arm": [arm]}))
    arms = summary.as_json()["arms"]
    cost = {"rounds": 6, "delay_s": 60.0, "bytes": 6 * 716.0}
    assert arms["tuned"]["accuracy_recovery"] == [{**cost, "trained_samples_per_client": 6 * 3 * 20 / 4}]
    assert arms["ditto"]["accuracy_recovery"] == [None]
    assert arms["ditto"]["personal_accuracy_recovery"] == [{**cost, "trained_samples_per_client": None}]
    assert not any("recovery" in key for row in summary.rows for key, _ in row.estimates())


def test_the_page_has_a_table_for_each_accuracy_that_some_arm_has(tmp_path):
    report = a_report(tmp_path, [a_run("tuned", 0, RECOVERS), a_personal_run(0, RECOVERS)])
    sections = {title: section for (title, _), section in page_sections(report)["pays", False].items()}
    found = sections["Before and after the drift"]
    assert [table.title for table in found.tables] == ["Accuracy", "Personal accuracy"]
    plain, personal = (
        {arm: [cell.figure for cell in cells] for arm, cells in table.table.rows} for table in found.tables
    )
    assert found.tables[0].table.headings == ["before", "after", "difference", "area lost", "gain after"]
    assert plain["tuned"] == ["50.0 %", "46.9 %", "-3.1 pp", "4.17 pp min", "reference"]
    assert plain["ditto"] == ["50.0 %", "28.1 %", "-21.9 pp", "29.2 pp min", "-18.8 pp"]
    assert personal["tuned"] == plain["tuned"]
    assert personal["ditto"] == ["50.0 %", "46.9 %", "-3.1 pp", "4.17 pp min", "+0.0 pp"]
    assert (
        "the 80.0 s after it, which 100 rounds of tuned take if the horizon is not earl" in found.remarks[0]
    )
    assert "Personal accuracy is that of" in found.remarks[0]


def test_a_drift_that_the_log_alone_tells_has_tables_if_there_is_more_than_plain_accuracy(tmp_path):
    onsets = {"steps": [1], "counts": [2], "clients": [[0, 2]]}  # data step 1 is that of round 10
    for name, arms in (("plain", ["tuned"]), ("personal", ["tuned", "ditto"])):
        runs = [run for run in (a_run("tuned", 0, RECOVERS), a_personal_run(0, RECOVERS)) if run.arm in arms]
        for run in runs:
            run.header.update(num_clients=4, onsets=onsets)
        summary = a_report(tmp_path / name, runs, trace={"source": "digits"}).summary
        assert summary.rows[0]["accuracy_before_drift"].mean == 0.4  # of ten rounds, eight of them at 0.5
        assert TABLE.says_something(summary) == (name == "personal")


def test_the_terminal_has_the_same_tables_with_their_accuracy_in_the_caption():
    summary = a_summary([a_run("tuned", 0, RECOVERS), a_personal_run(0, RECOVERS)])
    captions = [caption for caption, _ in TABLE.with_captions(summary, as_printed=True)]
    assert captions == [f"{name} before and after the drift" for name in ("accuracy", "personal accuracy")]


def test_without_a_known_drift_there_is_no_table_and_no_figure():
    summary = a_summary([a_run("tuned", 0, RECOVERS)], event_rounds=[])
    assert not TABLE.says_something(summary)
    assert TABLE.with_captions(summary, as_printed=True) == []
    assert {summary.rows[0][of.key] for of in TABLE.quantities} == {None}


def test_of_an_arm_that_has_finished_no_seed_nothing_is_said():
    assert not TABLE.says_something(a_summary([a_personal_run(0, RECOVERS)]))
