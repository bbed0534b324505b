from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from experiments.tuning.command import Tuned
from experiments.tuning.halving import choose
from experiments.tuning.rows import RATE, Row, Setting, Try
from experiments.tuning.table import as_json, as_markdown, notes, num_runs, table_rows

NUMBER = "clusterer.num_models"


def tuned() -> Tuned:
    """Two rates with two numbers; the last diverged, and the first two are played on both seeds, and tie."""
    settings = [
        Setting({RATE: rate, NUMBER: number}, [Try(f"a-{rate}-{number}", "a", None, {}, {})])
        for rate in (0.05, 0.2)
        for number in (2, 4)
    ]
    row = Row("a", True, False, {RATE: (0.05, 0.2), NUMBER: (2, 4)}, {}, settings)
    first = dict(zip([setting.names[0] for setting in settings], [0.5, 0.75, 0.25, None], strict=True))
    scores = {"a-0.05-2": {7: 0.5, 8: 0.75}, "a-0.05-4": {7: 0.75, 8: 0.5}}
    choice = choose(settings[:2], scores, [7, 8])
    member = SimpleNamespace(experiment=SimpleNamespace(name="swap"), path=Path("mine/swap.toml"))
    column: Any = SimpleNamespace(rows=[row], settings=settings, member=member)
    return Tuned(
        column=column,
        first={arm: {7: score} for arm, score in first.items()},
        finals={"a": settings[:2]},
        scores=cast(Any, scores),
        chosen={"a": choice},
        rival="a",
        file=Path("mine/chosen/swap.toml"),
    )


def test_a_line_has_a_rate_with_all_values_of_the_number() -> None:
    low, high = table_rows(tuned(), [7, 8])
    assert low == {
        "arm": "a",
        "rate": "0.05",
        "number": "clusterer.num_models = 2, 4",
        "seed 7 (%)": "50.00, 75.00",
        "2 seeds (%)": "62.50, 62.50",
        "chosen": "0.05, 2: a",
    }
    assert (high["seed 7 (%)"], high["2 seeds (%)"], high["chosen"]) == ("25.00, diverged", "-, -", "")


def test_the_runs_are_those_of_halving_beside_the_whole_grid() -> None:
    assert num_runs(tuned(), [7, 8]) == (4 + 2, 8)
    assert notes(tuned(), [7, 8]) == [
        "a: 0.05, 2 is as good as 0.05, 4, and smaller",
        "rival: a",
        "trainings: 6 of the 8 of the whole grid (75 %)",
        "written: mine/chosen/swap.toml",
    ]


def test_nine_settings_on_three_seeds_take_55_percent_of_the_grid() -> None:
    settings = [Setting({}, []) for _ in range(9)]
    column: Any = SimpleNamespace(settings=settings)
    of = Tuned(column, {}, {"a": settings[:3]}, {}, {}, None, None)
    assert num_runs(of, [100, 101, 102]) == (15, 27)


def test_json_has_every_score_and_what_was_chosen() -> None:
    facts = as_json(tuned(), [7, 8])
    assert facts["first_seed"] == {"a-0.05-2": 0.5, "a-0.05-4": 0.75, "a-0.2-2": 0.25, "a-0.2-4": None}
    assert facts["all_seeds"] == {"a-0.05-2": [0.5, 0.75], "a-0.05-4": [0.75, 0.5]}
    assert facts["rows"]["a"] == {
        "values": {RATE: 0.05, NUMBER: 2},
        "best": "a",
        "mean": 0.625,
        "uses": {"a": None},
        "ties": [{RATE: 0.05, NUMBER: 4}],
    }


def test_markdown_is_the_same_table() -> None:
    assert as_markdown([{"arm": "a", "rate": "0.05"}], "swap", ["rival: a"]).splitlines() == [
        "## swap",
        "",
        "| arm | rate |",
        "| --- | --- |",
        "| a | 0.05 |",
        "",
        "- rival: a",
    ]
