from dataclasses import replace

import numpy as np
import pytest

from experiments.results.pages import write_report
from experiments.results.tables.serving_maps import NO_MODEL, num_models, serving_map, too_large
from tests.experiments.synthetic_runs import CONCEPTS, a_directory, a_drifting_run, a_run, store


def shown(run):
    return [cells for _, cells in serving_map(run)]


def test_a_cell_has_its_model_its_concept_and_whether_the_next_step_is_of_another():
    run = a_drifting_run("oracle", 0, [1.0, 1.0], [[4, 4], [4, 9]])
    assert CONCEPTS == [[0, 0], [0, 1], [1, 1]]
    assert shown(run) == [[("1", 0, False), ("1", 0, True)], [("1", 0, True), ("2", 1, False)]]


def test_where_tests_are_of_the_steps_own_concept_no_cell_drifts():
    run = a_drifting_run("oracle", 0, [1.0, 1.0], [[4, 4], [4, 9]])
    run.header["test_then_train"] = False
    assert shown(run) == [[("1", 0, False), ("1", 0, False)], [("1", 0, False), ("2", 1, False)]]


def test_a_cell_drifts_where_tests_have_a_concept_of_their_own():
    run = a_drifting_run("oracle", 0, [1.0, 1.0], [[4, 4], [4, 9]])
    run.header["test_concepts"] = [[0, 7], [0, 1]]
    assert shown(run) == [[("1", 0, False), ("1", 0, True)], [("1", 0, False), ("2", 1, False)]]


def test_models_are_numbered_in_order_of_first_appearance_row_by_row():
    run = a_drifting_run("x", 0, [1.0, 1.0], [[7, 3], [0, 7]])
    assert [[model for model, _, _ in row] for row in shown(run)] == [["1", "2"], ["3", "1"]]
    assert num_models(serving_map(run)) == 3


def test_a_client_that_no_model_serves_is_a_dash_and_no_model():
    run = a_drifting_run("x", 0, [1.0, 1.0], [[-1, 3], [-1, 3]])
    assert [[model for model, _, _ in row] for row in shown(run)] == [[NO_MODEL, "1"]] * 2
    assert num_models(serving_map(run)) == 1


def test_of_each_step_the_last_evaluation_is_drawn():
    run = a_drifting_run("x", 0, [1.0, 1.0], [[1, 2], [3, 3]])
    run.records[1] = replace(run.records[1], step=0)
    assert [[model for model, _, _ in row] for row in shown(run)] == [["1", "1"]]


def test_without_concepts_in_the_log_there_is_no_map():
    assert serving_map(a_run("x", 0, [0.5])) == []


@pytest.mark.parametrize(("clients", "large"), [(60, False), (61, True)])
def test_a_map_of_more_than_sixty_clients_is_too_large_to_be_read(clients, large):
    run = a_drifting_run("x", 0, [1.0, 1.0], [[0] * clients] * 2)
    run.header["concepts"] = [[0] * clients] * 3
    assert too_large(serving_map(run)) is large


# -- in the report ------------------------------------------------------------------------------------------


def a_page(tmp_path, clients=2, **changes):
    report = {"window": 1, "published": {"accuracy_omitting_drift": {"oblivious": [60.0, 1.0]}}}
    directory = a_directory(tmp_path, ["oblivious", "<b>"], [3, 4], report=report)
    for arm, models in (("oblivious", 1.0), ("<b>", 4.0)):
        for seed in (3, 4):
            run = a_drifting_run(arm, seed, [0.5, 0.75], [[0, 0], [0, 5]], models_sent=models)
            if clients > 2:
                run.header["concepts"] = [[0] * clients] * 3
                all_alike = np.zeros(clients, dtype=np.int64)
                run.records[:] = [
                    replace(record, serving=all_alike, members=all_alike) for record in run.records
                ]
            store(directory, run)
    return write_report(directory).read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_report_has_the_figures_beside_the_published_ones_and_a_map_for_each_arm(tmp_path):
    page = a_page(tmp_path)
    assert "<td>62.50 ± 0.00</td><td>60.00 ± 1.00</td><td>+2.50 outside</td>" in page
    assert "<td>31.25 ± 0.00</td><td></td><td></td>" in page
    assert "Omitting drift, within two published standard deviations: 0 of 1 methods." in page
    assert "<td>4 (4.00x)</td>" in page
    assert page.count('<div class="map">') == 2
    assert '<h4>&lt;b&gt; <span class="interval">seed 3, 2 models</span></h4>' in page
    assert page.count('class="drifts"') == 2 * 2
    assert "concept 0&emsp;" in page
    assert "concept 1&emsp;" in page


@pytest.mark.slow
def test_maps_that_cannot_be_read_are_left_out_with_a_note(tmp_path):
    page = a_page(tmp_path, clients=61)
    assert '<div class="map">' not in page
    assert "Maps with more than 60 clients or 60 data steps are left out." in page


@pytest.mark.slow
def test_a_report_of_a_trace_without_concepts_has_no_sections_on_them(tmp_path):
    directory = a_directory(tmp_path, ["global"], [0])
    store(directory, a_run("global", 0, [0.5]))
    page = write_report(directory).read_text(encoding="utf-8")
    assert 'id="drift"' not in page
    assert 'id="maps"' not in page
