import json
import re
import shutil
from dataclasses import replace

import pytest

from emulator.errors import InputError
from experiments.results.many_runs.directories import read_folder, run_directories
from experiments.results.many_runs.folder_table import build_table, recorded_name
from experiments.results.pages import write_results
from experiments.results.pages.folder_page import columns_with_drift, render_table, write_table
from experiments.results.reading.run_directory import RunDirectory
from tests.experiments.synthetic_runs import a_directory, a_drifting_run, a_run, store, tables_of

HOSTILE = "<img src=x onerror=alert(1)>"
PUBLISHED = {"accuracy_omitting_drift": {"oblivious": [60.0, 1.0]}}


def an_entry(name, finished, planned, failed=0, steps=None, scored_steps=None, report=True):
    return {
        "name": name,
        "report": f"{name}/report.html" if report else None,
        "finished": finished,
        "failed": failed,
        "planned": planned,
        "steps": steps,
        "scored_steps": scored_steps,
        "marked_seeds": [],
    }


@pytest.fixture(scope="module")
def drifts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("drifts") / "feddrift"
    sine = a_directory(
        folder / "sine",
        ["oblivious", "oracle"],
        [0, 1],
        name="sine",
        report={"window": 1, "published": PUBLISHED},
    )
    for seed, share in ((0, 0.5), (1, 0.75)):
        store(sine, a_drifting_run("oblivious", seed, [share, share], [[0, 0], [0, 0]]))
        store(sine, a_drifting_run("oracle", seed, [1.0, 1.0], [[0, 0], [0, 1]], models_sent=20.0))
    circle = a_directory(
        folder / "circle",
        ["oblivious"],
        [0, 1],
        name="circle",
        trace={"source": "circle"},
        report={"window": 1},
    )
    store(circle, a_drifting_run("oblivious", 0, [0.25, 0.75], [[0, 0], [0, 0]]))
    for directory in (sine, circle):
        write_results(directory)
    return folder


@pytest.fixture
def folder(drifts, tmp_path):
    """Two experiments: sine has two arms and two seeds, circle one arm, one run and no published values."""
    return shutil.copytree(drifts, tmp_path / "feddrift")


def test_arms_are_rows_experiments_are_columns_and_cells_stand_beside_published_values(folder):
    table, _ = write_table(folder, run_directories(folder), "feddrift")
    assert json.loads((folder / "table.json").read_text()) == table
    assert (table["version"], table["name"], table["arms"]) == (5, "feddrift", ["oblivious", "oracle"])
    assert table["experiments"] == [
        an_entry("circle", finished=1, planned=2, steps=2, scored_steps=2),
        an_entry("sine", finished=4, planned=4, steps=2, scored_steps=2),
    ]
    assert list(table["figures"]) == [
        "accuracy_omitting_drift",
        "accuracy_including_drift",
        "models_sent",
        "relative_models_sent",
    ]
    omitting = table["figures"]["accuracy_omitting_drift"]
    assert omitting["oblivious"]["sine"] == {
        "mean": 62.5,
        "std": pytest.approx(12.5 * 2**0.5),
        "seeds": 2,
        "published": {"mean": 60.0, "std": 1.0},
        "difference": 2.5,
        "outside": True,
        "unmarked": None,
    }
    assert omitting["oblivious"]["circle"] == {
        "mean": 50.0,
        "std": None,
        "seeds": 1,
        "published": None,
        "difference": None,
        "outside": None,
        "unmarked": None,
    }
    one = {"methods": 1, "inside": 0, "outside": ["oblivious"], "rank_correlation": None}
    assert table["agreement"] == {"accuracy_omitting_drift": {"sine": one}, "accuracy_including_drift": {}}
    assert list(omitting["oracle"]) == ["sine"]
    including = table["figures"]["accuracy_including_drift"]
    assert including["oblivious"]["sine"]["mean"] == 31.25
    assert table["figures"]["models_sent"]["oracle"]["sine"]["mean"] == 20.0
    assert table["figures"]["relative_models_sent"]["oracle"]["sine"]["mean"] == pytest.approx(2.0)


def test_the_page_shows_it_all_and_leads_to_the_reports(folder):
    write_table(folder, run_directories(folder), "feddrift")
    page = (folder / "table.html").read_text()
    assert '<a href="sine/report.html">sine</a>' in page
    assert '<td>62.50 ± 17.68<span class="published">60.00 ± 1.00, +2.50 outside</span></td>' in page
    assert "In sine, within two published standard deviations: 0 of 1 methods." in page
    assert "<li>circle: 1 finished, 1 not run</li>" in page
    assert "20 (2.00x)" in page
    [nonce] = re.findall(r"script-src 'nonce-([0-9a-f]{64})';", page)
    assert page.count("<script") == page.count(f'<script nonce="{nonce}"') == page.count("</script>")
    assert page.count("script-src") == page.count("Content-Security-Policy") == 1
    assert re.findall(r'<script[^>]* src="([^"]*)"', page) == ["plotly.min.js"]
    assert "default-src 'none'" in page


def test_the_same_folder_gives_the_same_bytes(folder):
    pages = []
    for _ in range(2):
        write_table(folder, run_directories(folder)[::-1], "x")
        pages.append([(folder / name).read_bytes() for name in ("table.json", "table.html")])
    assert pages[0] == pages[1]


def test_names_are_shown_and_never_run(tmp_path):
    folder = tmp_path / "a<b"
    directory = a_directory(
        folder / "a&b <i>", ["oblivious", HOSTILE], [0], name="a&b <i>", report={"window": 1}
    )
    for arm in directory.arms():
        store(directory, a_drifting_run(arm, 0, [0.5, 0.5], [[0, 0], [0, 0]]))
    write_results(directory)
    write_table(folder, run_directories(folder), folder.name)
    page = (folder / "table.html").read_text()
    assert "<img" not in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in page
    assert '<a href="a%26b%20%3Ci%3E/report.html">a&amp;b &lt;i&gt;</a>' in page
    assert "<h1>a&lt;b</h1>" in page


def test_an_experiment_whose_reference_has_not_finished_has_its_accuracies_and_no_relative_models(folder):
    waiting = a_directory(folder / "waiting", ["oblivious", "oracle"], [0], name="waiting")
    store(waiting, a_drifting_run("oracle", 0, [0.5, 0.5], [[0, 0], [0, 0]]))
    write_results(waiting)
    table = tables_of("x", run_directories(folder))[0]
    entry = an_entry("waiting", finished=1, planned=2, steps=2, scored_steps=2, report=False)
    assert table["experiments"][-1] == entry
    assert table["figures"]["accuracy_omitting_drift"]["oracle"]["waiting"]["mean"] == 50.0
    assert table["figures"]["models_sent"]["oracle"]["waiting"]["mean"] == 10.0
    assert "waiting" not in table["figures"]["relative_models_sent"]["oracle"]


def test_runs_that_failed_are_told_from_those_that_have_not_run(folder):
    broken = a_directory(folder / "broken", ["oblivious", "oracle", "late"], [0, 1], name="broken")
    for seed in (0, 1):
        broken.start("oracle", seed)
        broken.mark_failed("oracle", seed, "diverged")
    table, _ = write_table(folder, run_directories(folder), "x")
    assert table["experiments"][0] == an_entry("broken", finished=0, failed=2, planned=6, report=False)
    page = (folder / "table.html").read_text()
    assert "<li>broken: 2 failed, 4 not run</li>" in page
    # An arm without a run in any experiment has no row.
    assert "<th>late</th>" not in page
    assert "Arms without a finished run (1)" in page


def test_a_table_states_how_many_data_steps_have_an_evaluation_unless_all_have_one(folder):
    short = a_directory(folder / "short", ["oblivious"], [0], name="short", trace={"source": "short"})
    store(short, a_drifting_run("oblivious", 0, [0.5], [[0, 0]]))
    write_results(short)
    table, _ = write_table(folder, run_directories(folder), "x")
    assert table["experiments"][1] == an_entry("short", finished=1, planned=1, steps=2, scored_steps=1)
    page = (folder / "table.html").read_text()
    assert page.count('<span class="published">1 of 2 data steps</span>') == 3
    assert "2 of 2 data steps" not in page
    assert "1 of 2 data steps were scored." in short.report_path.read_text()
    assert "were scored" not in (folder / "sine/report.html").read_text()


def test_experiments_of_one_name_go_by_their_folders(folder):
    again = a_directory(folder / "sine-again", ["oblivious"], [0], name="sine")
    assert again.path.name == "sine-again"
    names = [column["name"] for column in tables_of("x", run_directories(folder))[0]["experiments"]]
    assert names == ["circle", "sine", "sine-again"]


def test_a_table_is_made_again_under_the_name_it_had(folder):
    assert recorded_name(folder) == "feddrift"
    write_table(folder, run_directories(folder), "the drifts")
    assert recorded_name(folder) == "the drifts"


def test_an_experiment_without_concepts_has_models_sent_and_no_such_accuracy(folder):
    plain = a_directory(
        folder / "plain", ["oblivious", "global"], [0], name="plain", trace={"source": "plain"}
    )
    for arm in plain.arms():
        store(plain, a_run(arm, 0, [0.5]))
    write_results(plain)
    table, _ = write_table(folder, run_directories(folder), "x")
    figures = table["figures"]
    assert columns_with_drift(table, ["circle", "plain", "sine"]) == ["circle", "sine"]
    page = (folder / "table.html").read_text()
    assert page.count(">plain</a>") == 2  # of the models sent, and of its section
    assert "plain" not in figures["accuracy_omitting_drift"]["oblivious"]
    assert figures["models_sent"]["oblivious"]["plain"]["mean"] == 7.0


def test_the_table_is_made_of_the_logs_whatever_a_summary_says(folder):
    before, _ = write_table(folder, run_directories(folder), "x")
    (folder / "sine" / "summary.json").write_text("{}")
    (folder / "circle" / "summary.json").unlink()
    assert write_table(folder, run_directories(folder), "x")[0] == before


def test_an_unknown_number_of_scored_steps_is_not_in_the_table(folder):
    (sine,) = read_folder([RunDirectory(folder / "sine")])
    for steps, shown in ((1, True), (None, False)):
        table = build_table("x", {sine.directory: replace(sine.finished, scored_steps=steps)})
        assert ("1 of 2 data steps" in render_table({**table, "sections": []})) is shown


def test_a_folder_of_run_directories_is_told_from_a_run_directory(folder, tmp_path):
    assert [directory.path.name for directory in run_directories(folder)] == ["circle", "sine"]
    assert run_directories(folder / "sine") == []
    assert run_directories(tmp_path / "nowhere") == []
    with pytest.raises(InputError, match="holds no run directory"):
        write_table(tmp_path, [], "x")


def test_a_marked_seed_is_named_in_table_and_report_with_the_means_without_it(tmp_path):
    arms = ["oblivious", "a", "b", "c", "oracle"]
    directory = a_directory(tmp_path / "all" / "sine", arms, range(5), name="sine", report={"window": 1})
    for seed, share in enumerate((0.50, 0.52, 0.54, 0.56, 0.20)):
        for lower, arm in enumerate(arms):
            accuracy = share - lower / 50
            store(directory, a_drifting_run(arm, seed, [accuracy, accuracy], [[0, 0], [0, 0]]))
    write_results(directory)
    table, _ = write_table(tmp_path / "all", [directory], "all")
    [entry] = table["experiments"][0]["marked_seeds"]
    # The others have median 53 and are 1, 1, 3 and 3 away from it: (53 - 20) / (2 x 1.4826) = 11.13.
    assert (entry["seed"], entry["distance"]) == (4, pytest.approx(11.13, abs=0.005))
    cell = table["figures"]["accuracy_omitting_drift"]["oblivious"]["sine"]
    assert cell["mean"] == pytest.approx(46.4)
    assert cell["unmarked"] == {
        "mean": pytest.approx(53.0),
        "std": pytest.approx((20 / 3) ** 0.5),
        "seeds": 4,
    }
    clause = "all 5 arms that can be judged are off on seed 4 (by 11.1 spreads of its other seeds in the "
    for page in (tmp_path / "all" / "table.html", directory.report_path):
        text = page.read_text(encoding="utf-8")
        assert text.count(clause) == 1
        assert '">without marked seeds 53.00 ± 2.58</span>' in text
