import csv
import html
import io
import re
from urllib.parse import unquote

import pytest

from experiments.results.pages import write_report
from experiments.results.reading.configured_arms import configured_arms
from experiments.results.tables.seeds import seed_columns
from experiments.results.tables.summary import summarise
from tests.experiments.synthetic_runs import a_directory, a_run, store


def a_summary(**settings):
    runs = [
        a_run(arm, seed, values)
        for arm, values in {"global": [0.25, 0.25, 0.25], "fielding": [0.25, 0.75, 0.75]}.items()
        for seed in (3, 5)
    ]
    return summarise(runs, name="run", window=1, reference_arm="global", targets=[0.5], **settings)


def rows_of(summary):
    columns = seed_columns(summary)
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def test_a_row_has_the_figures_of_its_arm_and_seed_with_bounds_apart():
    rows = rows_of(a_summary())
    assert [(row["arm"], row["seed"]) for row in rows] == [
        *(("global", 3), ("global", 5)),
        *(("fielding", 3), ("fielding", 5)),
    ]
    # Evaluated at 10, 20 and 30 s: the comparison is from 10 to 30 s.
    assert [row["mean_accuracy"] for row in rows] == [0.25, 0.25, 0.5, 0.5]
    assert [row["gain_pp"] for row in rows] == [None, None, 25.0, 25.0]
    assert [row["time_below_target_1_s"] for row in rows] == [30.0, 30.0, 20.0, 20.0]
    assert [(row["held_from_target_1_at_least_s"], row["held_from_target_1_at_most_s"]) for row in rows] == [
        *((30.0, None), (30.0, None)),
        *((20.0, 20.0), (20.0, 20.0)),
    ]
    assert [row["upload_bytes"] for row in rows] == [900.0] * 4
    assert [row["without_visits"] for row in rows] == [0.25] * 4


def test_gains_over_arms_without_clusters_have_columns_where_there_are_baselines():
    arms = [{"name": "global", "clusterer": {"kind": "single"}, "baseline": True}]
    arms += [{"name": "fielding", "clusterer": {"kind": "fielding"}}]
    rows = rows_of(a_summary(configured=configured_arms({"arm": arms})))
    for gain in ("gain_over_best_pp", "gain_of_clusters_pp"):
        assert [row[gain] for row in rows] == [None, None, 25.0, 25.0]
    assert [row["gap_closed"] for row in rows] == [None] * 4
    assert not {"gain_over_best_pp", "gap_closed"} & seed_columns(a_summary()).keys()


@pytest.mark.slow
def test_the_csv_in_the_page_has_the_unrounded_numbers_of_the_table(tmp_path):
    directory = a_directory(tmp_path, ["global", 'a "b", c'], [0], report={"window": 1})
    store(directory, a_run("global", 0, [0.1, 1 / 3]))
    store(directory, a_run('a "b", c', 0, [0.2, 2 / 3]))
    page = write_report(directory).read_text(encoding="utf-8")
    [(url, file)] = re.findall(r'<a href="data:text/csv;charset=utf-8,([^"]*)" download="([^"]*)"', page)
    rows = list(csv.DictReader(io.StringIO(unquote(url))))
    assert html.unescape(file) == "synthetic-seeds.csv"
    assert [row["arm"] for row in rows] == ["global", 'a "b", c']
    assert [float(row["final_accuracy"]) for row in rows] == [1 / 3, 2 / 3]
    assert rows[0]["gain_pp"] == ""
