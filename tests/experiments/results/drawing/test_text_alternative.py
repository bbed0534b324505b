from experiments.results.drawing.plain_figure import PlainFigure, Trace, trace
from experiments.results.drawing.plot import Plot
from experiments.results.drawing.text_alternative import MOST_NAMED, text_alternative


def a_figure(*traces: Trace, **layout: object) -> PlainFigure:
    figure = PlainFigure(**layout)
    figure.add_traces(traces)
    return figure


def test_lines_have_their_ends_and_extremes_and_gaps_do_not_count():
    figure = a_figure(trace("scatter", y=[None, 3, 9, 1, float("nan")], name="a"))
    assert text_alternative("T", figure) == "T. a: from 3 to 1, lowest 1, highest 9."


def test_bars_distributions_and_maps_have_their_values():
    bars = a_figure(trace("bar", x=[2, 5], y=["one", "two"], orientation="h", name="done"))
    assert text_alternative("T", bars) == "T. done: one 2, two 5."
    violin = a_figure(trace("violin", x=[1, 2, 3, 4, 5], orientation="h", name="a"))
    assert text_alternative("T", violin) == "T. a: median 3, middle half from 2 to 4."
    assert text_alternative("T", a_figure(trace("heatmap", z=[[1, 2, 3], [4, 5, 6]]))) == (
        "T. Map of 2 rows and 3 columns."
    )


def test_dots_of_groups_have_their_names_and_titles_their_own_full_stop():
    dots = a_figure(trace("scatter", x=["fast", "slow"], y=[2, 5], mode="markers", name="a"))
    dots.relayout({"xaxis.title.text": "speed<br>of &lt;br&gt;"})
    assert text_alternative("Who?", dots) == "Who? Horizontal axis: speed, of <br>. a: fast 2, slow 5."


def test_hidden_lines_are_left_out_and_many_are_counted():
    lines = [trace("scatter", y=[1], name=f"a{n}") for n in range(MOST_NAMED + 2)]
    text = text_alternative("T", a_figure(*lines, trace("scatter", y=[1], name="hidden", visible=False)))
    assert text.endswith("and 2 more.")
    assert "hidden" not in text


def test_the_element_of_a_figure_has_its_text_escaped():
    drawn = Plot("p", '"<b>', "", a_figure(trace("scatter", y=[1], name="&lt;i&gt;"))).drawing("n")
    assert drawn.startswith('<div role="img" aria-label="&#34;&lt;b&gt;. &lt;i&gt;: from 1 to 1')
