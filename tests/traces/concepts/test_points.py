from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from emulator.arrays import Bools
from emulator.seeding import RandomStreams
from traces.concepts import CONCEPT_SETS, ConceptSamples
from traces.concepts.points import Points


def points_of(name: str, **settings: Any) -> Points:
    part = CONCEPT_SETS.find(name)
    made = part(part.Settings(**settings))  # type: ignore[call-arg]
    assert isinstance(made, Points)
    return made


def nowhere(path: str) -> Path:
    raise AssertionError(f"{path} was looked for")


def draw(
    name: str, pattern: list[list[int]], samples: int = 4000, seed: int = 0, **settings: Any
) -> ConceptSamples:
    return points_of(name, **settings).draw(np.array(pattern), samples, RandomStreams(seed), nowhere)


def test_a_point_below_the_sine_curve_is_1_and_in_the_other_concept_0() -> None:
    # sin(0.5) = 0.479..., and a point on the curve counts as below.
    points = np.array([[0.5, 0.47], [0.5, 0.49], [0.0, 0.0], [1.0, 0.85]])
    assert points_of("sine").positive(points, 0).tolist() == [True, False, True, False]
    assert points_of("sine").positive(points, 1).tolist() == [False, True, False, True]


def test_a_point_outside_the_circle_is_1_and_the_circle_moves_and_grows() -> None:
    points = np.array(
        [[0.2, 0.5], [0.2, 0.66], [0.34, 0.5], [0.36, 0.5], [0.6, 0.5], [0.84, 0.5], [0.86, 0.5]]
    )
    assert points_of("circle").positive(points, 0).tolist() == [False, True, False, True, True, True, True]
    assert points_of("circle").positive(points, 1).tolist() == [True, True, True, False, False, False, True]


# x1 + x2 is 9.2, 8.5, 7.5, 6, 9.8 and exactly 9; the third feature has no effect.
SUMS = np.array([[4.6, 4.6, 0], [8.0, 0.5, 9], [7.5, 0, 3], [1, 5, 9.9], [9.8, 0, 0], [4, 5, 1]])


@pytest.mark.parametrize(
    ("concept", "positive"),
    [(0, [0, 1, 1, 1, 0, 1]), (1, [0, 0, 1, 1, 0, 0]), (2, [0, 0, 0, 1, 0, 0]), (3, [1, 1, 1, 1, 0, 1])],
)
def test_sea_thresholds_the_sum_of_the_first_two_features(concept: int, positive: list[int]) -> None:
    assert points_of("sea").positive(SUMS, concept).tolist() == [bool(label) for label in positive]


def test_the_thresholds_of_sea_are_a_setting_and_number_its_concepts() -> None:
    sea = points_of("sea", thresholds=[8, 9, 7, 9])
    assert sea.num_concepts == 4
    # The sums are 9.2, 8.5, 7.5, 6, 9.8 and exactly 9.
    assert sea.positive(SUMS, 0).tolist() == [False, False, True, True, False, False]
    assert sea.positive(SUMS, 1).tolist() == [False, True, True, True, False, True]
    assert sea.positive(SUMS, 2).tolist() == [False, False, False, True, False, False]
    assert sea.positive(SUMS, 3).tolist() == sea.positive(SUMS, 1).tolist()
    assert points_of("sea", thresholds=[10]).num_concepts == 1


@pytest.mark.parametrize("threshold", [0, 20, float("nan")])
def test_a_threshold_of_sea_that_all_or_no_points_reach_is_refused(threshold: float) -> None:
    with pytest.raises(ValidationError, match="thresholds"):
        points_of("sea", thresholds=[9, threshold])


@pytest.mark.parametrize(("concept", "share"), [(0, 0.929), (1, 0.804)])
def test_the_share_of_points_outside_the_circle_is_the_constant_predictions_accuracy(
    concept: int, share: float
) -> None:
    drawn = draw("circle", [[concept] * 10])
    assert drawn.label.mean() == pytest.approx(share, abs=0.008)  # four standard deviations of 40,000 points


def clean(drawn: ConceptSamples, concept: int) -> Bools:
    points = drawn.pool.features(drawn.image.ravel()).astype(np.float64)
    return points_of("sea").positive(points, concept)


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.3])
def test_so_many_labels_of_sea_are_flipped(noise: float) -> None:
    drawn = draw("sea", [[2] * 10], noise=noise)
    assert (drawn.label.ravel() != clean(drawn, 2)).mean() == pytest.approx(noise, abs=0.01)


def test_a_tenth_of_the_labels_of_sea_are_flipped_by_default() -> None:
    drawn = draw("sea", [[0] * 10])
    flipped = drawn.label.ravel() != clean(drawn, 0)
    assert flipped.mean() == pytest.approx(0.1, abs=0.01)
    # Labels are flipped with the same probability in both classes.
    for label in (True, False):
        assert flipped[clean(drawn, 0) == label].mean() == pytest.approx(0.1, abs=0.015)


@pytest.mark.parametrize(
    ("name", "shape", "width"), [("sine", (2,), 1), ("circle", (2,), 1), ("sea", (3,), 10)]
)
def test_points_are_uniform_in_their_cube(name: str, shape: tuple[int, ...], width: float) -> None:
    pool = draw(name, [[0, 1], [1, 0]]).pool
    features = pool.features(np.arange(16_000))
    assert (pool.shape, pool.num_labels, features.dtype) == (shape, 2, np.float32)
    assert features.min() >= 0
    assert features.max() < width
    for quarter in range(4):
        inside = (features >= quarter * width / 4) & (features < (quarter + 1) * width / 4)
        assert np.allclose(inside.mean(axis=0), 0.25, atol=0.015)


@pytest.mark.parametrize("name", ["sine", "circle", "sea"])
def test_labels_fit_the_points_that_are_stored(name: str) -> None:
    drawn = draw(name, [[0, 1]], **({"noise": 0.0} if name == "sea" else {}))
    for client in (0, 1):
        points = drawn.pool.features(drawn.image[0, client]).astype(np.float64)
        assert (drawn.label[0, client] == points_of(name).positive(points, client)).all()


@pytest.mark.parametrize("name", ["sine", "circle", "sea"])
def test_a_batch_hangs_on_its_own_cell_alone(name: str) -> None:
    long = draw(name, [[0, 0, 1], [0, 1, 1], [1, 1, 1]], samples=50)
    short = draw(name, [[0, 0], [0, 1]], samples=50)
    assert np.array_equal(long.label[:2, :2], short.label)
    cells = (long.pool.features(long.image[:2, :2].ravel()), short.pool.features(short.image.ravel()))
    assert np.array_equal(*cells)
    assert len(np.unique(long.pool.pixels, axis=0)) == 9 * 50  # and no two cells share their points


def test_another_seed_draws_other_points() -> None:
    first, second = (draw("sine", [[0]], samples=50, seed=seed).pool.pixels for seed in (0, 1))
    assert not np.isin(first, second).any()
