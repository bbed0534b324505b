import json

import numpy as np
import pyarrow as pa
import pytest

from emulator.messages import NamedNumbers, PairwiseTrigger, Trigger
from experiments.results.drawing.arms import Arm
from experiments.results.drawing.plot import Plot
from experiments.results.figures.silhouettes import silhouettes_figure
from experiments.results.figures.timeline import (
    MOST_OTHERS,
    MOST_SLOWEST,
    TimelineRound,
    chosen_rounds,
    drawn_visits,
    timeline_figure,
    timeline_text,
)
from experiments.results.figures.trigger import trigger_figure
from experiments.results.figures.waiting import waiting_figure
from experiments.results.reading.recorded import squared_distances
from experiments.results.reading.run_directory import FinishedRun
from experiments.results.statistics.closers import Closer
from experiments.results.statistics.visit_columns import VisitColumns
from experiments.results.statistics.waiting import BETWEEN, COMPONENTS, waiting
from experiments.results.tables.closers import closers_table
from experiments.results.tables.round_lengths import ArmWaiting, lengths_sentence, lengths_table
from tests.experiments.synthetic_runs import TIMING, a_record

pytestmark = pytest.mark.usefixtures("figures_as_drawn")


def an_arm(name, records, position=0, seeds=1):
    return Arm(name, [FinishedRun(name, seed, {}, records, TIMING) for seed in range(seeds)], [], position)


def a_trigger(shift, *, threshold=0.5, mean_distance=4.0, fired=False):
    return Trigger(shift, mean_distance, threshold, 2, fired)


def named(figure, name):
    return [trace for trace in figure.data if trace.name == name]


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


# -- triggers and silhouettes ------------------------------------------------------------------------------


def limit(trigger, *, are_squared):
    return trigger.compared(are_squared=are_squared)["limit"]


def test_the_limit_is_the_threshold_times_the_mean_distance_between_centres():
    assert limit(a_trigger(1.0), are_squared=False) == 2.0
    assert limit(a_trigger(1.0), are_squared=True) == 1.0
    assert limit(a_trigger(1.0, threshold=None), are_squared=False) is None
    assert limit(a_trigger(1.0, mean_distance=None), are_squared=True) is None
    assert limit(PairwiseTrigger(0.3, 0.1, 2, True), are_squared=True) == 0.1


def test_only_a_clusterer_that_names_squared_distances_has_them():
    arms = [
        {"name": "global", "clusterer": {"kind": "single"}},
        {"name": "fielding", "clusterer": {"kind": "fielding", "distance": "squared_euclidean"}},
    ]
    assert squared_distances({"arm": arms}) == {"global": False, "fielding": True}


def test_shifts_limits_and_fired_rounds_are_drawn_where_a_trigger_was_evaluated():
    records = [
        a_record(0),
        a_record(1, trigger=a_trigger(0.5)),
        a_record(4, trigger=a_trigger(2.5, fired=True)),
        a_record(6, trigger=a_trigger(1.0, mean_distance=None, threshold=None)),
    ]
    figure = trigger_figure([an_arm("fielding", records, seeds=2)]).validated()
    assert [trace.x.tolist() for trace in named(figure, "measured")] == [[1, 4, 6]] * 2
    assert named(figure, "measured")[0].y.tolist() == [0.5, 2.5, 1.0]
    np.testing.assert_array_equal(named(figure, "limit")[0].y, [2, 2, np.nan])
    (fired,) = named(figure, "fired")
    assert (fired.x, fired.y) == ((4, 4), (2.5, 2.5))
    assert not figure.layout.updatemenus


def test_what_a_trigger_named_is_a_line_for_each_number_and_each_cluster():
    records = [
        a_record(1, trigger=NamedNumbers({"spread": 0.5, "far": [1.0, 2.0]}, 2, False)),
        a_record(4, trigger=NamedNumbers({"far": [3.0, 0.0, 5.0], "limit": 4.0}, 3, True)),
        a_record(5, trigger=NamedNumbers({"spread": 0.25, "far": 6}, 1, True)),
    ]
    figure = trigger_figure([an_arm("fielding", records)]).validated()
    *lines, fired = figure.data
    nan = np.nan
    assert [line.name for line in lines] == ["spread", "far 0", "far 1", "far 2", "limit"]
    assert {tuple(line.x) for line in lines} == {(1, 4, 5)}
    np.testing.assert_array_equal(
        [line.y for line in lines],
        [[0.5, nan, 0.25], [1, 3, 6], [2, 0, nan], [nan, 5, nan], [nan, 4, nan]],
    )
    assert len({(line.line.color, line.line.dash) for line in lines}) == 5
    assert fired.marker.color not in {line.line.color for line in lines}
    assert (fired.x, fired.y) == ((4, 5), (5.0, 0.25))  # at what was named first
    assert figure.layout.yaxis.title.text == "value"


def test_as_many_lines_as_a_trigger_may_have_differ_and_a_long_list_is_thinned():
    records = [a_record(0, trigger=NamedNumbers({f"n{n}": 1.0 for n in range(16)}, 2, False))]
    *lines, _ = trigger_figure([an_arm("fielding", records)]).validated().data
    assert len({(line.line.color, line.line.dash) for line in lines}) == 16
    records = [a_record(0, trigger=NamedNumbers({"n": [1.0] * 1000}, 1000, False))]
    *lines, _ = trigger_figure([an_arm("fielding", records)]).validated().data
    assert (lines[0].name, lines[-1].name, len(lines)) == ("n 0", "n 999", 20)


def test_a_list_shows_one_arm_and_at_first_one_that_fired():
    calm = an_arm("calm", [a_record(0, trigger=a_trigger(0.1))])
    eager = an_arm("eager", [a_record(0, trigger=a_trigger(9.0, fired=True))], 1)
    figure = trigger_figure([calm, eager]).validated()
    assert [trace.visible for trace in figure.data] == [False] * 3 + [True] * 3
    (menu,) = figure.layout.updatemenus
    assert menu.active == 1
    assert [button.label for button in menu.buttons] == ["calm", "eager"]
    assert menu.buttons[0].args[0]["visible"] == [True] * 3 + [False] * 3


def test_silhouettes_have_every_k_tried_and_the_line_of_the_chosen_one():
    tried = {2: 0.25, 3: 0.75, 4: None}
    records = [
        a_record(0, silhouettes=tried, clusters=[0, 1, 2]),
        a_record(1, clusters=[0, 1, 2]),
        a_record(2, silhouettes={2: 0.5, 3: 0.25}, clusters=[0, 4], reclustered=True),
        a_record(3, clusters=[0, 4]),
    ]
    every, chosen, counts = silhouettes_figure([an_arm("fielding", records)]).validated().data
    assert list(zip(every.x.tolist(), every.customdata.tolist(), every.y.tolist(), strict=True)) == [
        *((0, 2, 0.25), (0, 3, 0.75), (2, 2, 0.5), (2, 3, 0.25))
    ]
    assert (chosen.x.tolist(), chosen.y.tolist(), chosen.customdata.tolist()) == ([0, 2], [0.75, 0.5], [3, 2])
    assert chosen.mode == "markers"  # between two clusterings there is no silhouette
    assert (counts.x.tolist(), counts.y.tolist()) == ([0, 2, 3], [3, 2, 2])


# -- waiting ---------------------------------------------------------------------------------------------


def waited_of(arm, **seconds):
    named = {name.replace("_", " "): value for name, value in seconds.items()}
    return ArmWaiting(arm, 10.0, {**dict.fromkeys((*COMPONENTS, BETWEEN), 0.0), **named})


def test_the_waiting_of_an_arm_is_a_mean_over_its_seeds():
    runs = [waiting([a_round(0)], None), waiting([a_round(0), a_round(1, closed_s=9.0)], None)]
    arm = ArmWaiting.of_runs("global", runs)
    assert (arm.rounds, arm.seconds["visits"], arm.seconds["before dispatch"]) == (1.5, 10.0, 1.5)
    assert arm.length_s == 11.5 / 1.5


def test_bars_add_up_to_the_mean_length_of_a_round_or_to_all_of_them():
    arms = [waited_of("global", compute=90.0, upload=10.0), waited_of("fielding", compute=20.0)]
    figure = waiting_figure(arms).validated()
    assert [trace.name for trace in figure.data] == ["compute", "upload"]
    assert [list(trace.x) for trace in figure.data] == [[9, 2], [1, 0]]
    per_round, summed = figure.layout.updatemenus[0].buttons
    assert per_round.args[0]["x"] == [[9, 2], [1, 0]]
    assert summed.args[0]["x"] == [[90, 20], [10, 0]]


def test_the_sentence_says_how_much_longer_the_rounds_of_an_arm_are():
    sentence = lengths_sentence([waited_of("global", compute=100.0), waited_of("fielding", upload=50.0)])
    assert sentence.startswith(
        "Mean length of a round: global 10.0 s (compute 100 %); fielding 5.00 s (upload 100 %). "
        "Rounds of global are 2 times as long as the shortest"
    )


def test_of_arms_with_equal_rounds_both_sentences_name_the_same_one():
    arms = [waited_of(f"arm-{number}", compute=100.0 + 50 * (number > 2)) for number in range(6)]
    sentence = lengths_sentence(arms)
    assert "arm-3 15.0 s" in sentence
    assert "Rounds of arm-3 are 1.5 times" in sentence


def test_the_sentence_on_many_arms_names_only_the_shortest_and_the_longest_rounds():
    arms = [waited_of(f"arm-{number:02d}", compute=100.0 + number) for number in range(22)]
    sentence = lengths_sentence(arms)
    assert "arm-00" in sentence
    assert "arm-21" in sentence
    assert "arm-10" not in sentence
    assert sentence.startswith("Shortest and longest mean round of 22 arms")


def test_tables_have_shares_of_rounds_and_the_clients_that_closed_them():
    table = lengths_table([waited_of("global", compute=90.0, upload=10.0)])
    assert table.headings == ["rounds", "mean length", "compute", "upload"]
    assert [cell.figure for cell in table.rows[0][1]] == ["10", "10.0 s", "90.0 %", "10.0 %"]
    closer = Closer(0, 7, 3, 2, 0.25, 20.0, compute_slowness=4.0)
    table = closers_table([("global", closer)])
    assert [cell.figure for cell in table.rows[0][1]] == [
        *("0", "7", "3", "2", "25.0 %", "10.0 s", "4.00x", "n/a", "n/a")
    ]


# -- timelines -------------------------------------------------------------------------------------------


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
