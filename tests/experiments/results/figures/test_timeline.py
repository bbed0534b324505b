import json

import numpy as np
import pyarrow as pa
import pytest

from experiments.results.drawing.plot import Plot
from experiments.results.figures.timeline import (
    MOST_OTHERS,
    MOST_SLOWEST,
    drawn_visits,
    timeline_figure,
    timeline_text,
)
from experiments.results.statistics.clients.visits import VisitColumns
from experiments.results.tables.chosen_rounds import TimelineRound, chosen_rounds
from tests.experiments.results.drawn import named
from tests.experiments.synthetic_runs import a_record

pytestmark = pytest.mark.usefixtures("figures_as_drawn")


def visits_of_round(number, ends, outcomes=None, *, dispatched_s=1.0):
    """Visits of one round that download for 1 s, compute for 2 s and upload until they are due."""
    count = len(ends)
    columns = {
        "round": [number] * count,
        "visit": list(range(count)),
        "client": list(range(100, 100 + count)),
        "device": [None] * count,
        "dispatched_s": [dispatched_s] * count,
        "requests_s": [0.0] * count,
        "download_s": [1.0] * count,
        "compute_s": [2.0] * count,
        "upload_s": [max(0.0, end - dispatched_s - 3.0) for end in ends],
        "end_s": list(ends),
        "outcome": outcomes or ["completed"] * count,
        "crashed": [False] * count,
    }
    types = {"device": pa.int64()}
    return VisitColumns.from_table(
        pa.table({name: pa.array(values, types.get(name)) for name, values in columns.items()})
    )


def a_round(number, *, opened_s=0.0, closed_s=7.0):
    return a_record(number, opened_s=opened_s, dispatched_s=1.0, closed_s=closed_s)


def test_a_timeline_has_a_bar_per_phase_up_to_the_end_of_each_visit():
    visits = visits_of_round(0, [7.0, 3.0, 2.0], ["completed", "dropped", "abandoned"])
    figure = timeline_figure([TimelineRound("global", 0, a_round(0), visits)]).validated()
    assert [list(named(figure, phase)[0].x) for phase in ("requests", "download", "compute", "upload")] == [
        *([0, 0, 0], [1, 1, 1], [0, 1, 2], [0, 0, 3])
    ]
    ends = {name: (named(figure, name)[0].x, named(figure, name)[0].y) for name in ("completed", "abandoned")}
    assert ends == {"completed": ((6,), (2,)), "abandoned": ((1,), (0,))}
    assert named(figure, "dropped out")[0].text == ("client 101: dropped out, 2 s",)
    assert figure.layout.yaxis.ticktext == ("102", "101", "100")
    assert [shape.x0 for shape in figure.layout.shapes] == [-1, 0, 6]
    assert len({trace.marker.symbol for trace in figure.data if trace.type == "scatter"}) == 4
    assert not figure.layout.sliders


def test_the_text_of_a_timeline_says_what_became_of_the_visits():
    outcomes = ["completed", "completed", "abandoned", "dropped"]
    visits = visits_of_round(0, [4.0, 7.0, 7.0, 2.0], outcomes)
    assert timeline_text([TimelineRound("global", 0, a_round(0), visits, "slowest")]) == (
        "At first global, seed 0, round 0 (slowest): 4 visits, 2 completed, 1 abandoned, 1 dropped out, "
        "6.00 s from the dispatch to the end of the round. The last visit to end is of client 102."
    )


def test_a_slider_chooses_the_round_of_an_arm_and_a_list_the_arm():
    rounds = [
        TimelineRound(arm, 0, a_round(number), visits_of_round(number, [7.0]), reason)
        for arm in ("global", "fielding")
        for number, reason in ((0, ""), (5, "slowest"))
    ]
    figure = timeline_figure(rounds).validated()
    (slider,) = figure.layout.sliders
    assert slider.active == 1
    assert [step.label for step in slider.steps] == ["0", "5 (slowest)"]
    (menu,) = figure.layout.updatemenus
    assert [button.label for button in menu.buttons] == ["global", "fielding"]
    assert "fielding, seed 0, round 5" in menu.buttons[1].args[1]["xaxis.title.text"]
    assert len(menu.buttons[1].args[1]["sliders"][0]["steps"]) == 2


def test_a_round_of_many_visits_is_thinned_to_the_last_to_end_and_a_sample():
    visits = visits_of_round(0, [10.0 + number for number in range(1000)])
    drawn = drawn_visits(visits)
    assert drawn[-MOST_SLOWEST:].tolist() == list(range(970, 1000))
    assert len(drawn) == MOST_SLOWEST + MOST_OTHERS
    assert drawn[[0, MOST_OTHERS - 1]].tolist() == [0, 969]


@pytest.mark.parametrize(("num_arms", "count"), [(1, 9), (22, 3)])
def test_the_slowest_and_the_median_round_can_be_chosen_and_few_others(num_arms, count):
    lengths = np.random.default_rng(1).permutation(101) + 1.0
    records = [a_round(number, closed_s=length) for number, length in enumerate(lengths)]
    chosen = chosen_rounds(records, num_arms)
    reasons = {reason: record.closed_s for record, reason in chosen if reason}
    assert reasons == {"median": 51, "slowest": 101}
    assert len(chosen) <= count
    assert [record.round for record, _ in chosen] == sorted(record.round for record, _ in chosen)


def test_the_timelines_of_22_arms_of_a_thousand_participants_stay_small():
    visits = visits_of_round(0, np.random.default_rng(0).lognormal(4.0, 1.0, 1000) + 4.0)
    rounds = [
        TimelineRound(f"an-arm-with-a-name-{arm}", 0, a_round(number), visits)
        for arm in range(22)
        for number in range(3)
    ]
    plot = Plot("timeline", "", "", timeline_figure(rounds))
    assert len(plot.drawing("x")) < 500_000
    assert "NaN" not in json.dumps(json.loads(plot.figure.validated().to_json())["layout"])
