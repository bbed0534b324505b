import numpy as np
import pytest

from coordinator.representations.sketch import CountSketch
from emulator.seeding import RandomStreams

VECTORS = np.random.default_rng(0).normal(size=(20, 3000)).astype(np.float32)


def by_definition(vectors: np.ndarray, size: int, seed: int) -> np.ndarray:
    """Each coordinate is added to its bucket with its sign, one by one."""
    generator = RandomStreams(seed).generator("sketch")
    bucket = generator.integers(size, size=vectors.shape[1])
    sign = 2 * generator.integers(2, size=vectors.shape[1]) - 1
    sketches = np.zeros((len(vectors), size))
    for coordinate in range(vectors.shape[1]):
        sketches[:, bucket[coordinate]] += sign[coordinate] * vectors[:, coordinate].astype(np.float64)
    return sketches


def test_each_coordinate_is_added_to_its_bucket_with_its_sign():
    sketches = CountSketch(3000, 64, RandomStreams(7)).of(VECTORS)
    assert sketches == pytest.approx(by_definition(VECTORS, 64, 7), abs=1e-9)


def test_a_bucket_that_no_coordinate_falls_into_stays_zero():
    sketches = CountSketch(2, 50, RandomStreams(0)).of(np.array([[3.0, 4.0]], dtype=np.float32))
    assert sorted(np.abs(sketches[0]).tolist())[-2:] == [3.0, 4.0]
    assert np.count_nonzero(sketches) == 2


def test_all_clients_and_rounds_have_one_sketch_per_seed():
    again = CountSketch(3000, 64, RandomStreams(7)).of(VECTORS[:3])
    assert np.array_equal(again, CountSketch(3000, 64, RandomStreams(7)).of(VECTORS)[:3])
    assert not np.array_equal(again, CountSketch(3000, 64, RandomStreams(8)).of(VECTORS[:3]))


def test_squared_distances_are_kept_on_average():
    """The variance of a squared distance's ratio is 2 / size at most: over 190 pairs the mean is near 1."""
    sketches = CountSketch(3000, 1024, RandomStreams(1)).of(VECTORS)
    first, second = np.triu_indices(20, 1)
    true = np.square(VECTORS[first].astype(np.float64) - VECTORS[second]).sum(axis=1)
    kept = np.square(sketches[first] - sketches[second]).sum(axis=1)
    assert (kept / true).mean() == pytest.approx(1, abs=0.05)
    assert (np.abs(kept / true - 1) < 4 * np.sqrt(2 / 1024)).all()
