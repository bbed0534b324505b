import json

import pytest

from emulator.errors import DataFileError, InputError
from experiments.results import write_results
from experiments.table import build_table, run_directories, write_table
from tests.experiments.synthetic_runs import a_directory, a_drifting_run, a_run, store

HOSTILE = "<img src=x onerror=alert(1)>"
PUBLISHED = {"accuracy_omitting_drift": {"oblivious": [60.0, 1.0]}}


@pytest.fixture
def folder(tmp_path):
    """sine has two arms and two seeds; circle lacks the second arm and the published values."""
    folder = tmp_path / "feddrift"
    sine = a_directory(
        folder / "sine", ["oblivious", "oracle"], [0, 1], report={"window": 1, "published": PUBLISHED}
    )
    for seed, share in ((0, 0.5), (1, 0.75)):
        store(sine, a_drifting_run("oblivious", seed, [share, share], [[0, 0], [0, 0]]))
        store(sine, a_drifting_run("oracle", seed, [1.0, 1.0], [[0, 0], [0, 1]], models_sent=20.0))
    circle = a_directory(folder / "circle", ["oblivious"], [0, 1], report={"window": 1})
    store(circle, a_drifting_run("oblivious", 0, [0.25, 0.75], [[0, 0], [0, 0]]))
    for directory in (sine, circle):
        write_results(directory)
    return folder


def test_arms_are_rows_experiments_are_columns_and_cells_stand_beside_published_values(folder):
    table = write_table(folder, run_directories(folder))
    assert json.loads((folder / "table.json").read_text()) == table
    assert (table["version"], table["name"], table["arms"]) == (1, "feddrift", ["oblivious", "oracle"])
    assert table["experiments"] == [
        {"name": "circle", "report": "circle/report.html", "finished": 1, "planned": 2},
        {"name": "sine", "report": "sine/report.html", "finished": 4, "planned": 4},
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
    }
    assert omitting["oblivious"]["circle"] == {
        "mean": 50.0,
        "std": None,
        "seeds": 1,
        "published": None,
        "difference": None,
    }
    assert list(omitting["oracle"]) == ["sine"]
    including = table["figures"]["accuracy_including_drift"]
    assert including["oblivious"]["sine"]["mean"] == 31.25
    assert table["figures"]["models_sent"]["oracle"]["sine"]["mean"] == 20.0
    assert table["figures"]["relative_models_sent"]["oracle"]["sine"]["mean"] == pytest.approx(2.0)


def test_the_page_shows_it_all_and_leads_to_the_reports(folder):
    write_table(folder, run_directories(folder))
    page = (folder / "table.html").read_text()
    assert '<a href="sine/report.html">sine</a>' in page
    assert '<td>62.50 ± 17.68<span class="published">60.00 ± 1.00, +2.50</span></td>' in page
    assert "<li>circle: 1 of 2 runs</li>" in page
    assert "20 (2.00x)" in page
    assert "<script" not in page
    assert "default-src 'none'" in page


def test_the_same_folder_gives_the_same_bytes(folder):
    pages = []
    for _ in range(2):
        write_table(folder, run_directories(folder)[::-1])
        pages.append([(folder / name).read_bytes() for name in ("table.json", "table.html")])
    assert pages[0] == pages[1]


def test_names_are_shown_and_never_run(tmp_path):
    folder = tmp_path / "a<b"
    directory = a_directory(folder / "a&b <i>", ["oblivious", HOSTILE], [0], report={"window": 1})
    for arm in directory.arms():
        store(directory, a_drifting_run(arm, 0, [0.5, 0.5], [[0, 0], [0, 0]]))
    write_results(directory)
    write_table(folder, run_directories(folder))
    page = (folder / "table.html").read_text()
    assert "<img" not in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in page
    assert '<a href="a%26b%20%3Ci%3E/report.html">a&amp;b &lt;i&gt;</a>' in page
    assert "<h1>a&lt;b</h1>" in page


def test_an_experiment_whose_reference_has_not_finished_is_an_empty_column(folder):
    waiting = a_directory(folder / "waiting", ["oblivious", "oracle"], [0])
    store(waiting, a_drifting_run("oracle", 0, [0.5, 0.5], [[0, 0], [0, 0]]))
    table = build_table("x", run_directories(folder))
    assert table["experiments"][-1] == {"name": "waiting", "report": None, "finished": 1, "planned": 2}
    assert not any("waiting" in cells for arms in table["figures"].values() for cells in arms.values())


def test_an_experiment_without_concepts_has_models_sent_and_no_such_accuracy(folder):
    plain = a_directory(folder / "plain", ["oblivious"], [0])
    store(plain, a_run("oblivious", 0, [0.5]))
    write_results(plain)
    figures = build_table("x", run_directories(folder))["figures"]
    assert "plain" not in figures["accuracy_omitting_drift"]["oblivious"]
    assert figures["models_sent"]["oblivious"]["plain"]["mean"] == 7.0


def test_a_summary_of_another_version_is_refused(folder):
    path = folder / "sine" / "summary.json"
    path.write_text(path.read_text().replace('"version": 2', '"version": 1'))
    with pytest.raises(DataFileError, match="summary of version 1, not 2; driftscale report"):
        build_table("x", run_directories(folder))


def test_a_folder_of_run_directories_is_told_from_a_run_directory(folder, tmp_path):
    assert [directory.path.name for directory in run_directories(folder)] == ["circle", "sine"]
    assert run_directories(folder / "sine") == []
    assert run_directories(tmp_path / "nowhere") == []
    with pytest.raises(InputError, match="holds no run directory"):
        write_table(tmp_path, [])
