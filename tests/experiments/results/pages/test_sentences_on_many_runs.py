"""What many run directories show in sentences; all of it is in their page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import driftscale
from experiments.results.many_runs.sections import compare
from experiments.results.pages import write_results
from experiments.results.pages.folder_page import folder_sentences, write_table
from experiments.results.pages.sentences import of_sections
from experiments.results.reading.run_directory import RunDirectory
from tests.experiments.results.many_runs.test_sections import ONE, OTHER, a_measured, constant
from tests.experiments.results.pages.test_sentences import numbers, text_of
from tests.experiments.synthetic_runs import a_directory, a_drifting_run, store, tables_of

CHOSEN = "(best of 2 cells each, chosen on these seeds)"


def of_folder(folder: Path) -> list[str]:
    """The sentences on the folder, which are all in its page, as is each of their numbers in a table."""
    directories = [RunDirectory(path) for path in sorted(folder.iterdir()) if path.is_dir()]
    lines = folder_sentences(*tables_of("x", directories))
    write_table(folder, directories, "x")
    text = text_of(folder / "table.html")
    assert all(line in text for line in lines)
    gains = [line for line in lines if " gain over " in line]
    without = text
    for line in lines:
        without = without.replace(line, "")
    assert numbers(" ".join(gains)) <= numbers(without)
    return lines


def a_cell(folder: Path, number: int, baselines: tuple[str, ...] = (), **ends: float) -> Any:
    """A cell of a sweep with as many participants; `ends` are the accuracies of its arms."""
    arms = [{"name": arm, **({"baseline": True} if arm in baselines else {})} for arm in ends]
    return a_measured(
        folder / f"s,participants={number}",
        {arm: constant(end, end, end) for arm, end in ends.items()},
        swept={"round.participants": number},
        name=f"s,participants={number}",
        round={"participants": number},
        arm=arms,
    )


def test_a_sweep_says_which_cell_and_arm_is_most_accurate_then_where_the_gain_is_largest(
    tmp_path: Path,
) -> None:
    """The cell with the largest gain is that with the lowest accuracies."""
    a_cell(tmp_path, 4, ("global", "tuned"), **{"global": 0.3, "tuned": 0.6, "fielding": 0.62})
    a_cell(tmp_path, 8, ("global", "tuned"), **{"global": 0.65, "tuned": 0.55, "fielding": 0.68})
    assert of_folder(tmp_path) == [
        "fielding in s,participants=8 has the highest mean accuracy, 68.0 %, 3.0 pp above global "
        "there, the best "
        f"arm without clusters {CHOSEN}.",
        "Largest gain of fielding over global: +32.0 pp [+32.0, +32.0], p < 0.001, fielding in "
        "s,participants=4 (62.0 %, global 30.0 %).",
        "Smallest gain of fielding over global: +3.0 pp [+3.0, +3.0], p < 0.001, fielding in "
        "s,participants=8 (68.0 %, global 65.0 %).",
        "2 experiments; runs: 18 finished.",
    ]


def test_gains_of_the_arm_of_a_headline_are_not_called_the_largest_of_all(tmp_path: Path) -> None:
    """That of static is larger in both cells, and is in the table."""
    for number in (4, 8):
        arms = {"global": 0.4, "static": 0.7, "fielding": 0.5 + number / 100}
        a_measured(
            tmp_path / f"{number}",
            {arm: constant(end, end, end) for arm, end in arms.items()},
            name=f"{number}",
            round={"participants": number},
            report={"headline": "fielding"},
        )
    _, largest, smallest, _ = of_folder(tmp_path)
    assert largest.startswith("Largest gain of fielding over global: +18.0 pp [+18.0, +18.0], ")
    assert smallest.startswith("Smallest gain of fielding over global: +14.0 pp [+14.0, +14.0], ")


def test_each_arm_is_taken_at_its_own_best_cell(tmp_path: Path) -> None:
    a_cell(tmp_path, 4, ("global", "tuned"), **{"global": 0.3, "tuned": 0.66, "fielding": 0.62})
    a_cell(tmp_path, 8, ("global", "tuned"), **{"global": 0.65, "tuned": 0.55, "fielding": 0.68})
    assert of_folder(tmp_path)[0] == (
        "fielding in s,participants=8 has the highest mean accuracy, 68.0 %, 2.0 pp above tuned in "
        f"s,participants=4, the best arm without clusters {CHOSEN}."
    )


def test_a_best_arm_without_clusters_is_beside_the_best_other_arm_of_any_kind(tmp_path: Path) -> None:
    for number in (4, 8):
        a_cell(tmp_path, number, ("global", "tuned"), **{"global": 0.3, "tuned": 0.7, "fielding": 0.6})
    assert of_folder(tmp_path)[0] == (
        "tuned in s,participants=4 has the highest mean accuracy, 70.0 %, 10.0 pp above fielding there, the "
        f"best other arm {CHOSEN}."
    )


def test_without_a_configured_baseline_the_rival_is_the_best_other_arm(tmp_path: Path) -> None:
    for number in (4, 8):
        a_cell(tmp_path, number, **{"global": 0.3, "static": 0.5, "fielding": 0.6})
    assert of_folder(tmp_path)[0] == (
        "fielding in s,participants=4 has the highest mean accuracy, 60.0 %, 10.0 pp above static there, the "
        f"best other arm {CHOSEN}."
    )


@pytest.mark.parametrize("headline", [None, "oracle"])
def test_an_oracle_is_not_the_most_accurate_arm_unless_a_headline_names_it(
    tmp_path: Path, headline: str | None
) -> None:
    arms = {"global": 0.3, "tuned": 0.5, "fielding": 0.6, "oracle": 0.9}
    for number in (4, 8):
        a_measured(
            tmp_path / f"{number}",
            {arm: constant(end, end, end) for arm, end in arms.items()},
            name=f"{number}",
            round={"participants": number},
            report={} if headline is None else {"headline": headline},
            arm=[
                {"name": "global", "baseline": True},
                {"name": "tuned", "baseline": True},
                {"name": "fielding", "clusterer": {"kind": "fielding"}},
                {"name": "oracle", "clusterer": {"kind": "oracle"}},
            ],
        )
    named, stated = {
        None: ("fielding in 4", "of all but oracle, 60.0 %, 10.0 pp above tuned"),
        "oracle": ("oracle in 4", "90.0 %, 40.0 pp above tuned"),
    }[headline]
    join = " " if headline is None else ", "
    assert of_folder(tmp_path)[0] == (
        f"{named} has the highest mean accuracy{join}{stated} there, the best arm without clusters {CHOSEN}."
    )


def test_an_arm_that_the_sweep_does_not_change_has_one_cell(tmp_path: Path) -> None:
    for threshold, end in ((0.1, 0.6), (0.2, 0.7)):
        own = {"kind": "fielding", "threshold": threshold}
        a_measured(
            tmp_path / f"{threshold}",
            {"global": constant(0.5, 0.5), "fielding": constant(end, end)},
            swept={"arm.fielding.clusterer.threshold": threshold},
            name=f"{threshold}",
            arm=[{"name": "global"}, {"name": "fielding", "clusterer": own}],
        )
    assert of_folder(tmp_path)[0] == (
        "fielding in 0.2 has the highest mean accuracy, 70.0 %, 20.0 pp above global in 0.1 and "
        "others, the best "
        "other arm (best of 2 and of 1 cells, chosen on these seeds)."
    )


def test_cells_on_other_traces_are_not_compared(tmp_path: Path) -> None:
    """Of four cells, the two with 200 clients are on a trace on which all is easier."""
    for clients, easier in ((100, 0.0), (200, 0.2)):
        for number in (4, 8):
            name = f"s,clients={clients},participants={number}"
            a_measured(
                tmp_path / name,
                {
                    "global": constant(*[0.4 + easier] * 3),
                    "fielding": constant(*[0.4 + number / 100 + easier] * 3),
                },
                swept={"trace.clients": clients, "round.participants": number},
                name=name,
                round={"participants": number},
                trace={"source": "t", "clients": clients},
            )
    first, second, largest, *_ = of_folder(tmp_path)
    for clients, line, accuracy in ((100, first, 48), (200, second, 68)):
        cell = f"s,clients={clients},participants=8"
        assert line.startswith(
            f"clients={clients}: fielding in {cell} has the highest mean accuracy, {accuracy}.0 %"
        )
        assert line.endswith(
            f"8.0 pp above global in s,clients={clients},participants=4, the best other arm {CHOSEN}."
        )
    assert largest.startswith("Largest gain over global: +8.0 pp")


def test_directories_with_other_devices_are_not_compared_though_their_trace_is_the_same(
    tmp_path: Path,
) -> None:
    """With faster phones all arms are more accurate."""
    for profile, ends in (("slow", (0.4, 0.5)), ("fast", (0.6, 0.62))):
        arms = {arm: constant(*[end] * 3) for arm, end in zip(("global", "fielding"), ends, strict=True)}
        a_measured(tmp_path / profile, arms, name=profile, devices={"profile": profile})
    assert of_folder(tmp_path)[:2] == [
        "profile=fast: fielding in fast has the highest mean accuracy, 62.0 %, 2.0 pp above global there, "
        "the best other arm (chosen on these seeds).",
        "profile=slow: fielding in slow has the highest mean accuracy, 50.0 %, 10.0 pp above global there, "
        "the best other arm (chosen on these seeds).",
    ]


def test_sections_are_not_compared_with_each_other(tmp_path: Path) -> None:
    for name, easier in (("easy", 0.3), ("hard", 0.0)):
        arms = {"global": constant(*[0.4 + easier] * 3), "fielding": constant(*[0.5 + easier] * 3)}
        a_measured(tmp_path / name, arms, name=name, trace={"source": name})
    assert of_folder(tmp_path)[:4] == [
        "easy: fielding has the highest mean accuracy, 80.0 %, 10.0 pp above global, the best other "
        "arm (chosen on these seeds).",
        "hard: fielding has the highest mean accuracy, 50.0 %, 10.0 pp above global, the best other "
        "arm (chosen on these seeds).",
        "easy: Gain over global: +10.0 pp [+10.0, +10.0], p < 0.001, fielding (80.0 %, global 70.0 %).",
        "hard: Gain over global: +10.0 pp [+10.0, +10.0], p < 0.001, fielding (50.0 %, global 40.0 %).",
    ]


def test_cells_with_other_seeds_say_so(tmp_path: Path) -> None:
    for number, seeds in ((4, 2), (8, 3)):
        arms = {"global": constant(*[0.5] * seeds), "fielding": constant(*[0.6] * seeds)}
        a_measured(tmp_path / f"{number}", arms, name=f"{number}", round={"participants": number})
    assert of_folder(tmp_path)[0].endswith("(best of 2 cells each, chosen on seeds that are not the same).")


def a_cell_without_tuned(folder: Path, participants: int, *options: str) -> None:
    """A cell whose arm `tuned` has no run, and whose one command had these options."""
    cell = a_cell(
        folder, participants, ("global", "tuned"), **{"global": 0.3, "tuned": 0.6, "fielding": 0.62}
    )
    for seed in (0, 1, 2):
        cell.directory.delete_run("tuned", seed)
    (cell.directory.path / "tuned").rmdir()
    manifest = json.loads(cell.directory.manifest_path.read_text())
    command = {"arguments": ["driftscale", "run", "x", *options], "started": "2026-01-31T12:00:00Z"}
    cell.directory.manifest_path.write_text(json.dumps({**manifest, "commands": [command]}))


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ("global,fielding", "tuned was not asked for"),
        ("global,tuned,fielding", "tuned has finished no seed in common with the first arm"),
    ],
)
def test_a_rival_that_was_not_asked_for_is_named_as_such(tmp_path: Path, asked: str, why: str) -> None:
    for number in (4, 8):
        a_cell_without_tuned(tmp_path, number, "--arms", asked)
    first, *_, counts = of_folder(tmp_path)
    assert first.endswith(f"the best arm without clusters of those finished {CHOSEN}; {why}.")
    assert counts == f"2 experiments; runs: 12 finished{', 6 not run' if 'tuned' in asked else ''}."
    assert ("Not finished" in text_of(tmp_path / "table.html")) == ("tuned" in asked)


def test_a_rival_that_one_of_two_cells_asked_for_is_unfinished(tmp_path: Path) -> None:
    """The second cell, which did not ask for it, does not make it one that nobody asked for."""
    a_cell_without_tuned(tmp_path, 4)
    a_cell_without_tuned(tmp_path, 8, "--arms", "global,fielding")
    first, *_ = of_folder(tmp_path)
    assert first.endswith("; tuned has finished no seed in common with the first arm.")


def test_a_comparison_concludes_as_a_folder_does(tmp_path: Path) -> None:
    cells = [
        a_cell(tmp_path, 4, **{"global": 0.3, "fielding": 0.62}),
        a_cell(tmp_path, 8, **{"global": 0.6, "fielding": 0.68}),
    ]
    compared = of_sections([compare(cells)])
    assert compared == of_folder(tmp_path)[:-1]
    assert compared[0].startswith(
        "fielding in s,participants=8 has the highest mean accuracy, 68.0 %, 8.0 pp above"
    )


def test_a_brute_force_over_the_frame_finds_the_cell_that_a_comparison_names(tmp_path: Path) -> None:
    """Twenty sweeps of four cells and three arms, with accuracies that are drawn."""
    draws = np.random.default_rng(0)
    for number in range(20):
        folder = tmp_path / f"{number}"
        for participants in (2, 4, 8, 16):
            ends = dict(zip(("global", "tuned", "fielding"), draws.uniform(0.2, 0.9, 3), strict=True))
            a_cell(folder, participants, ("global", "tuned"), **ends)
        shown = driftscale.compare(folder)
        best = shown.frame.sort_values("mean_accuracy", ascending=False)
        first, own = best.iloc[0], best.groupby("arm").first()["mean_accuracy"]
        rivals = own[["global", "tuned"]] if first.arm == "fielding" else own.drop(first.arm)
        [line, *_] = of_sections([shown.section])
        assert line.startswith(f"{first.arm} in {first.directory} has the highest mean accuracy, ")
        stated = f", {100 * first.mean_accuracy:.1f} %, {100 * (first.mean_accuracy - rivals.max()):.1f} pp "
        assert stated in line
        assert f" {rivals.idxmax()} " in line


def test_a_folder_has_the_largest_and_the_smallest_gain_of_a_section(tmp_path: Path) -> None:
    lower = {seed: [value - 0.1 for value in values] for seed, values in ONE.items()}
    for number, accuracies in enumerate((ONE, OTHER, lower)):
        arms = {"global": ONE, "fielding": accuracies, "static": ONE}
        a_measured(tmp_path / f"cell-{number}", arms, round={"participants": number})
    a_directory(tmp_path / "late", ["global"], [0])
    assert of_folder(tmp_path) == [
        "fielding in cell-1 has the highest mean accuracy, 64.0 %, 4.0 pp above global in cell-0, "
        "the best other "
        "arm (best of 3 cells each, chosen on these seeds).",
        "Largest gain over global: +4.0 pp [-1.0, +9.0], p 0.074, fielding in cell-1 (64.0 %, global "
        "60.0 %).",
        "Smallest gain over global: -10.0 pp [-10.0, -10.0], p < 0.001, fielding in cell-2 (50.0 %, global "
        "60.0 %).",
        "4 experiments; runs: 27 finished, 1 not run.",
    ]


def test_of_a_folder_with_a_headline_only_the_gains_of_its_arm_are_shown(tmp_path: Path) -> None:
    for number in range(2):
        arms = {"global": ONE, "fielding": ONE, "static": OTHER}
        report = {"headline": "fielding"}
        a_measured(tmp_path / f"cell-{number}", arms, round={"participants": number}, report=report)
    assert of_folder(tmp_path)[1:] == [
        "Gain of fielding over global: identical, in all 2 rows.",
        "2 experiments; runs: 18 finished.",
    ]


def test_a_folder_of_one_arm_has_the_cell_with_its_highest_accuracy(tmp_path: Path) -> None:
    a_measured(tmp_path / "first", {"global": ONE})
    assert of_folder(tmp_path) == [
        "global has a mean accuracy of 60.0 %.",
        "1 experiment; runs: 3 finished.",
    ]
    a_measured(tmp_path / "second", {"global": OTHER}, round={"participants": 7})
    assert of_folder(tmp_path)[0] == (  # two of one name are told apart by their folders
        "global in second has the highest mean accuracy, 64.0 % (best of 2 cells, chosen on these seeds)."
    )


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
        "Highest accuracy omitting drift: circle 75.00 % (global), sine 50.00 % (global, fielding).",
        "Within two published standard deviations of it: circle 1 of 2 methods, sine 0 of 2 methods.",
        "circle: global has the highest mean accuracy, 37.5 %, 12.5 pp above fielding, the best "
        "other arm (chosen on these seeds).",
        "sine: global has the highest mean accuracy, 25.0 %, 0.0 pp from fielding, the best other "
        "arm (chosen on "
        "these seeds).",
        "circle: Gain over global: -12.5 pp, fielding (25.0 %, global 37.5 %).",
        "sine: Gain over global: identical, fielding (25.0 %, global 25.0 %).",
        "2 experiments; runs: 4 finished.",
    ]
