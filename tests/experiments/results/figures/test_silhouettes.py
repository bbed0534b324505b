import pytest

from experiments.results.figures.silhouettes import silhouettes_figure
from tests.experiments.results.drawn import an_arm
from tests.experiments.synthetic_runs import a_record

pytestmark = pytest.mark.usefixtures("figures_as_drawn")


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
