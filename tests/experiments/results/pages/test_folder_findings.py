"""What was found in a folder in three lines; all of it is in its page."""

from __future__ import annotations

from pathlib import Path

from experiments.results.pages import write_results
from experiments.results.pages.folder_findings import folder_findings
from experiments.results.pages.folder_page import write_table
from experiments.results.reading.run_directory import RunDirectory
from tests.experiments.results.many_runs.test_sections import ONE, OTHER, a_measured
from tests.experiments.results.pages.test_headline import numbers, text_of
from tests.experiments.synthetic_runs import a_directory, a_drifting_run, store, tables_of


def of_folder(folder: Path) -> list[str]:
    """The findings on the folder, whose numbers of gains are all in its page."""
    directories = [RunDirectory(path) for path in sorted(folder.iterdir()) if path.is_dir()]
    counts, *lines = folder_findings(*tables_of("x", directories))
    write_table(folder, directories, "x")
    assert numbers(" ".join(lines)) <= numbers(text_of(folder / "table.html"))
    return [counts, *lines]


def test_a_folder_has_its_numbers_of_runs_and_the_largest_and_the_smallest_gain(tmp_path: Path) -> None:
    lower = {seed: [value - 0.1 for value in values] for seed, values in ONE.items()}
    for number, accuracies in enumerate((ONE, OTHER, lower)):
        arms = {"global": ONE, "fielding": accuracies, "static": ONE}
        a_measured(tmp_path / f"cell-{number}", arms, round={"participants": number})
    a_directory(tmp_path / "late", ["global"], [0])
    assert of_folder(tmp_path) == [
        "4 experiments; runs: 27 finished, 1 not run.",
        "Largest gain over global: +4.0 pp [-1.0, +9.0], p 0.074, fielding in cell-1.",
        "Smallest gain over global: -10.0 pp [-10.0, -10.0], p < 0.001, fielding in cell-2.",
    ]


def test_of_a_folder_with_a_headline_only_the_gains_of_its_arm_are_shown(tmp_path: Path) -> None:
    for number in range(2):
        arms = {"global": ONE, "fielding": ONE, "static": OTHER}
        report = {"headline": "fielding"}
        a_measured(tmp_path / f"cell-{number}", arms, round={"participants": number}, report=report)
    assert of_folder(tmp_path)[1:] == ["Gain over global: identical, in all 2 rows."]


def test_a_folder_of_one_arm_has_its_highest_and_its_lowest_accuracy(tmp_path: Path) -> None:
    a_measured(tmp_path / "first", {"global": ONE})
    assert of_folder(tmp_path) == [
        "1 experiment; runs: 3 finished.",
        "Mean accuracy: 60.0 %, global in synthetic.",
    ]
    a_measured(tmp_path / "second", {"global": OTHER}, round={"participants": 7})
    assert of_folder(tmp_path)[1:] == [  # two of one name are told apart by their folders
        "Highest mean accuracy: 64.0 %, global in second.",
        "Lowest mean accuracy: 60.0 %, global in first.",
    ]


def test_a_folder_without_a_finished_run_has_their_numbers_alone(tmp_path: Path) -> None:
    a_directory(tmp_path / "late", ["global"], [0, 1])
    assert of_folder(tmp_path) == ["1 experiment; runs: 2 not run."]


def test_a_folder_with_concepts_has_the_best_arm_of_each_and_how_they_agree_with_papers(
    tmp_path: Path,
) -> None:
    for name, shares in (("circle", (0.75, 0.5)), ("sine", (0.5, 0.5))):
        published = {"accuracy_omitting_drift": {"global": [75.0, 1.0], "fielding": [90.0, 1.0]}}
        directory = a_directory(
            tmp_path / name,
            ["global", "fielding"],
            [0],
            name=name,
            trace={"source": name},
            report={"window": 1, "published": published},
        )
        for arm, share in zip(directory.arms(), shares, strict=True):
            store(directory, a_drifting_run(arm, 0, [share] * 2, [[0, 0]] * 2))
        write_results(directory, shared_plotly=True)
    assert of_folder(tmp_path) == [
        "2 experiments; runs: 4 finished.",
        "Highest accuracy omitting drift: circle 75.00 % (global), sine 50.00 % (global, fielding).",
        "Within two published standard deviations of it: circle 1 of 2 methods, sine 0 of 2 methods.",
    ]
