"""The word of an objective, where texts say accuracy."""

from __future__ import annotations

import pytest

from experiments.results.drawing.plain_figure import PlainFigure
from experiments.results.drawing.plot import Plot
from experiments.results.tables.cells import Cell
from experiments.results.tables.table import NotedTable, TextTable
from experiments.results.wording import ACCURACY, Words, told

TOKENS = Words("tokens right", ["high-accuracy", "accuracies/of mine"])


@pytest.mark.parametrize(
    ("text", "of_tokens"),
    [
        ("mean accuracy (%)", "mean tokens right (%)"),
        ("Accuracies are means. Accuracy: 5 %.", "Tokens right are means. Tokens right: 5 %."),
        ("time-to-accuracy of high-accuracy", "time-to-tokens right of high-accuracy"),
        ("in accuracies/of mine, a/accuracy.toml", "in accuracies/of mine, a/accuracy.toml"),
        ("round.log_client_accuracy and mean_accuracy", "round.log_client_accuracy and mean_accuracy"),
        ("report.first = 'accuracy', `accuracy`", "report.first = 'accuracy', `accuracy`"),
        ("accuracy.toml, most accurate", "accuracy.toml, most accurate"),
    ],
)
def test_accuracy_is_told_in_the_word_of_the_objective_but_for_names_and_keys(
    text: str, of_tokens: str
) -> None:
    assert told(TOKENS, text) == of_tokens
    assert told(TOKENS, of_tokens) == of_tokens
    assert told(Words(ACCURACY), text) is text


def test_a_word_that_has_accuracy_in_it_is_told_once() -> None:
    words = Words("within 1 accuracy")
    assert told(words, told(words, "Accuracy")) == "Within 1 accuracy"


def test_an_arm_called_accuracy_keeps_its_name_in_cells_and_sentences() -> None:
    table = TextTable(["accuracy", "mean accuracy"], [("accuracy", [Cell("accuracy"), Cell("5 %")])], 1)
    found = told(Words("tokens right"), NotedTable("accuracy", table, ["accuracy"]))
    assert found.table.headings == ["accuracy", "mean tokens right"]
    assert found.table.rows == table.rows
    assert (found.title, found.notes) == ("tokens right", ["tokens right"])
    assert told(Words("tokens right", ["accuracy"]), "accuracy is above") == "accuracy is above"


def test_a_figure_is_told_in_its_axes_and_captions_and_keeps_its_id_and_numbers() -> None:
    figure = PlainFigure(yaxis={"title": {"text": "accuracy (%)"}})
    figure.add_scatter(name="personal accuracy", y=[1.0, 2.0])
    plot = told(TOKENS, Plot("accuracy", "Accuracy", "Its accuracy", figure))
    assert (plot.id, plot.title, plot.caption) == ("accuracy", "Tokens right", "Its tokens right")
    assert plot.figure.layout["yaxis"]["title"]["text"] == "tokens right (%)"
    assert plot.figure.data == [{"type": "scatter", "name": "personal tokens right", "y": [1.0, 2.0]}]
    assert figure.data[0]["name"] == "personal accuracy"
