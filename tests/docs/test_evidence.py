"""The tables of measured figures are those of docs/evidence, and those of a run are made as its report is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from docs.writing.evidence import KEPT, MARKED, as_text, marked_pages, rendered, stored, taken, written
from emulator.errors import InputError
from experiments.running.command_facts import is_commit
from tests.docs.blocks import ROOT, documented_files

FILES = stored()
TABLES = {(name, key): table for name, file in FILES.items() for key, table in file["tables"].items()}


def test_each_marked_table_is_as_its_file_says() -> None:
    stale = [page for page, text in marked_pages().items() if text != (ROOT / page).read_text("utf-8")]
    assert stale == [], "not as docs/evidence says; change that, and run `make evidence`"


def test_each_table_of_a_file_is_marked_on_one_page() -> None:
    texts = [(ROOT / page).read_text("utf-8") for page in documented_files()]
    assert sorted(match[:2] for text in texts for match in MARKED.findall(text)) == sorted(TABLES)


def test_the_commands_of_a_table_stand_on_its_page() -> None:
    for where, table in TABLES.items():
        page = " ".join((ROOT / table["page"]).read_text("utf-8").replace("\\\n", " ").split())
        assert [command for command in table["commands"] if command not in page] == [], where


def test_a_file_is_typed_in_or_says_by_which_commit_it_was_played() -> None:
    for name, file in FILES.items():
        assert file.get("typed_in", False) != is_commit(file.get("commit", "")), name
        assert (ROOT / f"docs/evidence/{name}.json").read_text("utf-8") == as_text(file) + "\n"
    for (name, key), table in TABLES.items():
        if "header" in table:
            assert {len(row) for row in table["rows"]} == {len(table["header"])}, (name, key)


def test_a_digit_changed_by_hand_does_not_stay() -> None:
    file = {
        "typed_in": True,
        "tables": {"t": {"page": "p.md", "header": ["arm", "pp"], "rows": [["global", "1.5"]]}},
    }
    right = "<!-- evidence: f/t -->\n| arm | pp |\n|---|---|\n| global | 1.5 |\n\nText.\n"
    assert written("p.md", right.replace("1.5", "1.6"), {"f": file}) == right
    with pytest.raises(InputError, match=r"q\.md: docs/evidence/f\.json has no table 't' of this page"):
        written("q.md", right, {"f": file})


@pytest.mark.slow
def test_a_played_table_has_the_cells_of_the_report(tmp_path: Path) -> None:
    mean = {"mean": 0.49795412, "ci95": [0.4864, 0.5095], "per_seed": [0.49, 0.5, 0.51], "other": 1}
    by_seed = {**mean, "ci95": None}
    seconds = {"low": 75_600.0, "high": None, "status": ">="}
    median = {"median": seconds, "interval": [7_200.0, None], "level": 0.75, "per_seed": [seconds] * 3}
    share = {"mean": 1.0, "ci95": [0.292, 1.0], "per_seed": [1.0] * 3}
    of_arms = {
        "a": {"accuracy": mean, "gain": None, "fired": share},
        "b": {"accuracy": by_seed, "gain": {**mean, "mean": 2.0, "ci95": [-1.0, 5.0]}, "fired": share},
    }
    targets = [{"target": 0.5, "arms": {arm: {"time": median} for arm in of_arms}}]
    for run in ("one", "two"):
        (tmp_path / run).mkdir()
        (tmp_path / run / "summary.json").write_text(json.dumps({"arms": of_arms, "targets": targets}))
    columns = [
        {"heading": "accuracy", "figure": "accuracy", "unit": "percent", "runs": ["1"]},
        {"heading": "both", "figure": "accuracy", "unit": "percent", "has_interval": False},
        {"heading": "gain", "figure": "gain", "unit": "points", "runs": ["2"], "itself": "reference"},
        {"heading": "below", "figure": "time@0.5", "unit": "time", "runs": ["1"]},
        {"heading": "fired", "figure": "fired", "unit": "seeds", "runs": ["1"]},
    ]
    table = {"first": "arm", "columns": columns, "rows": [{"arm": "a"}, {"heading": "the other", "arm": "b"}]}
    file = taken({"runs": {"1": "one", "2": "two"}, "tables": {"t": table}}, tmp_path)
    assert file["figures"]["1"]["a"]["accuracy"] == {
        "mean": 0.497954,
        **{key: mean[key] for key in KEPT if key in ("ci95", "per_seed")},
    }
    minus = {"figure": "accuracy", "unit": "points", "runs": ["1"], "heading": "more"}
    row = {"heading": "c", "arm": "b", "minus": "a"}
    pair = {"first": "arm", "columns": [minus, {**minus, "bare": True}], "rows": [row]}
    other = {"mean": 0.512, "ci95": None, "per_seed": [0.5, 0.51, 0.526]}
    of_pair = {"figures": {"1": {"a": {"accuracy": mean}, "b": {"accuracy": other}}}}  # 1 pp, 1 pp and 1.6 pp
    assert rendered(pair, of_pair).splitlines()[2] == "| c | +1.2 pp [+0.3, +2.1] | +1.2 [+0.3, +2.1] |"
    time = ">= 21.0 h [2.00, inf)"
    assert rendered(table, file).splitlines()[2:] == [
        f"| a | 49.8 % [48.6, 50.9] | 49.8 %, 49.8 % | reference | {time} | 3/3 (29 % or more) |",
        "| the other | 49.8 % (49.0 to 51.0 by seed) | 49.8 %, 49.8 % | +2.0 pp [-1.0, +5.0] "
        f"| {time} | 3/3 (29 % or more) |",
    ]
