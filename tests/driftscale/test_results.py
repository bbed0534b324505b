"""Results in a notebook: tables as text and page, and the figures of the report."""

from __future__ import annotations

import shutil

import pytest

from driftscale.results import load
from emulator.errors import InputError
from tests.experiments.running.played import play
from tests.experiments.small import small
from tests.experiments.synthetic_runs import a_directory, a_run, realistic_directory, store

pytestmark = pytest.mark.usefixtures("figures_as_drawn")

PLOTS = (
    "accuracy",
    "difference",
    "below",
    "speedups",
    "client_distance",
    "drift",
    "clusters",
    "durations",
    "outcomes",
    "waiting",
)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    path = tmp_path_factory.mktemp("results") / "run"
    return load(realistic_directory(path, seeds=3, rounds=40, clients=20).path)


@pytest.mark.parametrize("name", PLOTS)
def test_every_figure_of_the_report_is_one_method(results, name):
    figure = getattr(results, f"plot_{name}")()
    assert len(figure.data) > 0
    assert figure.layout.paper_bgcolor == "#ffffff"  # to be read in a dark notebook


def test_the_accuracy_figure_has_a_line_for_each_arm_in_the_configured_order(results):
    names = [line.name for line in results.plot_accuracy().data if line.name]

    assert names == ["global", "static", "fielding"]


def test_clusters_of_a_chosen_run_are_drawn_and_an_unknown_arm_lists_the_choices(results):
    assert len(results.plot_clusters("static", 1).data[0].y) == 20
    with pytest.raises(InputError, match="no arm 'ifca'; choices: global, static, fielding"):
        results.plot_clusters("ifca")
    with pytest.raises(InputError, match="arm 'global' ever has several clusters"):
        results.plot_clusters("global")


def test_the_drift_of_runs_whose_logs_tell_none_is_not_drawn(tmp_path):
    directory = a_directory(tmp_path / "run", ["global"], [0])
    store(directory, a_run("global", 0, [0.5]))
    with pytest.raises(InputError, match="no client begins to receive other data, or the logs do not tell"):
        load(directory.path).plot_drift()


def test_personal_accuracy_is_drawn_of_runs_that_have_one(tmp_path, results):
    directory = a_directory(tmp_path / "run", ["ditto"], [0])
    store(directory, a_run("ditto", 0, [0.5, 0.5], personal_accuracy=0.75))
    assert [line.name for line in load(directory.path).plot_personal().data] == [
        *("ditto, personal", "ditto, served"),
    ]
    with pytest.raises(InputError, match="no arm has a personal accuracy"):
        results.plot_personal()


def test_figures_of_what_was_not_recorded_name_the_option(results):
    with pytest.raises(InputError, match=r"recorded no accuracy of clients; with round\.log_client_accuracy"):
        results.plot_client_accuracy()
    with pytest.raises(InputError, match=r"recorded no visits; with round\.log_visits = true"):
        results.plot_timeline("static", 2, 3)
    with pytest.raises(InputError, match="no round 40; static, seed 2 has rounds 0 to 39"):
        results.plot_timeline("static", 2, 40)
    with pytest.raises(InputError, match="'colour' must be one of device, network, label, cluster"):
        results.plot_clients_by("colour")


@pytest.mark.slow
def test_a_run_that_recorded_all_has_every_figure(tmp_path):
    arms = [{"name": "global"}, {"name": "fielding", "clusterer": {"kind": "fielding", "max_clusters": 3}}]
    recorded = {"log_visits": True, "log_client_accuracy": True, "rounds": 6}
    moving = {"drift": {"kind": "label_mix", "move_probability": 0.5}}
    devices = {"profile": "smartphones"}
    play(small(arm=arms, round=recorded, devices=devices, trace=moving), tmp_path / "out")
    results = load(tmp_path / "out")
    for name in ("drift", "client_accuracy", "client_gain", "trigger", "silhouettes", "waiting"):
        assert len(getattr(results, f"plot_{name}")().data) > 0
    for group in ("device", "network", "label", "cluster"):
        assert len(results.plot_clients_by(group).data) > 0
    assert len(results.plot_timeline("fielding", 0, 5).data) > 0
    visits, rounds = results.visits.groupby("arm"), results.rounds.groupby("arm")
    assert visits.size().tolist() == rounds.num_participants.sum().tolist()
    assert visits.end_s.max().tolist() == rounds.closed_s.max().tolist()
    horizon_s = rounds.closed_s.max().min()
    by_then = results.rounds[results.rounds.closed_s <= horizon_s].groupby("arm").num_participants.sum()
    assert results.clients.groupby("arm").participations.sum().tolist() == by_then.tolist()


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

    assert "synthetic: up to 94.6 min of virtual time; 95 % intervals of gains in brackets" in shown
    assert "the arm with the largest gain, has a mean accuracy of" in shown
    assert shown.count("\n") < 20
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
    assert "No run of the reference arm 'global' is finished" in repr(results)
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
    with pytest.raises(
        InputError, match=r"'global' .*; it is an arm: results\.rounds\[results\.rounds\.arm == "
    ):
        results["global"]


@pytest.mark.parametrize("several", [False, True], ids=["a run directory", "a folder"])
def test_results_whose_files_are_damaged_show_the_line_that_says_so(tmp_path, several):
    for name in ("a", "b"):
        directory = a_directory(tmp_path / name, ["global"], [0], report={"window": 1})
        store(directory, a_run("global", 0, [0.5, 0.6]))
    path = tmp_path if several else directory.path
    log = directory.run_file("global", 0, "log.jsonl")
    log.write_text("{}\n")
    shown = load(path)
    problem = f"{log}: a run log starts with a line of kind 'run'"
    assert repr(shown) == f"Results that cannot be shown: {'b: ' if several else ''}{problem}"
    assert shown._repr_html_() is None  # a notebook shows the text
    shutil.rmtree(directory.path)
    assert repr(shown) == f"Results that cannot be shown: {directory.path}: no such run directory"
