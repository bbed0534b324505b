import pytest

from experiments.results.drawing.style import MAX_POINTS, NO_CLUSTER_COLOUR
from experiments.results.figures.clusters import clustered_run, is_thinned, membership_figure
from tests.experiments.results.drawn import a_clustered_run, a_summary, drawn_arms, traces
from tests.experiments.synthetic_runs import a_run

pytestmark = pytest.mark.usefixtures("figures_as_drawn")


def test_the_map_leaves_white_where_a_client_holds_no_data():
    (heat,) = traces(membership_figure(a_clustered_run([[-1, 3, 3], [3, 3, -1]])).validated(), "heatmap")
    assert list(heat.colorbar.ticktext) == ["none", "3"]
    assert heat.colorscale[0][1] == NO_CLUSTER_COLOUR


def test_the_map_sorts_clients_by_their_sequence_and_holds_memberships_until_they_change():
    figure = membership_figure(a_clustered_run([[7, 3, 7], None, [3, 3, 7]])).validated()
    (heat,) = traces(figure, "heatmap")
    assert list(heat.y) == ["client 1", "client 0", "client 2"]
    assert heat.z.tolist() == [[0, 0, 0], [1, 1, 0], [1, 1, 1]]
    assert heat.colorbar.ticktext == ("3", "7")


def test_a_cluster_keeps_its_colour_whichever_others_there_are():
    def colours(labels):
        (heat,) = traces(membership_figure(a_clustered_run([labels])).validated(), "heatmap")
        return {
            label: heat.colorscale[2 * position][1] for position, label in enumerate(heat.colorbar.ticktext)
        }

    assert colours([0, 2, 5])["5"] == colours([5, 9, 9])["5"]


def test_the_map_of_many_clients_and_rounds_is_thinned():
    members = [client % 2 for client in range(3 * MAX_POINTS)]
    run = a_clustered_run([members] + [None] * (2 * MAX_POINTS))
    (heat,) = traces(membership_figure(run).validated(), "heatmap")
    assert heat.z.shape == (MAX_POINTS, MAX_POINTS)
    assert (heat.x[0], heat.x[-1]) == (0, 2 * MAX_POINTS)
    assert is_thinned(run)


def test_an_arm_of_one_cluster_has_no_map():
    (arm,) = drawn_arms(a_summary([a_run("global", 0, [0.5])]))
    assert clustered_run(arm) is None
