from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.results.pages import write_report
from experiments.results.pages.what_was_run import drift_of_runs, lead
from experiments.results.reading.run_directory import ReportedRun
from tests.experiments.synthetic_runs import a_directory, a_run, store

EVERYBODY = {"num_clients": 4, "onsets": {"steps": [1], "counts": [4], "clients": [[0, 1, 2, 3]]}}
ONE = {"num_clients": 4, "onsets": {"steps": [3], "counts": [1], "clients": [[2]]}}


def a_run_of(seed: int, header: dict[str, Any]) -> ReportedRun:
    return replace(a_run("global", seed, [0.5]), header=header)


def test_seeds_with_the_same_onsets_share_a_line() -> None:
    runs = [a_run_of(0, EVERYBODY), a_run_of(1, ONE), a_run_of(2, EVERYBODY), a_run_of(3, {"num_clients": 4})]
    assert drift_of_runs(runs) == [
        ("drift, seeds 0, 2", "4 onsets of 4 of 4 clients; mass event at data step 1 (4 clients)"),
        ("drift, seed 1", "1 onset of 1 of 4 clients; no mass event"),
    ]


def test_of_very_many_onsets_the_line_has_the_numbers_that_are_known() -> None:
    onsets = {"steps": [1, 2, 4], "counts": [9_000, 20_000, 15_000]}
    [(heading, text)] = drift_of_runs([a_run_of(0, {"num_clients": 30_000, "onsets": onsets})])
    assert heading == "drift, seed 0"
    events = "2 (20,000 clients), 4 (15,000 clients)"
    assert text == f"44,000 onsets among 30,000 clients; mass events at data steps {events}"


def test_the_lead_names_a_table_of_devices_by_its_path_however_it_is_given() -> None:
    for profile in ("phones.csv", {"path": "phones.csv", "separator": ";"}):
        experiment = {"devices": {"profile": profile}, "arm": [{"name": "a"}], "seeds": [0]}
        assert lead(experiment, []) == "phones.csv devices · 1 arm · 1 seed"


@pytest.mark.slow
def test_a_report_states_its_drift_where_it_says_what_was_run(tmp_path: Path) -> None:
    directory = a_directory(tmp_path / "run", ["global"], [0])
    store(directory, a_run_of(0, ONE))
    page = write_report(directory, shared_plotly=True).read_text()
    assert "<tr><th>drift, seed 0</th><td>1 onset of 1 of 4 clients; no mass event</td></tr>" in page
