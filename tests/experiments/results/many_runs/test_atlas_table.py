"""The tables of an atlas: its cells, rows and captions as text."""

from __future__ import annotations

from dataclasses import replace

import pytest

from experiments.results.many_runs.atlas_table import (
    FEW_NOTE,
    LIST_NOTE,
    RANKS_NOTE,
    atlas_json,
    atlas_tables,
    counted,
    in_lines,
    shown,
)
from experiments.results.statistics.atlas.verdicts import Column, Figures, Paired, Verdict
from experiments.results.tables.cells import Cell


def column(name: str, levels: dict[str, float], *, rival: str = "avg", seeds: int = 6) -> Column:
    """A column in whose seeds each method has the same accuracy; the best one has a trigger."""
    found = {
        arm: Figures([level] * seeds, arm == "fielding", 2e6, 1500.0, None) for arm, level in levels.items()
    }
    rows = {arm: arm for arm in levels}
    oracles = [arm for arm in levels if arm == "oracle"]
    return Column(name, None, {}, list(range(seeds)), [100, 101], rival, rows, oracles, found)


MASS = column("mass", {"avg": 0.5, "fielding": 0.53, "oracle": 0.9})
SWAP = column("swap", {"avg": 0.5, "fielding": 0.502, "oracle": 0.9, "apfl": 0.4})


def test_a_cell_has_accuracy_word_and_difference_and_says_if_it_is_of_the_median() -> None:
    by_mean = Paired(2.04, (1.5, 2.5), 0.95, by_ranks=False)
    ahead = Verdict("a", 0.512, 10, 0.0, "ahead", by_mean)
    assert shown(ahead, "a") == Cell("51.2", "ahead", "+2.0 [+1.5, +2.5]")
    by_median = Paired(-2.0, None, None, by_ranks=True)
    behind = Verdict("a+tuned", 0.5, 4, 0.0, "open", by_median)
    assert shown(behind, "a") == Cell("50.0 +tuned", "open, median", "-2.0")
    rival = Verdict("other", 0.5, 4, 1.0, "rival")
    assert [shown(rival, "a").lines, shown(None).lines] == [["50.0 other", "rival"], ["-"]]


def test_what_failed_and_what_was_not_tuned_is_told() -> None:
    figures = {"a": Figures([0.5], has_trigger=False, sent_bytes=1.0, samples=None, worst_tenth=None)}
    rows = {"a": "a", "b": "b", "c": "c"}
    column = Column("swap", None, {}, [0], [1], "a", rows, [], figures, failed=["b"], untuned=["c"])
    notes = "\n".join(atlas_tables([column])["words"].notes)
    assert "Missing in swap: b has failed in a seed; c is not finished in every seed." in notes
    assert "Not tuned in swap: c." in notes


def test_a_row_reads_as_a_sentence() -> None:
    words = {"ahead": 5, "level": 3, "behind": 2, "open": 2, "rival": 0}
    assert counted(words, 12) == "ahead in 5, level in 3, behind in 2, open in 2"
    assert counted({**words, "open": 0, "rival": 1}, 12) == (
        "ahead in 5, level in 3, behind in 2, open in 0, rival in 1, no word in 1"
    )


def test_the_tables_have_words_by_drift_a_row_over_all_drifts_and_oracles_apart() -> None:
    tables = atlas_tables([MASS, SWAP])
    assert in_lines(tables["words"].table) == (
        ["method", "mass", "swap"],
        [
            ["avg", "50.0, rival", "50.0, rival"],
            ["fielding", "53.0, ahead, median, +3.0 [+3.0, +3.0]", "50.2, level, median, +0.2 [+0.2, +0.2]"],
            ["apfl", "-", "40.0, behind, -10.0 [-10.0, -10.0]"],
        ],
    )
    headings, rows = in_lines(tables["standings"].table)
    assert headings == [
        *("method", "beside the rival", "mean regret", "worst", "within a point of the best"),
        *("bytes", "samples per client"),
    ]
    words = "ahead in 0, level in 0, behind in 0, open in 0, rival in 2"
    assert rows[0] == ["avg", words, "1.6", "3.0 (mass)", "1 of 2", "2.00 MB", "1,500"]
    assert rows[2][1:5] == [
        "ahead in 0, level in 0, behind in 1, open in 0, no word in 1",
        *("10.2", "10.2 (swap)", "0 of 1"),
    ]
    assert in_lines(tables["oracles"].table)[1] == [["oracle", "90.0", "90.0"]]
    assert "oracles" not in atlas_tables([column("mass", {"avg": 0.5})])


def test_the_notes_say_ranks_and_coverage_rivals_seeds_and_what_is_missing() -> None:
    unfinished = {arm: found for arm, found in SWAP.figures.items() if arm not in ("avg", "oracle")}
    notes = " ".join(atlas_tables([MASS, replace(SWAP, figures=unfinished)])["words"].notes)
    assert "(k = 1 of 6), which holds their median at 96.9 % whatever the law" in notes
    assert "Rivals: avg in mass, swap. Seeds: 6 in each column" in notes
    assert "chosen on others (100, 101)" in notes
    assert "No words in swap: its rival avg is not finished in every seed." in notes
    assert "Missing in swap: avg is not finished in every seed; oracle is not finished" in notes
    assert "Missing in mass: apfl is no arm of the file." in notes
    without = " ".join(atlas_tables([column("mass", {"avg": 0.5, "ifca": 0.6})])["words"].notes)
    assert "Median:" not in without


def test_under_six_seeds_with_a_trigger_the_note_says_why_they_are_open() -> None:
    few = column("mass", {"avg": 0.5, "fielding": 0.6}, seeds=5)
    tables = atlas_tables([few])
    assert in_lines(tables["words"].table)[1][1] == ["fielding", "60.0, open, median, +10.0"]
    assert [note for note in tables["words"].notes if note.startswith("Median")] == [FEW_NOTE]
    both = atlas_tables([replace(few, name="few"), MASS])["words"].notes
    assert [note[:40] for note in both if note.startswith("Median")] == [RANKS_NOTE[:40], FEW_NOTE[:40]]
    assert "(k = 1 of 6)" in both[1]


def test_the_worst_tenth_is_a_column_where_it_is_logged() -> None:
    logged = {arm: replace(found, worst_tenth=0.25) for arm, found in MASS.figures.items()}
    headings, rows = in_lines(atlas_tables([replace(MASS, figures=logged)])["standings"].table)
    assert rows[0][headings.index("worst tenth of clients")] == "25.0 %"


def test_the_caption_says_why_there_is_no_test_over_drifts() -> None:
    """Nemenyi: q sqrt(k (k + 1) / (6 N)), with q the studentized range over sqrt(2)."""
    from scipy.stats import studentized_range

    q = studentized_range.ppf(0.95, 20, 10**9) / 2**0.5
    assert q * (20 * 21 / (6 * 12)) ** 0.5 == pytest.approx(8.6, abs=0.05)
    assert "20 methods and 12 drifts, mean ranks would have to be 8.6 of at most 19 apart" in LIST_NOTE
    assert LIST_NOTE in atlas_tables([MASS])["standings"].notes


def test_the_json_has_columns_cells_and_standings() -> None:
    content = atlas_json("runs", [MASS, SWAP])
    assert list(map(Column.from_json, content["columns"])) == [MASS, SWAP]
    assert list(content["cells"]["apfl"]) == ["swap"]
    assert content["cells"]["fielding"]["mass"] == {
        "arm": "fielding",
        "mean": pytest.approx(0.53),
        "seeds": 6,
        "regret_pp": 0.0,
        "word": "ahead",
        "paired": {"centre_pp": 3.0, "interval": (3.0, 3.0), "level": 0.96875, "by_ranks": True},
    }
    assert sorted(content["standings"]) == ["apfl", "avg", "fielding"]
    assert content["standings"]["avg"]["worst_in"] == "mass"
