"""`driftscale detection`, of the run that statistics/detection/test_scores.py works out by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.results.pages.report_page import write_results
from experiments.results.reading.run_directory import RunDirectory
from tests.experiments.cli.conftest import Driftscale
from tests.experiments.results.statistics.detection.test_scores import DECIDED, DRIFTS, FLAGGED
from tests.experiments.synthetic_runs import a_detecting_run, a_directory, a_run, store

Flagged = Mapping[str, Mapping[int, Sequence[int]]]
"""By detector and round, whom it flags."""

CALM = {5: [0], 6: [0]}
"""Without the false alarm of `FLAGGED`; both find one of three drifts, after two rounds of ten seconds."""

BOTH: Flagged = {"watch@2": FLAGGED, "watch@3": CALM}


def written(
    path: Path,
    flagged: Flagged,
    drifts: Sequence[tuple[int, int, str, int, int]] = DRIFTS,
    **detection: Any,
) -> RunDirectory:
    """A run directory with that."""
    run = a_detecting_run("global", 0, DECIDED, {}, drifts)
    records = [
        replace(
            record,
            flagged={name: list(by_round.get(record.round, [])) for name, by_round in flagged.items()},
            clipped={},
        )
        for record in run.records
    ]
    header = {**run.header, "detectors": dict.fromkeys(flagged, "training")}
    table = {"positive": "changed", "first_round": 2, "tolerance": 3, **detection}
    directory = a_directory(path, ["global"], [0], report={"window": 1}, detection=table)
    store(directory, replace(run, header=header, records=records))
    return directory


def test_detectors_are_compared_at_rates_and_a_dash_is_outside_of_what_was_played(
    driftscale: Driftscale, tmp_path: Path
) -> None:
    """Of eight decisions one is a false alarm at threshold 2, 125 per 1,000, and none at threshold 3."""
    few = dict.fromkeys(("few@1", "few@2"), FLAGGED)
    written(tmp_path / "run", {**BOTH, **few})
    ended = driftscale("detection", "run")
    assert ended.code == 0
    assert "synthetic: At the same false alarms per 1,000 decisions" in ended.out
    rows = [line.split() for line in ended.out.splitlines() if line.startswith("global")]
    assert [row[1:3] for row in rows] == [
        [rate, name] for rate in ("0.5", "1", "2") for name in ("watch", "few")
    ]
    assert rows[0][3:] == ["3", "to", "2", "33.3", "%", "2.0"]
    assert rows[1][3:] == ["(125", "to", "125)", *["-"] * 2]
    assert "clients draw one of the two thresholds by lot" in " ".join(ended.out.split())
    assert not (tmp_path / "run" / "summary.json").exists()


def test_as_json_it_has_the_rates(driftscale: Driftscale, tmp_path: Path) -> None:
    written(tmp_path / "run", BOTH)
    shown = json.loads(driftscale("detection", "run", "--format", "json").out)
    assert list(shown) == ["run"]
    (curve,) = shown["run"]
    assert (curve["arm"], curve["detector"]) == ("global", "watch")
    assert curve["0.5"]["thresholds"] == [3.0, 2.0]
    assert curve["0.5"]["delay_rounds_mean"] == {"mean": 2.0, "ci95": None, "per_seed": [2.0]}
    assert curve["0.5"]["false_alarms_per_1000"]["mean"] == 0.5


def test_a_folder_has_a_table_for_each_of_its_run_directories(driftscale: Driftscale, tmp_path: Path) -> None:
    for name in ("one", "two"):
        written(tmp_path / "runs" / name, BOTH)
    assert driftscale("detection", "runs").out.count("At the same false alarms") == 2
    shown = json.loads(driftscale("detection", "runs", "--format", "json").out)
    assert sorted(shown) == ["runs/one", "runs/two"]


@pytest.mark.parametrize(
    ("flagged", "changes"),
    [
        ({"watch": FLAGGED}, {}),
        ({"watch@2": FLAGGED, "other@3": CALM}, {}),
        (BOTH, {"first_round": 6}),  # no drift begins from then on
        (BOTH, {"drifts": []}),
    ],
)
def test_nothing_to_compare_is_one_line_with_the_remedy(
    driftscale: Driftscale, tmp_path: Path, flagged: Flagged, changes: dict[str, Any]
) -> None:
    written(tmp_path / "run", flagged, **changes)
    ended = driftscale("detection", "run")
    assert ended.code == 2
    assert ended.error == (
        "run: no detector was played at several thresholds with drifts to find; give one of training a list, "
        "as { kind = 'ddm', thresholds = [2, 3] }, and score rounds with drifts"
    )


def test_detection_without_truth_is_one_line_with_the_remedy(driftscale: Driftscale, tmp_path: Path) -> None:
    directory = a_directory(tmp_path / "blind", ["global"], [0], report={"window": 1})
    store(directory, a_run("global", 0, [0.5] * 10))
    ended = driftscale("detection", "blind")
    assert ended.code == 2
    assert ended.error.startswith(
        "blind: its runs recorded no decisions of detectors; with a table [detection] in their configuration"
    )


def test_without_a_finished_run_there_is_one_line(driftscale: Driftscale, tmp_path: Path) -> None:
    a_directory(tmp_path / "empty", ["global"], [0], report={"window": 1})
    ended = driftscale("detection", "empty")
    assert (ended.code, ended.error.startswith("empty: no run is finished: ")) == (2, True)


@pytest.mark.slow
def test_the_report_has_the_table_and_the_curves_if_there_are_some(tmp_path: Path) -> None:
    for name, flagged in (("several", BOTH), ("single", {"watch": FLAGGED})):
        directory = written(tmp_path / name, flagged)
        write_results(directory)
        page = directory.report_path.read_text()
        assert ("At the same false alarms per 1,000 decisions" in page) == (name == "several")
        assert ('id="operating_points"' in page) == (name == "several")
