"""What was found in three lines, of a run directory and of a folder; all of it is in the report."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from experiments.results.pages import write_results
from experiments.results.pages.findings import findings, folder_findings
from experiments.results.pages.folder_page import write_table
from experiments.results.pages.headline import sentences
from experiments.results.reading.configured_arms import configured_arms
from experiments.results.reading.run_directory import ReportedRun, RunDirectory
from experiments.results.tables.summary import summarise
from tests.experiments.results.many_runs.test_sections import ONE, OTHER, a_measured
from tests.experiments.results.pages.test_headline import (
    ARMS,
    BASELINES,
    FIELDING,
    GLOBAL,
    PRIOR,
    an_arm,
    drifting_arm,
)
from tests.experiments.synthetic_runs import (
    a_directory,
    a_drifting_run,
    a_run,
    realistic_directory,
    store,
    tables_of,
)

OVER = "(3 seeds, up to 30.0 s of virtual time)"


def found(runs: list[ReportedRun], reference_arm: str = "global", **settings: Any) -> list[str]:
    """The findings on these runs, without smoothing."""
    return findings(summarise(runs, name="x", window=1, reference_arm=reference_arm, **settings), {})


def numbers(text: str) -> set[str]:
    """The numbers in a text, with their signs."""
    return set(re.findall(r"[+-]?\d+(?:[.,]\d+)*", text))


# -- of a run directory -------------------------------------------------------------------------------------


def test_the_arm_of_the_headline_is_compared_with_the_reference_then_with_the_best_then_by_time() -> None:
    lines = found(GLOBAL + FIELDING + PRIOR, configured=BASELINES, headline="fielding", targets=[0.4, 0.6])
    assert lines == [
        f"fielding has a mean accuracy of 47.5 %, 10.0 pp [10.0, 10.0] above global {OVER}.",
        "fielding is 5.0 pp [0.0, 10.0] above prior, the best arm without clusters.",
        "Time to hold 60.0 %: fielding 20.0 s [20.0, 20.0 at 75.0 %] (3/3 seeds), global >= 30.0 s "
        "(0/3 seeds); speed-up >= 1.50x.",
    ]


def test_a_verdict_is_that_of_the_headline() -> None:
    # Over prior 5 pp in each seed; over global 12, 0, 12 pp, whose mean is larger and whose interval is wide.
    runs = an_arm("global", 0.46, 0.7, 0.46) + FIELDING + an_arm("prior", 0.6, 0.6, 0.6)
    summary = summarise(
        runs, name="x", window=1, reference_arm="global", configured=BASELINES, headline="fielding"
    )
    [headline, *_] = sentences(summary)
    over_global, over_best, _ = findings(summary, {})
    verdict = (
        "not measurably above the best arm without clusters (+5.0 pp [+5.0, +5.0] over prior, but not "
        "measurably above global)."
    )
    assert over_best == f"fielding is {verdict}"
    assert headline.endswith(verdict)
    assert "neither measurably above nor below (+8.0 pp [-9.2, +25.2]) global" in over_global
    assert "neither measurably above nor below (+8.0 pp [-9.2, +25.2]) global" in headline


def test_a_reference_that_is_the_best_without_clusters_is_named_once() -> None:
    configured = configured_arms({"arm": [ARMS[0], ARMS[2]]})
    lines = found(GLOBAL + FIELDING, configured=configured, headline="fielding")
    assert lines == [
        "fielding has a mean accuracy of 47.5 %, 10.0 pp [10.0, 10.0] above global, which is also the best "
        f"arm without clusters {OVER}.",
        "Accuracy at the horizon: fielding 70.0 %, global 50.0 %; +20.0 pp [+20.0, +20.0].",
    ]


def test_an_arm_that_is_the_best_without_clusters_says_so() -> None:
    lines = found(GLOBAL + FIELDING + PRIOR, configured=BASELINES, headline="prior")
    assert lines[1] == "prior is the best arm without clusters."


def test_baselines_that_are_not_finished_are_named() -> None:
    first, second, _ = found(GLOBAL + FIELDING, configured=BASELINES, headline="fielding")
    assert first.endswith(
        f"above global, which is also the best arm without clusters of those finished {OVER}."
    )
    assert second == "prior has finished no seed in common with the first arm."
    of_prior = configured_arms({"arm": ARMS[1:]})
    runs = an_arm("slow", 0.4, 0.4, 0.4) + FIELDING
    assert found(runs, "slow", configured=of_prior, headline="fielding")[1] == (
        "The gain of fielding over the best arm without clusters is not known: prior has finished no seed in "
        "common with the first arm."
    )


def test_without_a_headline_the_arm_with_the_largest_gain_is_shown_as_chosen() -> None:
    runs = GLOBAL + an_arm("low", 0.55, 0.55, 0.55) + an_arm("high", 0.6, 0.6, 0.6)
    assert found(runs)[0] == (
        f"high, the arm with the largest gain, has a mean accuracy of 42.5 %, 5.0 pp [5.0, 5.0] above global "
        f"{OVER}."
    )
    assert found(GLOBAL + FIELDING)[0].startswith("fielding has a mean accuracy of")  # nothing was chosen


def test_after_a_mass_event_the_gain_is_stated_where_there_is_no_other_baseline() -> None:
    runs = [a_run("global", seed, [0.5, 0.5, 0.25, 0.25, 0.25]) for seed in range(3)]
    runs += [a_run("fielding", seed, [0.5, 0.5, 0.25, 0.75, 0.75]) for seed in range(3)]
    assert (
        found(runs, event_rounds=[2])[1]
        == "After the mass event, fielding is 16.7 pp [16.7, 16.7] above global."
    )


def test_a_single_seed_has_no_interval_and_no_values_of_single_seeds() -> None:
    lines = found(GLOBAL[:1] + FIELDING[:1], targets=[0.6])
    assert lines == [
        "fielding has a mean accuracy of 47.5 %, 10.0 pp (no interval: under three seeds) above global (1 "
        "seed, up to 30.0 s of virtual time).",
        "Time to hold 60.0 %: fielding 20.0 s (1/1 seeds), global >= 30.0 s (0/1 seeds); speed-up >= 1.50x.",
    ]
    two = found(GLOBAL[:2] + FIELDING[:2])
    assert two[1] == "Accuracy at the horizon: fielding 70.0 %, global 50.0 %; +20.0 pp."


def test_the_highest_target_that_an_arm_holds_is_shown_with_the_direction_of_its_bounds() -> None:
    """One that nobody holds says less than the final accuracy."""
    early = [a_run("early", seed, [0.7, 0.7, 0.7]) for seed in range(3)]
    assert found(GLOBAL + early, targets=[0.3, 0.6, 0.9])[-1] == (
        "Time to hold 60.0 %: early <= 10.0 s (3/3 seeds), global >= 30.0 s (0/3 seeds); speed-up >= 3.00x."
    )
    assert found(GLOBAL + early, targets=[0.9])[-1].startswith("Accuracy at the horizon: early 70.0 %, ")
    assert found(GLOBAL + early, targets=["reference"])[-1].startswith(
        "Time to hold global's accuracy at the horizon (50.0 %): early <= 10.0 s (3/3 seeds), global 20.0 s "
    )


def test_a_reference_arm_alone_is_compared_with_nothing() -> None:
    assert found(GLOBAL) == ["global ends at 50.0 %; no other arm has finished a seed to compare with it."]
    assert found(GLOBAL, targets=[0.4])[1:] == [
        "Time to hold 40.0 %: global 20.0 s [20.0, 20.0 at 75.0 %] (3/3 seeds)."
    ]


def test_a_headline_on_the_reference_arm_or_on_one_that_has_not_run_says_so() -> None:
    assert found(GLOBAL + FIELDING, headline="global") == [
        f"global, the first arm, has a mean accuracy of 37.5 % {OVER}.",
        "Accuracy at the horizon: global 50.0 %.",
    ]
    absent = found(GLOBAL + FIELDING, headline="absent")
    assert absent[0].startswith("absent, the arm of the headline, has finished no seed")
    assert absent[1].startswith("fielding has a mean accuracy of 47.5 %, ")


def test_runs_that_cannot_be_compared_have_one_line() -> None:
    late = [a_run("late", 0, [None, None, 0.5])]
    assert found([a_run("global", 0, [0.5]), *late]) == [
        "The runs have no stretch of virtual time in common: nothing can be compared."
    ]
    assert found(FIELDING) == ["No run of the reference arm 'global' is finished: nothing is compared."]


def test_where_the_trace_knows_its_concepts_the_accuracy_omitting_drift_comes_first() -> None:
    runs = drifting_arm("global", 0.5, 0.5) + drifting_arm("good", 0.75, 0.75)
    first, second, third = found(runs)
    assert first.startswith("good has the highest accuracy omitting drift, 75.00 ± 0.00 %; global, ")
    assert second.startswith("good has a mean accuracy of ")
    assert third.startswith("Accuracy at the horizon: good ")
    without_reference, nothing = found(drifting_arm("good", 0.75, 0.75))
    assert without_reference == "good has the highest accuracy omitting drift, 75.00 ± 0.00 %."
    assert nothing.startswith("No run of the reference arm 'global' is finished")


def test_there_are_at_most_three_lines() -> None:
    runs = [run for arm in ("global", "prior", "fielding") for run in drifting_arm(arm, 0.5, 0.6, 0.7)]
    lines = found(runs, configured=BASELINES, headline="fielding", targets=[0.3])
    assert len(lines) == 3
    assert "omitting drift" in lines[0]


def text_of(page: Path) -> str:
    """The text of a page, without its markup and scripts."""
    content = re.sub(r"<script.*?</script>", " ", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]+>", " ", content))


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [1, 2, 4])
def test_every_number_of_the_findings_is_in_the_report(tmp_path: Path, seeds: int) -> None:
    directory = realistic_directory(tmp_path, seeds=seeds, rounds=40, clients=20)
    experiment = directory.experiment()
    experiment["report"] |= {"targets": [0.4, 0.5, "reference"], "headline": "fielding"}
    for arm in experiment["arm"][:2]:
        arm["baseline"] = True
    directory.experiment_path.write_text(tomli_w.dumps(experiment), encoding="utf-8")
    lines = findings(write_results(directory, shared_plotly=True), experiment["report"])
    assert len(lines) == 3
    assert numbers(" ".join(lines)) <= numbers(text_of(directory.report_path))


# -- of a folder --------------------------------------------------------------------------------------------


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
