import numpy as np
import pytest

from emulator.messages import NamedNumbers, PairwiseTrigger, Trigger
from experiments.results.figures.trigger import trigger_figure
from experiments.results.reading.recorded import squared_distances
from tests.experiments.results.drawn import an_arm, named
from tests.experiments.synthetic_runs import a_record

pytestmark = pytest.mark.usefixtures("figures_as_drawn")


def a_trigger(shift, *, threshold=0.5, mean_distance=4.0, fired=False):
    return Trigger(shift, mean_distance, threshold, 2, fired)


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
