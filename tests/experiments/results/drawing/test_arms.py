import numpy as np
import pytest

from experiments.results.drawing.arms import REFERENCE_COLOUR, Arm
from experiments.results.drawing.style import spread

pytestmark = pytest.mark.usefixtures("figures_as_drawn")


def test_seeds_of_different_speed_share_a_grid_where_all_of_them_run():
    grid, mean, _, _ = spread(
        [(np.array([1.0, 3.0, 5.0]), np.array([0.0, 2.0, 4.0])), (np.array([2.0, 4.0]), np.array([1.0, 3.0]))]
    )
    assert grid.tolist() == [2.0, 3.0, 4.0]
    assert mean.tolist() == [0.5, 1.5, 2.5]


def test_every_arm_looks_different_and_the_reference_is_grey():
    arms = [Arm(f"arm {position}", [], [], position) for position in range(25)]
    assert arms[0].colour == REFERENCE_COLOUR
    assert len({(arm.line["color"], arm.line["dash"]) for arm in arms}) == 25
    assert len({(arm.colour, arm.symbol) for arm in arms}) == 25
