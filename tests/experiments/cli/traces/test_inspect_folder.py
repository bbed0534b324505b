"""`driftscale traces inspect` of a trace folder, and its page."""

from __future__ import annotations

import json
import re
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.experiments.cli.conftest import Driftscale
from tests.experiments.cli.traces.test_inspect import inspected, lines
from tests.experiments.small import write_small
from tests.traces.files.written import write_trace


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two clients over four days, with two training samples a day each; b is away on the third day.

    Client a has label x only and, on the last day, y only. Client b has one of each, always.
    """
    rows: dict[str, list[Any]] = {"client": [], "label": [], "sample": [], "time": [], "split": []}
    for day in range(4):
        for client, labels in (("a", "xx" if day < 3 else "yy"), ("b", "" if day == 2 else "xy")):
            for label in labels:
                rows["client"].append(client)
                rows["label"].append(label)
                rows["sample"].append(len(rows["sample"]))
                rows["time"].append(date(2015, 1, 30) + timedelta(days=day))
                rows["split"].append("train")
    rows["client"].append("a")
    rows["label"].append("x")
    rows["sample"].append(len(rows["sample"]))
    rows["time"].append(date(2015, 1, 30))
    rows["split"].append("test")
    size = len(rows["sample"])
    facts = {"origin": "drawn", "licence": "CC0"}
    return write_trace(tmp_path / "t", rows, np.zeros((size, 3, 4, 4), np.uint8), facts)


def test_a_terminal_obeys_nothing_that_a_folder_says_of_itself(driftscale: Driftscale, folder: Path) -> None:
    facts = folder / "trace.toml"
    facts.write_text(
        facts.read_text().replace("drawn", "\\u001b]0;title\\u0007").replace("CC0", "\\u009b2J\\u202e")
    )
    out = driftscale("traces", "inspect", "t").out
    assert r"\x1b]0;title\x07" in out
    assert r"\x9b2J\u202e" in out
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(out)


def test_a_folder_is_shown_as_its_rows_are(driftscale: Driftscale, folder: Path) -> None:
    facts = inspected(driftscale, "t", "--min-samples", "2")
    assert (facts["of"], facts["origin"], facts["licence"]) == ("rows", "drawn", "CC0")
    assert (facts["shape"], facts["type"], facts["samples_in_the_file"]) == ([3, 4, 4], "uint8", 15)
    assert facts["windows"] == "day, from 2015-01-30"
    assert sorted(facts["sha256"]) == ["arrivals.parquet", "features.npy"]
    assert facts["clients"] == 2
    assert facts["samples"] == {"train": 14, "test": 1}
    assert facts["labels"] == [
        {"label": 0, "name": "x", "train": 9, "test": 1},
        {"label": 1, "name": "y", "train": 5, "test": 0},
    ]
    assert [(each["step"], each["samples"], each["clients"]) for each in facts["arrivals"]] == [
        (0, 4, 2),
        (1, 4, 2),
        (2, 2, 1),
        (3, 4, 2),
    ]
    assert facts["presence"]["client_names"] == ["a", "b"]
    assert facts["presence"]["with_gaps"] == 1
    # Pairs of a: 0, 0, 2; of b: 0, 0.
    assert facts["label_shift"]["pairs"] == 5
    assert facts["label_shift"]["consecutive_mean"] == pytest.approx(2 / 5)
    # Means (3/4, 1/4) in the first window and (1/4, 3/4) in the last.
    assert facts["label_shift"]["first_to_last"] == pytest.approx(1)


def test_the_onsets_of_a_folder_are_those_of_its_concepts(driftscale: Driftscale, tmp_path: Path) -> None:
    columns = {"client": list("aabb"), "label": list("xyxy"), "step": [0, 3, 0, 3], "concept": [0, 1, 1, 1]}
    rows: dict[str, list[Any]] = {**columns, "sample": list(range(4))}
    write_trace(tmp_path / "u", rows, np.zeros((4, 2), np.uint8), {})
    truth = inspected(driftscale, "u")["truth"]
    assert (truth["concepts"], truth["onsets"], truth["clients_with_onset"]) == (2, 1, 1)
    assert truth["mass_events"] == [{"step": 3, "clients": 1, "share": 0.5}]
    assert "concepts 2" in lines(driftscale("traces", "inspect", "u"))


def test_windows_are_chosen_as_in_the_settings_of_the_source(driftscale: Driftscale, folder: Path) -> None:
    months = inspected(driftscale, "t", "--step-width", "month")
    assert months["windows"] == "month, from 2015-01"
    assert [each["samples"] for each in months["arrivals"]] == [8, 6]
    later = inspected(driftscale, "t", "--since", "2015-01-31", "--until", "2015-02-02", "--step-width", "2")
    assert later["windows"] == "2 days, from 2015-01-31"
    assert [each["samples"] for each in later["arrivals"]] == [6]
    assert later["rows_left_out"] == 9
    printed = lines(driftscale("traces", "inspect", "t"))
    for line in ("origin drawn", "licence CC0", "a sample uint8, 3 x 4 x 4", "a window day, from 2015-01-30"):
        assert line in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--step-width", "week"], "--step-width week: must be month, quarter, year or a number above 0, at"),
        (["--step-width", "nan"], "--step-width nan: must be month, quarter, year or a number above 0, at"),
        (
            ["--since", "3"],
            "--since = 3: the trace has a column time, so it must be a date, as in",
        ),
        (["--until", "soon"], "--until soon: must be a date, as in 2015-01-31, or a whole number"),
        (["--since", "2016-01-01"], "t/arrivals.parquet: no row is left between --since and --until"),
        (["--seed", "1"], "--seed: is for a configuration, but t is a folder"),
        (["--set", "name=x"], "--set: is for a configuration, but t is a folder"),
        (["--window", "week"], "--window week: must be auto, month, quarter, year or a number above 0, at"),
        (["--window", "7", "--step-width", "7"], "--window: give it or --step-width, not both; they set the"),
        (["--clients", "a"], "--clients: chooses clients for the page; give --html as well"),
        (["--html", "page.htm"], "--html page.htm: must be a file that ends in .html"),
        (["--html", "no/page.html"], "--html no/page.html: cannot be written (No such file or directory)"),
        (["--html", "p.html", "--clients", "c"], "--clients: there is no client 'c'; there are 2: a, b"),
    ],
)
def test_an_option_that_does_not_fit_is_one_line(
    driftscale: Driftscale, folder: Path, arguments: list[str], message: str
) -> None:
    ended = driftscale("traces", "inspect", "t", *arguments)
    assert ended.code == 2
    assert ended.error.startswith(message)


def test_ranks_need_a_width(driftscale: Driftscale, tmp_path: Path) -> None:
    rows = {"client": [1, 1, 1], "label": [0, 0, 1], "sample": [0, 1, 2], "order": [0, 1, 2]}
    write_trace(tmp_path / "t", rows)
    ended = driftscale("traces", "inspect", "t")
    assert ended.code == 2
    assert ended.error.startswith("--step-width: missing; the trace has a column order")
    facts = inspected(driftscale, "t", "--step-width", "2")
    assert facts["windows"] == "2 ranks of each client, from 0"
    assert facts["samples"] == {"observed": 3}
    assert [each["samples"] for each in facts["arrivals"]] == [2, 1]


def test_ranks_are_grouped_as_widely_as_they_need(driftscale: Driftscale, tmp_path: Path) -> None:
    columns = {"client": [1] * 8, "label": [0, 1] * 4, "sample": [0, 1, 2, 3] * 2, "order": list(range(8))}
    write_trace(tmp_path / "t", columns)
    ended = driftscale("traces", "inspect", "t", "--window", "auto", "--min-samples", "3", "--format", "json")
    assert json.loads(ended.out)["windows"] == "5 ranks of each client, from 0"  # five samples, and three
    assert ended.err.startswith("windows: 5 ranks, the narrowest width that shows half of the clients twice")


def test_windows_of_a_folder_are_not_for_a_configuration(driftscale: Driftscale, tmp_path: Path) -> None:
    ended = driftscale("traces", "inspect", write_small(tmp_path), "--step-width", "2")
    assert ended.code == 2
    assert ended.error.startswith("--step-width: is for a trace folder, but ")


def plotted(page: str) -> dict[str, Any]:
    """The data of each plot of a page, by the id of its element."""
    calls = re.finditer(r'Plotly\.newPlot\(\s*"([^"]+)",\s*(\[.*?\]),\s*\{"template"', page, re.DOTALL)
    return {call[1]: json.loads(call[2]) for call in calls}


def test_the_page_draws_shares_and_distances_and_contacts_no_host(
    driftscale: Driftscale, folder: Path
) -> None:
    ended = driftscale("traces", "inspect", "t", "--min-samples", "2", "--html", "page.html")
    assert ended.code == 0
    assert ended.out.splitlines()[-1] == "page: page.html"
    page = Path("page.html").read_text()
    assert "default-src 'none'; script-src 'nonce-" in page
    outside_plotly = re.sub(r"<script nonce=\"\w+\">.*?</script>", "", page, flags=re.DOTALL)
    assert "//" not in outside_plotly
    data = plotted(page)
    assert list(data) == ["shares-0", "shares-1", "distances"]
    assert {trace["name"]: trace["y"] for trace in data["shares-0"]} == {
        "x": [100, 100, 100, 0, 0],
        "y": [0, 0, 0, 100, 0],
    }
    [drawn] = data["distances"]
    assert drawn["z"] == [[0, 0, 0, 2], [0, 0, None, 0]]
    before = Path("page.html").read_bytes()
    driftscale("traces", "inspect", "t", "--min-samples", "2", "--html", "page.html")
    assert Path("page.html").read_bytes() == before


def test_the_page_draws_the_clients_that_are_named(driftscale: Driftscale, folder: Path) -> None:
    page = ("--html", "p.html", "--clients", "b", "--format", "json")
    driftscale("traces", "inspect", "t", "--min-samples", "2", *page)
    assert list(plotted(Path("p.html").read_text())) == ["shares-1", "distances"]


def test_a_page_without_an_observed_cell_says_so(driftscale: Driftscale, folder: Path) -> None:
    assert driftscale("traces", "inspect", "t", "--html", "p.html").code == 0
    page = Path("p.html").read_text()
    advice = "a smaller --min-samples, or a wider --window, shows more."
    assert f"No client that is shown has 10 samples in a window; {advice}" in page
    assert plotted(page) == {}


@pytest.fixture
def sparse(tmp_path: Path) -> Path:
    """A client with a sample a day for twenty days from 2024-02-20; x first, and y in March."""
    days = [date(2024, 2, 20) + timedelta(days=day) for day in range(20)]
    labels = ["x" if day.month == 2 else "y" for day in days]
    rows = {"client": ["a"] * 20, "label": labels, "sample": list(range(20)), "time": days}
    return write_trace(tmp_path / "s", rows, np.zeros((20, 2), np.uint8))


def test_the_page_has_the_narrowest_windows_that_show_half_of_the_clients(
    driftscale: Driftscale, sparse: Path
) -> None:
    # Windows of 7 days have 7, 7 and 6 samples, those of 14 days 14 and 6.
    plain = driftscale("traces", "inspect", "s", "--min-samples", "6")
    ended = driftscale("traces", "inspect", "s", "--min-samples", "6", "--html", "p.html")
    assert ended.out == f"{plain.out}page: p.html\n"
    narrowest = "7 days, the narrowest width that shows half of the clients twice or more (1 of 1)"
    advice = f"windows of the page: {narrowest}; --window 7 prints the table by them too"
    assert ended.err.splitlines() == [advice]
    hint = "windows: a day is too narrow for figures on label shift, which need 6 samples in a window"
    assert plain.err.splitlines() == [f"{hint}; --window 7 is wide enough"]
    page = Path("p.html").read_text()
    assert f"A window is {narrowest}; --window sets another width." in page
    assert "samples in each window of 7 days; blank" in page
    data = plotted(page)
    assert {trace["name"]: trace["y"] for trace in data["shares-0"]} == {
        "x": [100, pytest.approx(100 * 3 / 7, abs=0.01), 0, 0],
        "y": [0, pytest.approx(100 * 4 / 7, abs=0.01), 100, 0],
    }


def test_a_window_is_as_wide_as_its_option_says(driftscale: Driftscale, sparse: Path) -> None:
    weeks = driftscale("traces", "inspect", "s", "--window", "7").out
    assert weeks == driftscale("traces", "inspect", "s", "--step-width", "7").out
    assert inspected(driftscale, "s", "--window", "month")["windows"] == "month, from 2024-02"
    automatic = driftscale("traces", "inspect", "s", "--window", "auto", "--min-samples", "6")
    assert automatic.out == driftscale("traces", "inspect", "s", "--window", "7", "--min-samples", "6").out
    # Of 20 samples, no two windows have more than ten each.
    none = driftscale("traces", "inspect", "s", "--min-samples", "11")
    enough = "has 22 samples, enough for two windows with 11; a smaller --min-samples shows more"
    assert none.err.splitlines() == [f"windows: none of the clients {enough}"]


def test_data_steps_of_a_configuration_are_grouped(driftscale: Driftscale, tmp_path: Path) -> None:
    config = write_small(tmp_path, seeds=[3])
    steps, pairs = inspected(driftscale, config), inspected(driftscale, config, "--window", "2")
    samples = [each["samples"] for each in steps["arrivals"]]
    sums = [sum(samples[first : first + 2]) for first in range(0, len(samples), 2)]
    assert [each["samples"] for each in pairs["arrivals"]] == sums
    assert pairs["windows"] == f"2 data steps, from {steps['arrivals'][0]['step']}"
    assert "arrivals by window" in driftscale("traces", "inspect", config, "--window", "2").out
    ended = driftscale("traces", "inspect", config, "--window", "month")
    assert ended.error.startswith("--window = 'month': the windows of a configuration are data steps, so it")


def test_a_configuration_has_a_page_too(driftscale: Driftscale, tmp_path: Path) -> None:
    config = write_small(tmp_path, seeds=[3])
    assert driftscale("traces", "inspect", config, "--min-samples", "6", "--html", "p.html").code == 0
    data = plotted(Path("p.html").read_text())
    assert len(data["distances"][0]["z"]) == 12
    assert len([name for name in data if name.startswith("shares-")]) == 4


def test_no_name_gets_into_the_page_as_markup(driftscale: Driftscale, tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script>"
    rows = {"client": [hostile] * 2, "label": [hostile] * 2, "sample": [0, 1], "step": [0, 1]}
    write_trace(tmp_path / "t", rows, facts={"origin": hostile})
    assert driftscale("traces", "inspect", "t", "--min-samples", "1", "--html", "p.html").code == 0
    assert "<script>" not in Path("p.html").read_text()


def test_tokens_targets_and_the_objective_are_shown(driftscale: Driftscale, tmp_path: Path) -> None:
    facts = {"tokens": {"vocabulary": 4, "padding": 0}, "objective": {"kind": "next_token"}}
    folder = write_trace(tmp_path / "t", features=np.ones((6, 5), np.uint8), facts=facts)
    np.save(folder / "targets.npy", np.arange(12, dtype=np.float32).reshape(6, 2))
    shown = inspected(driftscale, "t")
    assert {key: shown[key] for key in facts} == facts
    assert shown["targets"] == {"number": 2, "type": "float32", "from": 0.0, "to": 11.0}
    assert "targets.npy" in shown["sha256"]
    out = driftscale("traces", "inspect", "t").out
    for text in ("vocabulary 4, padding 0", "number 2, type float32, from 0.0, to 11.0", "kind next_token"):
        assert text in out
