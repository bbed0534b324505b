"""Several figures as one object, which a notebook draws."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable

import pytest

from driftscale.figures import Figures
from driftscale.results import load
from experiments.results.drawing.plot import Plot
from experiments.results.drawing.style import blank_figure
from tests.experiments.results.many_runs.test_sections import ONE, OTHER, a_measured

pytestmark = pytest.mark.usefixtures("figures_as_drawn")


def a_plot(title: str) -> Plot:
    figure = blank_figure(200, x_title="rounds", y_title="%")
    figure.add_scatter(x=[1, 2], y=[3, 4], name="<b>")
    return Plot(title.lower(), title, f"{title}, by hand.", figure)


FIGURES = Figures([a_plot("First & only"), a_plot("Second")], least_px=700)


def test_they_are_a_sequence_of_plotly_figures() -> None:
    assert len(FIGURES) == 2
    assert [figure.data[0].y for figure in FIGURES] == [(3, 4), (3, 4)]
    assert FIGURES[1].layout.height == 200
    assert repr(FIGURES) == "2 figures: First & only; Second"


def test_a_notebook_draws_each_with_its_title_its_text_and_its_caption() -> None:
    html = FIGURES._repr_html_()
    assert html.count("Plotly.newPlot(") == 2
    assert "<b>First &amp; only</b>" in html
    assert "<small>Second, by hand.</small>" in html
    assert 'aria-label="Second. Horizontal axis: rounds. Vertical axis: %. &lt;b&gt;: from 3 to 4' in html
    assert html.count("min-width: 700px") == 2


def test_plotly_js_is_in_the_output_once_and_no_host_is_asked_for_it() -> None:
    html = FIGURES._repr_html_()
    assert html.count("* plotly.js v") == 1
    assert 4 * 10**6 < len(html) < 6 * 10**6
    assert re.findall(r"<(?:script|link|img)[^>]*(?:src|href)=", html) == []


def test_they_can_be_read_in_a_dark_notebook() -> None:
    assert FIGURES[0].layout.paper_bgcolor == "#ffffff"


def test_a_figure_is_drawn_as_it_was_changed() -> None:
    figures = Figures([a_plot("One")])
    figures[0].update_layout(height=123)
    assert '"height":123' in figures._repr_html_()


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_a_copy_has_the_figures_as_they_were_changed(copied: Callable[[Figures], Figures]) -> None:
    figures = Figures([a_plot("One")], least_px=700)
    figures[0].update_layout(height=123)
    again = copied(figures)
    assert (repr(again), again[0].layout.height) == ("1 figure: One", 123)
    assert "min-width: 700px" in again._repr_html_()


def test_a_sweep_draws_its_gains(tmp_path) -> None:  # type: ignore[no-untyped-def]
    for number, accuracies in ((5, ONE), (10, OTHER)):
        values = {"round.participants": number}
        arms = {"global": ONE, "fielding": accuracies}
        a_measured(tmp_path / f"{number}", arms, swept=values, round={"participants": number})
    figures = load(tmp_path).plot_sections()
    assert repr(figures) == "2 figures: Mean accuracy against participants; Gain against participants"
    assert [figure.data[0].name for figure in figures] == ["global", "fielding"]
    assert "Plotly.newPlot(" in figures._repr_html_()
