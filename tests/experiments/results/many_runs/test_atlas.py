"""The columns of an atlas as they are read from run directories, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from emulator.errors import InputError
from experiments.results.many_runs.atlas import read_columns, rows_of
from experiments.results.pages import write_results
from experiments.results.statistics.atlas.verdicts import Column, verdict
from tests.experiments.atlas_runs import CHOSEN, LEVELS, SEEDS, a_column, an_arm, with_clients
from tests.experiments.synthetic_runs import a_run, store


def refusal(folder: Path) -> str:
    with pytest.raises(InputError) as refused:
        read_columns(folder)
    text = str(refused.value)
    assert "\n" not in text
    return text.replace(str(folder), "runs")


def read_one(folder: Path) -> Column:
    (column,) = read_columns(folder)
    return column


# -- what is read ------------------------------------------------------------------------------------------


def test_a_column_has_the_figures_of_the_report_by_seed(tmp_path: Path) -> None:
    """The last record has 800 bytes down, 600 up and 32 of control; 600 bytes are 15 models of 40 bytes."""
    directory = a_column(tmp_path / "swap", records=with_clients(0.5, 0.75, 0.25, 1.0))
    summary = write_results(directory)
    column = read_one(tmp_path)
    for row in summary.rows:
        assert column.figures[row.arm].accuracy == row["mean_accuracy"].per_seed == [LEVELS[row.arm]] * 3
        assert column.figures[row.arm].worst_tenth == row["worst_tenth"].mean == 0.25
        assert column.figures[row.arm].samples == row["trained_samples_per_client"].mean == 15 * 400 / 4
    assert column.figures["ifca"].sent_bytes == 800 + 600 + 32
    assert (column.name, column.report, column.rival) == ("swap", "swap/report.html", "avg+prior")
    assert (column.seeds, column.chosen_on, column.oracles) == ([0, 1, 2], [100, 101], ["oracle"])
    assert column.shared == {"horizon": "20 s", "participants": 3, "clients": 4}


def test_an_arm_with_parameters_of_its_own_is_told_by_what_its_clients_use(tmp_path: Path) -> None:
    """Their common model may be worse; whom it serves worst says nothing of them."""
    directory = a_column(tmp_path / "swap", records=with_clients(0.5, 0.75, 0.25, 1.0))
    for seed in SEEDS:
        personal = a_run("ifca", seed, [0.53, 0.53], personal_accuracy=0.875, **with_clients(0.1, 0.1, 1, 1))
        store(directory, replace(personal, header={"num_clients": 4, "num_parameters": 10}))
    figures = read_one(tmp_path).figures
    assert (figures["ifca"].accuracy, figures["ifca"].worst_tenth) == ([0.875] * 3, None)
    assert figures["avg"].worst_tenth == 0.25


def test_what_was_not_logged_is_left_out_and_a_report_that_is_not_there_is_not_linked(tmp_path: Path) -> None:
    a_column(tmp_path / "swap")
    column = read_one(tmp_path)
    assert (column.report, column.figures["ifca"].worst_tenth) == (None, None)


def test_the_rows_are_best_uses_and_arms_that_are_no_use_of_another_in_the_order_of_arms() -> None:
    arms = ["prox", "prox+prior", "avg", "avg+prior", "ifca", "ifca+prior", "oracle"]
    experiment = {"arm": list(map(an_arm, arms))}
    assert list(rows_of(experiment, {"ifca": "ifca+prior", "avg": "avg"}).items()) == [
        ("prox", "prox"),
        ("avg", "avg"),
        ("ifca", "ifca+prior"),
        ("oracle", "oracle"),
    ]


def test_an_arm_with_a_name_of_its_own_is_a_row_though_it_trains_as_another_one_would() -> None:
    """Such as one that trains otherwise for its adaptation, at rates that another was tuned to."""
    mine = {**an_arm("avg+relabelled"), "name": "mine"}
    experiment = {"arm": [an_arm("avg"), an_arm("avg+prior"), mine]}
    assert rows_of(experiment, {"avg": "avg+prior"}) == {"avg": "avg+prior", "mine": "mine"}


def test_a_baseline_is_the_same_method_as_the_arm_beside_it_that_is_none() -> None:
    arms = [{**an_arm("avg"), "baseline": True}, an_arm("avg+prior")]
    assert rows_of({"arm": arms}, {}) == {"avg": "avg"}


def test_an_arm_that_is_not_finished_in_each_seed_is_missing_and_never_zero(tmp_path: Path) -> None:
    a_column(tmp_path / "swap", finished={"ifca": [0, 2], "avg": []})
    column = read_one(tmp_path)
    assert column.rows["ifca"] == "ifca"
    assert "ifca" not in column.figures
    assert verdict(column, "ifca") is None


def test_a_run_that_was_stopped_before_its_end_is_not_finished(tmp_path: Path) -> None:
    directory = a_column(tmp_path / "swap")
    directory.run_file("ifca", 1, "DONE").unlink()
    directory.run_file("ifca", 1, "UNTIL").write_text('{"rounds": 1, "of": 2, "counted": "round"}')
    column = read_one(tmp_path)
    assert sorted(column.figures) == ["avg", "avg+prior", "ifca+prior", "oracle"]


def test_a_rival_that_is_not_finished_leaves_accuracies_and_no_words(tmp_path: Path) -> None:
    a_column(tmp_path / "swap", finished={"avg+prior": [0]})
    found = verdict(read_one(tmp_path), "ifca")
    assert found is not None
    assert (found.mean, found.word, found.regret_pp) == (pytest.approx(0.53), "", 0.0)


def test_an_arm_that_one_file_lacks_is_a_missing_cell_of_that_column_alone(tmp_path: Path) -> None:
    a_column(tmp_path / "mass")
    a_column(tmp_path / "swap", {**LEVELS, "prox": 0.5})
    mass, swap = read_columns(tmp_path)
    assert (verdict(mass, "prox"), "prox" in mass.rows) == (None, False)
    assert verdict(swap, "prox") is not None


def test_a_new_arm_changes_no_other_cell(tmp_path: Path) -> None:
    a_column(tmp_path / "before" / "swap")
    a_column(tmp_path / "after" / "swap", {**LEVELS, "prox": 0.51})
    (before,), (after,) = (read_columns(tmp_path / folder) for folder in ("before", "after"))
    for row in before.rows:
        assert verdict(before, row) == verdict(after, row)


def test_a_column_without_a_finished_arm_stands_beside_others(tmp_path: Path) -> None:
    a_column(tmp_path / "mass", finished=dict.fromkeys(LEVELS, ()))
    a_column(tmp_path / "swap")
    mass, swap = read_columns(tmp_path)
    assert (mass.figures, mass.shared["clients"], len(swap.figures)) == ({}, None, 5)


def test_a_run_without_an_evaluation_before_the_horizon_is_missing(tmp_path: Path) -> None:
    """All are first evaluated at the horizon, by which nothing has a mean over time."""
    a_column(tmp_path / "swap", report={"window": 1, "horizon_s": 10.0})
    assert refusal(tmp_path) == "runs: no arm is finished in all its seeds; driftscale run finishes them"


# -- what is refused ---------------------------------------------------------------------------------------


def test_a_folder_without_run_directories_is_refused(tmp_path: Path) -> None:
    problem = "is no folder of run directories; give the DIR of driftscale run FOLDER --out DIR"
    assert refusal(tmp_path) == f"runs: {problem}"
    a_column(tmp_path / "swap")
    for path in (tmp_path / "swap", tmp_path / "nowhere"):
        assert refusal(path) == f"runs: {problem}"


@pytest.mark.parametrize("atlas", [{}, {"seeds": [100], "best": {}}, {"rival": "avg"}, {"rival": 1}])
def test_a_file_without_a_rival_is_refused_with_the_remedy(tmp_path: Path, atlas: dict[str, Any]) -> None:
    a_column(tmp_path / "mass")
    a_column(tmp_path / "swap", atlas=atlas)
    assert refusal(tmp_path) == (
        "runs/swap/experiment.toml: has no [atlas] with the rival of its arms, and the seeds on which it was "
        "chosen; driftscale tune FOLDER chooses one"
    )


def test_a_rival_that_is_no_arm_is_refused_with_the_arms(tmp_path: Path) -> None:
    a_column(tmp_path / "swap", atlas={**CHOSEN, "rival": "ditto"})
    assert refusal(tmp_path) == (
        "runs/swap/experiment.toml: atlas.rival = 'ditto': names no arm; choices: avg, avg+prior, ifca, "
        "ifca+prior, oracle"
    )


def test_a_seed_on_which_settings_were_chosen_is_not_reported(tmp_path: Path) -> None:
    a_column(tmp_path / "swap", atlas={**CHOSEN, "seeds": [7, 2]})
    assert refusal(tmp_path) == (
        "runs/swap/experiment.toml: seed 2 is among atlas.seeds, on which its settings were chosen; run "
        "others"
    )


OTHERS: dict[str, dict[str, Any]] = {
    "different horizon, 20 s and 30 s": {
        "round": {"participants": 3, "rounds": 3, "seconds_per_round": 10},
    },
    "different horizon, 20 s and 15 s": {"report": {"window": 1, "horizon_s": 15.0}},
    "different horizon, 20 s and 2 rounds": {"round": {"participants": 3, "rounds": 2}},
    "different participants, 3 and 4": {
        "round": {"participants": 4, "rounds": 2, "seconds_per_round": 10},
    },
    "different clients, 4 and 8": {"header": {"num_clients": 8}, "records": {"members": None}},
    "no arm in common": {
        "levels": {"other": 0.5},
        "atlas": {"seeds": [100], "rival": "other"},
    },
}


@pytest.mark.parametrize("problem", OTHERS)
def test_columns_that_cannot_stand_beside_each_other_are_refused_with_both_files(
    tmp_path: Path, problem: str
) -> None:
    a_column(tmp_path / "mass")
    a_column(tmp_path / "swap", **OTHERS[problem])
    assert refusal(tmp_path) == (
        f"runs/mass/experiment.toml and runs/swap/experiment.toml have {problem}; the columns of an atlas "
        f"have the same: keep them in folders of their own"
    )


def test_a_horizon_that_is_asked_for_in_both_files_may_lie_in_rounds_of_other_lengths(tmp_path: Path) -> None:
    report = {"window": 1, "horizon_s": 20.0}
    a_column(tmp_path / "mass", report=report)
    a_column(tmp_path / "swap", report=report, round={"participants": 3, "rounds": 50})
    assert [column.shared["horizon"] for column in read_columns(tmp_path)] == ["20 s", "20 s"]


def test_a_damaged_log_is_named(tmp_path: Path) -> None:
    directory = a_column(tmp_path / "swap")
    directory.run_file("ifca", 0, "log.jsonl").write_text("{}")
    assert "log.jsonl" in refusal(tmp_path)


def test_means_begin_where_the_last_arm_is_first_evaluated_as_in_the_report(tmp_path: Path) -> None:
    directory = a_column(tmp_path / "swap", report={"window": 1, "horizon_s": 30.0})
    for arm in LEVELS:
        for seed in SEEDS:
            first = None if arm == "ifca" else 0.1
            store(directory, replace(a_run(arm, seed, [first, 0.6, 0.6]), header={"num_clients": 4}))
    assert read_one(tmp_path).figures["avg"].accuracy == pytest.approx([0.6] * 3)
