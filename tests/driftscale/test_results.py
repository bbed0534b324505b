"""Results in a notebook: tables as text and page, and the figures of the report."""

from __future__ import annotations

import pytest

from driftscale.results import load
from emulator.errors import InputError
from tests.experiments.synthetic_runs import a_directory, a_run, realistic_directory, store

PLOTS = (
    "accuracy",
    "difference",
    "below",
    "speedups",
    "client_distance",
    "clusters",
    "durations",
    "outcomes",
)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    path = tmp_path_factory.mktemp("results") / "run"
    return load(realistic_directory(path, seeds=3, rounds=40, clients=20).path)


@pytest.mark.parametrize("name", PLOTS)
def test_every_figure_of_the_report_is_one_method(results, name):
    assert len(getattr(results, f"plot_{name}")().data) > 0


def test_the_accuracy_figure_has_a_line_for_each_arm_in_the_configured_order(results):
    names = [line.name for line in results.plot_accuracy().data if line.name]

    assert names == ["global", "static", "fielding"]


def test_clusters_of_a_chosen_run_are_drawn_and_an_unknown_arm_lists_the_choices(results):
    assert len(results.plot_clusters("static", 1).data[0].y) == 20
    with pytest.raises(InputError, match="no arm 'ifca'; choices: global, static, fielding"):
        results.plot_clusters("ifca")
    with pytest.raises(InputError, match="arm 'global' ever has several clusters"):
        results.plot_clusters("global")


def test_the_frames_of_one_run_are_its_rows_of_the_frames_of_all(results):
    clients = results.clients
    of_one = clients[(clients.arm == "static") & (clients.seed == 2)].reset_index(drop=True)

    assert results.clients_of("static", 2).equals(of_one)
    with pytest.raises(InputError, match=r"recorded no visits; with round\.log_visits = true"):
        results.visits_of("static", 2)
    with pytest.raises(InputError, match="no finished run of arm 'static', seed 7; finished: global 0, "):
        results.visits_of("static", 7)


def test_results_show_themselves_as_the_table_of_the_terminal(results):
    shown = repr(results)

    assert "synthetic: accuracy over virtual time, against global" in shown
    assert "\x1b" not in shown
    assert shown.endswith("round.log_client_accuracy = true records them")


def test_names_in_the_table_of_a_notebook_are_escaped(tmp_path):
    store(a_directory(tmp_path, ["<b>"], [0]), a_run("<b>", 0, [0.5]))

    page = load(tmp_path)._repr_html_()

    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    assert page.count("<table>") == 2  # accuracy and cost


def test_unfinished_runs_are_named_below_the_table(tmp_path):
    store(a_directory(tmp_path, ["global"], [0, 1]), a_run("global", 0, [0.5]))

    results = load(str(tmp_path))

    assert results.unfinished == ["global, seed 1"]
    assert repr(results).endswith("not finished and left out: global, seed 1")
    assert "not finished and left out: global, seed 1" in results._repr_html_()


def test_results_without_a_run_of_the_reference_arm_have_frames_but_no_figure(tmp_path):
    store(a_directory(tmp_path, ["global", "fielding"], [0]), a_run("fielding", 0, [0.5, 0.25]))

    results = load(tmp_path)

    assert results.rounds.accuracy.to_list() == [0.5, 0.25]
    assert len(results.table) == 0
    assert "no run of the reference arm 'global' is finished" in repr(results)
    with pytest.raises(InputError, match="the reference arm 'global' has no finished run"):
        results.plot_accuracy()


def test_a_folder_says_how_to_choose_an_experiment_for_a_figure(tmp_path):
    for name in ("one", "two"):
        store(a_directory(tmp_path / name, ["global"], [0], name=name), a_run("global", 0, [0.5, 0.5]))

    results = load(tmp_path)

    with pytest.raises(InputError, match=r"choose one as results\['one'\], of one, two"):
        results.plot_accuracy()
    assert results["two"].path == tmp_path / "two"
    assert len(results["two"].plot_accuracy().data) == 1
    assert list(results.config) == ["one", "two"]
    assert len(results.plot_sections()) == 2
    assert "mean" in repr(results)
    assert "<table>" in results._repr_html_()
    with pytest.raises(InputError, match="no experiment 'three' with finished runs; choices: one, two"):
        results["three"]
