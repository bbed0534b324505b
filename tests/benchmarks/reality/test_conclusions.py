"""How conclusions and times to a target are read, on made figures, and that what is played is shipped."""

import math
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from benchmarks.reality.conclusions import WHAT, Sentence, figures, played, spread, tables, time_cell
from experiments.reading import read_table
from experiments.results.statistics.medians import Bounds, exactly
from experiments.shipped import shipped_files


def sentence(figure: str, *, above: float = 0.0, below: float = math.inf, denied: bool = False) -> Sentence:
    return Sentence("One is so.", "e/one", "e/two", figure, above, below, denied)


def outcome(
    figure: str, one: list[Bounds], two: list[Bounds]
) -> dict[tuple[str, str], dict[str, list[Bounds]]]:
    return {("none", "e/one"): {figure: one}, ("none", "e/two"): {figure: two}}


def all_at(number: float, count: int = 10) -> list[Bounds]:
    return [exactly(number)] * count


def test_a_sentence_holds_where_nine_of_ten_seeds_agree() -> None:
    two = all_at(0.50)
    nine = outcome("mean_accuracy", all_at(0.52, 9) + all_at(0.49, 1), two)
    eight = outcome("mean_accuracy", all_at(0.52, 8) + all_at(0.49, 2), two)

    assert sentence("mean_accuracy").cell(nine, "none") == "2.0 (-1.0 to 2.0); 9/10"
    assert sentence("mean_accuracy").cell(eight, "none") == "**fails**: 2.0 (-1.0 to 2.0); 8/10"
    assert sentence("mean_accuracy", denied=True).cell(eight, "none") == "2.0 (-1.0 to 2.0); 8/10"
    assert sentence("mean_accuracy", above=-1.0, below=1.0).cell(nine, "none").startswith("**fails**")


def test_times_are_the_other_arms_over_the_arms_and_counts_the_arms_over_the_other_arms() -> None:
    times = outcome("first_reached_s@0.5", all_at(100.0), [*all_at(150.0, 9), Bounds(400.0, math.inf)])
    counts = outcome("absorbed_updates", all_at(300.0), all_at(200.0))

    assert sentence("first_reached_s@0.5", above=1.0).cell(times, "none") == "1.50 (1.50 to >= 4.00); 10/10"
    assert sentence("absorbed_updates", above=1.0).cell(counts, "none") == "1.50 (1.50 to 1.50); 10/10"


def test_times_after_the_horizon_keep_their_direction_and_are_counted() -> None:
    times = [exactly(200.0), exactly(100.0), Bounds(400.0, math.inf)]

    assert time_cell(times, all_at(100.0, 3)) == "0.69 (0.00 to >= 1.39); 1 later"


def test_a_number_is_shown_as_far_as_it_is_known() -> None:
    assert spread([exactly(1.0)] * 2 + [exactly(3.0)], 1) == "1.0 (1.0 to 3.0)"
    assert (
        spread([Bounds(-math.inf, 2.0), Bounds(1.0, 2.0), Bounds(1.0, math.inf)], 0) == "1 … 2 (<= 2 to >= 1)"
    )
    assert spread([Bounds(-math.inf, math.inf)], 2) == "? (? to ?)"


class MadeResults:
    """Two arms and two seeds, out of order."""

    summary = pd.DataFrame(
        [
            ("one", seed, figure, target, low, low)
            for seed in (1, 0)
            for figure, target, low in (
                ("rounds", None, 10.0 * (seed + 1)),
                ("first_reached_s", 0.5, 7.0 + seed),
            )
        ]
        + [("two", 0, "rounds", None, 5.0, 5.0)],
        columns=["arm", "seed", "figure", "target", "low", "high"],
    )


def test_figures_of_an_arm_are_in_order_of_seeds_and_have_the_mean_round() -> None:
    assert figures(MadeResults(), "one", 100.0) == {  # type: ignore[arg-type]
        "rounds": [exactly(10.0), exactly(20.0)],
        "first_reached_s@0.5": [exactly(7.0), exactly(8.0)],
        "round_s": [exactly(10.0), exactly(5.0)],
    }


def test_the_arms_are_shipped_ones_and_each_has_its_row_and_its_sentences() -> None:
    arms = []
    for name, what in WHAT["experiment"].items():
        shipped = {arm["name"] for arm in read_table(shipped_files()[what["config"]])["arm"]}
        assert set(what["targets"]) <= shipped, name
        arms += [f"{name}/{arm}" for arm in what["targets"]]
    same = {(level, arm): defaultdict(lambda: all_at(1.0)) for level in WHAT["level"] for arm in arms}

    made = tables(same)["tables"]

    assert [len(made[name]["rows"]) for name in ("sentences", "times")] == [len(WHAT["sentence"]), len(arms)]
    assert {tuple(row[1:]) for row in made["times"]["rows"]} == {
        ("0.00 (0.00 to 0.00)",) * len(WHAT["level"])
    }
    assert {cell.rpartition("/")[2] for row in made["sentences"]["rows"] for cell in row[1:]} == {"10"}


def test_all_levels_are_read_up_to_the_second_that_every_run_reaches(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first level ends at 90.9 s, each further one a second later."""
    reports: list[dict[str, Any]] = []

    def run(config: str, settings: dict[str, Any], *arguments: Any, **options: Any) -> Any:
        reports.append(settings)
        ends = {"arm": ["global"] * 2, "seed": [0, 1], "closed_s": [90.9 + len(reports) - 1, 200.0]}
        rounds = [(arm, 0, "rounds", math.nan, 10.0, 10.0) for arm in options["arms"]]
        summary = pd.DataFrame(rounds, columns=MadeResults.summary.columns)
        return SimpleNamespace(rounds=pd.DataFrame(ends), summary=summary)

    monkeypatch.setattr("driftscale.run", run)
    outcomes = played(Path("runs"), "random")
    levels = len(WHAT["level"])
    assert ["report.horizon_s" in settings for settings in reports] == [False] * levels + [True] * levels
    assert {settings["report.horizon_s"] for settings in reports[levels:]} == {90}
    assert outcomes["none", "random/global"]["round_s"] == [exactly(9.0)]
