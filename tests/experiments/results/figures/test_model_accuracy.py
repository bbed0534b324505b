from dataclasses import replace

import pytest

import driftscale
from emulator.errors import InputError
from experiments.results.figures.model_accuracy import (
    MOST_DRAWN,
    MOST_WRITTEN,
    accuracies,
    in_words,
    model_figure,
)
from experiments.results.pages.report_page import write_results
from experiments.results.reading.not_recorded import NotRecordedError
from tests.experiments.synthetic_runs import a_directory, a_record, a_run, store

pytestmark = pytest.mark.usefixtures("figures_as_drawn")

ROUND = {"participants": 20, "over_commit": 1.3, "rounds": 150, "log_model_accuracy": True}


def measured(found, clusters=(0, 3)):
    return a_record(4, clusters=list(clusters), accuracy_by_concept=found)


def written(path, by_arm, **changes):
    """A run of each arm with two evaluations, whose accuracies by concept are those of `by_arm`."""
    settings = {"report": {"window": 1}, "round": ROUND, **changes}
    directory = a_directory(path, list(by_arm), [0], **settings)
    for arm, found in by_arm.items():
        run = a_run(arm, 0, [0.5, 0.5], clusters=[0, 3])
        records = [
            replace(record, accuracy_by_concept=one) for record, one in zip(run.records, found, strict=True)
        ]
        store(directory, replace(run, records=records))
    return directory


def test_rows_are_clusters_columns_concepts_and_the_best_of_a_column_are_bold():
    (heat,) = model_figure(measured({2: [0.5, 0.25], 0: [0.125, 1.0], 9: [0.5, 0.5]})).validated().data
    assert (heat.y, heat.x) == (("0", "3"), ("0", "2", "9"))
    assert heat.z.tolist() == [[12.5, 50, 50], [100, 25, 50]]
    assert list(heat.text) == [
        ["12.5", "<b>50.0</b>", "<b>50.0</b>"],
        ["<b>100.0</b>", "25.0", "<b>50.0</b>"],
    ]


def test_colours_mean_the_same_in_every_arm():
    (heat,) = model_figure(measured({0: [0.5, 0.25]})).validated().data
    assert (heat.zmin, heat.zmax, heat.showscale) == (0, 100, False)


def test_of_many_concepts_no_accuracy_is_written_and_of_very_many_some_are_drawn():
    (heat,) = (
        model_figure(measured({number: [0.5, 0.5] for number in range(MOST_WRITTEN + 1)})).validated().data
    )
    assert (heat.text, heat.texttemplate, heat.showscale) == (None, None, True)
    clusters, concepts, percent = accuracies(measured({number: [0.5, 0.5] for number in range(250)}))
    assert (clusters, concepts[-1], percent.shape) == ([0, 3], 249, (2, MOST_DRAWN))


def test_the_text_names_the_best_models_of_each_concept_first():
    text = in_words("Who is right", measured({0: [0.125, 1.0], 2: [0.5, 0.25]}))
    assert text == (
        "Who is right. Map of 2 models and 2 concepts. Concept 0: cluster 3 100.0 %, cluster 0 12.5 %. "
        "Concept 2: cluster 0 50.0 %, cluster 3 25.0 %."
    )
    many = in_words("Many", measured({number: [0.5] * 7 for number in range(32)}, range(7)))
    assert many.count("cluster ") == 30 * 5
    assert many.endswith("and 2 more concepts.")


@pytest.mark.slow
def test_each_arm_that_measured_models_has_a_map_of_its_last_evaluation(tmp_path):
    early, late = {0: [0.5, 0.25]}, {0: [0.75, 0.25]}
    directory = written(tmp_path, {"global": [early, late], "other": [early, None], "alone": [None, None]})
    results = driftscale.load(tmp_path)
    assert results.plot_model_accuracy().data[0].z.tolist() == [[75], [25]]
    assert results.plot_model_accuracy("other").data[0].z.tolist() == [[50], [25]]
    with pytest.raises(InputError, match="no models of arm 'alone' were measured; choices: global, other"):
        results.plot_model_accuracy("alone")
    write_results(directory)
    page = directory.report_path.read_text()
    assert page.count("Who is right for what: ") >= 2
    assert "Who is right for what: alone" not in page
    assert "Concept 0: cluster 0 75.0 %, cluster 3 25.0 %" in page
    assert page.count("No client is in cluster 3 then.") == 2


def test_evaluations_after_the_horizon_are_not_drawn(tmp_path):
    early, late = {0: [0.5, 0.25]}, {0: [0.75, 0.25]}
    written(tmp_path, {"global": [early, late]}, report={"window": 1, "horizon_s": 10.0})
    assert driftscale.load(tmp_path).plot_model_accuracy().data[0].z.tolist() == [[50], [25]]


@pytest.mark.slow
def test_without_the_field_there_is_no_map_and_a_notebook_is_told_how_to_record_it(tmp_path):
    directory = written(tmp_path, {"global": [None, None]}, round={**ROUND, "log_model_accuracy": False})
    write_results(directory)
    assert "Who is right for what" not in directory.report_path.read_text()
    with pytest.raises(NotRecordedError, match=r"with round\.log_model_accuracy = true, runs record them"):
        driftscale.load(tmp_path).plot_model_accuracy()
