"""The one table of a run directory, and of a folder."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from experiments.results.pages import short_table as module
from experiments.results.pages.sentences import of_sections, sentences
from experiments.results.pages.short_table import short_folder_tables, short_table
from experiments.results.reading.configured_arms import configured_arms
from experiments.results.reading.run_directory import ReportedRun, RunDirectory
from experiments.results.tables.summary import summarise
from experiments.results.tables.table import NotedTable
from tests.experiments.results.many_runs.test_sections import ONE, OTHER, WORLD, a_measured
from tests.experiments.results.pages.test_sentences import (
    BASELINES,
    FIELDING,
    GLOBAL,
    PRIOR,
    an_arm,
    drifting_arm,
)
from tests.experiments.synthetic_runs import a_directory, a_run, store, tables_of

TRIGGERED = {"kind": "fielding", "trigger": {"kind": "centre_shift", "threshold": 0.5}}


def shown(runs: list[ReportedRun], report: dict[str, Any] | None = None, **settings: Any) -> NotedTable:
    summary = summarise(runs, name="x", window=1, reference_arm="global", **settings)
    table = short_table(summary, ["global", "prior", "fielding"], report or {})
    assert table is not None
    return table


def lines_of(table: NotedTable) -> dict[str, list[str]]:
    """The cells of each arm, each in one line."""
    return {arm: [" ".join(cell.lines) for cell in cells] for arm, cells in table.table.rows}


def test_it_has_mean_accuracy_gains_and_final_accuracy_with_the_intervals_of_gains() -> None:
    table = shown(GLOBAL + FIELDING)
    assert table.title == "x: up to 30.0 s of virtual time; 95 % intervals of gains in brackets"
    assert table.table.headings == ["mean accuracy", "gain", "final accuracy"]
    assert lines_of(table) == {
        "global": ["37.5 %", "reference", "50.0 %"],
        "fielding": ["47.5 %", "+10.0 pp [+10.0, +10.0]", "70.0 %"],
    }
    assert not table.notes


def test_its_title_names_intervals_only_where_a_gain_has_one() -> None:
    arms = [{"name": "global"}, {"name": "fielding", "clusterer": TRIGGERED}]
    table = shown(GLOBAL + FIELDING, configured=configured_arms({"arm": arms}))
    assert table.title == "x: up to 30.0 s of virtual time"
    assert lines_of(table)["fielding"][1] == "+10.0 pp (+10.0 to +10.0 by seed)"


def test_with_baselines_it_has_the_gain_over_the_best_and_marks_one_over_that_alone() -> None:
    """Over prior 5 pp in each seed; over global 12, 0, 12 pp, whose interval is wide."""
    runs = an_arm("global", 0.46, 0.7, 0.46) + FIELDING + an_arm("prior", 0.6, 0.6, 0.6)
    table = shown(runs, configured=BASELINES)
    assert table.table.headings[2] == "over the best without clusters"
    assert lines_of(table)["fielding"][2] == "+5.0 pp [+5.0, +5.0] *"
    assert lines_of(table)["prior"][2] == "the best"
    assert table.notes == ["* not measurably above every arm without clusters"]
    assert not shown(GLOBAL + FIELDING + PRIOR, configured=BASELINES).notes


def test_of_an_arm_with_a_trigger_it_has_the_range_of_its_seeds_and_in_how_many_it_fired() -> None:
    fired = [a_run("fielding", seed, [0.5, 0.5, 0.7], reclustered=seed == 1) for seed in range(3)]
    configured = configured_arms({"arm": [{"name": "global"}, {"name": "fielding", "clusterer": TRIGGERED}]})
    table = shown(GLOBAL + fired, configured=configured)
    assert table.table.headings[-1] == "re-clustered"
    cells = lines_of(table)
    assert cells["fielding"][1] == "+12.5 pp (+12.5 to +12.5 by seed)"
    assert cells["fielding"][-1] == "1/3 (1 to 91 %)"
    assert cells["global"][-1] == "-"


def test_with_one_seed_or_two_no_interval_is_promised() -> None:
    for seeds in (1, 2):
        table = shown(GLOBAL[:seeds] + FIELDING[:seeds])
        assert table.title == "x: up to 30.0 s of virtual time"
        assert lines_of(table)["fielding"] == ["47.5 %", "+10.0 pp", "70.0 %"]


def test_where_the_trace_knows_its_concepts_it_has_the_accuracies_beside_published_ones() -> None:
    runs = drifting_arm("global", 0.5, 0.5) + drifting_arm("fielding", 0.75, 0.75)
    table = shown(runs)
    assert table.title == "x: accuracy by data step, mean ± standard deviation over seeds"
    assert table.table.headings == ["omitting drift (%)", "including drift (%)", "models sent"]
    assert lines_of(table)["fielding"] == ["75.00 ± 0.00", "37.50 ± 0.00", "10 (1.00x)"]
    published = shown(runs, {"published": {"accuracy_omitting_drift": {"fielding": [74.0, 1.0]}}})
    assert published.table.headings[1:3] == ["published", "difference"]
    assert lines_of(published)["fielding"][:3] == ["75.00 ± 0.00", "74.00 ± 1.00", "+1.00"]
    assert lines_of(published)["global"][:3] == ["50.00 ± 0.00", "", ""]


def test_without_a_run_of_the_reference_arm_there_is_none_unless_concepts_are_known() -> None:
    summary = summarise(FIELDING, name="x", window=1, reference_arm="global")
    assert short_table(summary, ["global", "fielding"], {}) is None
    of_drift = shown(drifting_arm("fielding", 0.75))
    assert list(lines_of(of_drift)) == ["fielding"]


# -- of a folder --------------------------------------------------------------------------------------------


def of_folder(folder: Path) -> list[NotedTable]:
    directories = [RunDirectory(path) for path in sorted(folder.iterdir())]
    return short_folder_tables(*tables_of("x", directories))


def test_in_a_sweep_an_arm_with_a_trigger_has_the_range_of_its_seeds_and_in_how_many_it_fired(
    tmp_path: Path,
) -> None:
    for number, accuracies in ((5, ONE), (10, OTHER)):
        arms = {"global": ONE, "triggered": accuracies}
        a_measured(
            tmp_path / f"{number}", arms, swept={"round.participants": number}, round={"participants": number}
        )
    [table] = of_folder(tmp_path)
    assert table.table.headings == ["participants", "mean accuracy", "gain", "re-clustered"]
    rows = [" ".join(line for cell in cells for line in cell.lines) for _, cells in table.table.rows]
    assert "10 64.0 % +4.0 pp (+2.0 to +6.0 by seed) 0/3 (up to 71 %)" in rows


def test_the_cells_of_a_sweep_are_one_table_told_apart_by_the_swept_keys(tmp_path: Path) -> None:
    for number, accuracies in ((5, ONE), (10, OTHER)):
        values = {"round.participants": number}
        arms = {"global": ONE, "fielding": accuracies}
        a_measured(tmp_path / f"{number}", arms, swept=values, round={"participants": number})
    [table] = of_folder(tmp_path)
    assert table.title == "x: mean accuracy over virtual time, and gains; 95 % intervals in brackets"
    assert table.table.headings == ["participants", "mean accuracy", "gain"]
    rows = [(arm, *(" ".join(cell.lines) for cell in cells)) for arm, cells in table.table.rows]
    assert sorted(rows) == [
        ("fielding", "10", "64.0 %", "+4.0 pp [-1.0, +9.0]"),
        ("fielding", "5", "60.0 %", "identical"),
        ("global", "10", "60.0 %", "reference"),
        ("global", "5", "60.0 %", "reference"),
    ]


def test_experiments_with_other_traces_are_one_table_told_apart_by_their_names(tmp_path: Path) -> None:
    for name in ("one", "two"):
        a_measured(tmp_path / name, {"global": ONE, "fielding": OTHER}, trace={"source": name})
    [table] = of_folder(tmp_path)
    assert table.table.headings == ["experiment", "mean accuracy", "gain"]
    assert [cells[0].figure for _, cells in table.table.rows] == ["one", "one", "two", "two"]


def test_of_a_reference_arm_alone_differences_are_in_the_place_of_gains(tmp_path: Path) -> None:
    for number, accuracies in enumerate((ONE, OTHER)):
        a_measured(tmp_path / f"{number}", {"global": accuracies}, round={"participants": number})
    [table] = of_folder(tmp_path)
    assert table.table.headings[-1] == "difference"


def test_of_many_rows_the_first_are_shown_and_the_page_is_named(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "MOST_ROWS", 3)
    for number in range(3):
        a_measured(tmp_path / f"{number}", {"global": ONE, "fielding": OTHER}, round={"participants": number})
    [table] = of_folder(tmp_path)
    assert len(table.table.rows) == 3
    assert table.notes == ["3 more rows are in table.html."]


def personally(runs: list[ReportedRun], arm: str, *accuracy: float) -> list[ReportedRun]:
    """The same runs as those of another arm, each with a personal accuracy in all its evaluations."""
    return [
        replace(
            run,
            arm=arm,
            records=[replace(record, personal_accuracy=personal) for record in run.records],
        )
        for run, personal in zip(runs, accuracy, strict=True)
    ]


def test_if_clients_use_parameters_of_their_own_all_gains_and_sentences_are_in_what_they_use() -> None:
    """Served, `fielding` has 10 pp more than `global`; what its clients use has 2.5 pp more."""
    runs = GLOBAL + personally(FIELDING, "fielding", 0.4, 0.4, 0.4)
    table = shown(runs)
    assert table.title == (
        "x: up to 30.0 s of virtual time; 95 % intervals of gains in personal accuracy in brackets"
    )
    assert table.table.headings == ["mean accuracy", "personal accuracy", "gain"]
    assert lines_of(table) == {
        "global": ["37.5 %", "37.5 %", "reference"],
        "fielding": ["47.5 %", "40.0 %", "+2.5 pp [+2.5, +2.5]"],
    }
    summary = summarise(runs, name="x", window=1, reference_arm="global")
    gain = "fielding has a mean personal accuracy of 40.0 %, 2.5 pp [2.5, 2.5] above global"
    first, last = sentences(summary, {})
    assert first.startswith(gain)
    assert last == (
        "Personal accuracy at the horizon: fielding 40.0 %, global 50.0 %; -10.0 pp [-10.0, -10.0] "
        "over global."
    )


def test_then_the_best_without_clusters_is_chosen_by_what_clients_use_too() -> None:
    runs = GLOBAL + personally(PRIOR, "prior", 0.1, 0.1, 0.1) + FIELDING
    table = shown(runs, configured=BASELINES)
    assert table.table.headings[-2:] == ["over one model", "over the best without clusters"]
    assert lines_of(table)["global"][-1] == "the best"
    assert lines_of(table)["fielding"][-1].startswith("+10.0 pp")


def test_where_the_trace_knows_its_concepts_it_is_said_that_accuracies_are_of_served_models() -> None:
    runs = drifting_arm("global", 0.5, 0.5) + drifting_arm("fielding", 0.75, 0.75)
    assert not shown(runs).notes
    assert shown(runs[:2] + personally(runs[2:], "fielding", 0.9, 0.9)).notes == [module.OF_SERVED_MODELS]


def test_a_table_of_many_runs_has_the_personal_accuracy_of_arms_that_have_one(tmp_path: Path) -> None:
    directory = a_directory(tmp_path / "one", ["global", "fielding"], [0, 1, 2], report={"window": 1})
    hashes = {str(seed): WORLD for seed in range(3)}
    directory.manifest_path.write_text(json.dumps({"sha256": hashes}))
    for seed in range(3):
        store(directory, a_run("global", seed, [0.25, 0.5]))
        store(directory, a_run("fielding", seed, [0.5, 0.5], personal_accuracy=0.375))
    table, sections = tables_of("x", [directory])
    (short,) = short_folder_tables(table, sections)
    assert short.table.headings[-1] == "personal accuracy"
    assert [cells[-1].figure for _, cells in short.table.rows] == ["n/a", "37.5 %"]
    best, gain = of_sections(sections)
    assert best.startswith("fielding has the highest mean personal accuracy, 37.5 %, 12.5 pp above global, ")
    assert gain.startswith("Gain in served accuracy over global: ")
