from __future__ import annotations

import json
import re

import numpy as np

from experiments.results.drawing.plain_figure import PlainFigure, single


def test_the_element_of_a_figure_has_its_height_and_a_call_with_its_content() -> None:
    figure = PlainFigure(height=300)
    figure.add_scatter(x=np.array([1, 2]), y=[3, None], name="a       b")
    html = figure.to_html("some-id", {"displaylogo": False})
    start = '<div style="height:300px; width:100%;"><div id="some-id" class="plotly-graph-div"'
    assert html.startswith(start)
    call = re.fullmatch(r'.*<script>Plotly\.newPlot\("some-id",(.*)\)</script></div>', html)
    assert call is not None
    data, layout, config = json.loads(f"[{call[1]}]")
    content = figure.content()
    assert data == [{**content["data"][0], "y": [3, None]}]
    assert layout == content["layout"]
    assert config == {"displaylogo": False}


def test_no_text_of_a_figure_ends_its_script() -> None:
    figure = PlainFigure()
    figure.add_scatter(y=[1], name="</script><script>alert(1)</script>")
    html = figure.to_html("x", {})
    assert html.startswith('<div style="height:100%; ')
    assert html.count("<script>") == html.count("</script>") == 1


def test_numbers_that_single_precision_does_not_hold_are_drawn_at_its_end():
    drawn = single(np.array([0.1, np.nan, 1e100, -1e100]))
    assert drawn.dtype == np.float32
    assert drawn[0] == np.float32(0.1)
    assert np.isnan(drawn[1])
    assert drawn[2:].tolist() == [np.float32(3e38), np.float32(-3e38)]
