from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.traces.tiny import some_images
from traces.images import stratified_split


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=60), st.sampled_from([0.1, 0.3, 0.5]), st.integers(0, 99)
)
def test_every_image_is_on_one_side_and_every_label_gives_its_share_to_test(
    labels: list[int], share: float, seed: int
) -> None:
    column = np.array(labels)
    train, test = stratified_split(column, share, np.random.default_rng(seed))
    assert sorted([*train.tolist(), *test.tolist()]) == list(range(len(labels)))
    for label in set(labels):
        of_label = labels.count(label)
        assert (column[test] == label).sum() == max(1, round(share * of_label))


def test_which_images_are_tested_is_drawn() -> None:
    labels = np.zeros(40, dtype=np.int64)
    first, second = (stratified_split(labels, 0.5, np.random.default_rng(seed))[1] for seed in (0, 1))
    assert first.tolist() != second.tolist()


def test_images_of_a_split_are_listed_by_label() -> None:
    images = some_images(num_labels=3, per_label=4)  # of every four, the first two are train
    rows, start = images.by_label("train")
    assert rows.tolist() == [0, 1, 4, 5, 8, 9]
    assert start.tolist() == [0, 2, 4, 6]
    rows, start = images.by_label("test")
    assert rows.tolist() == [2, 3, 6, 7, 10, 11]


def test_features_are_scaled_pixels() -> None:
    images = some_images()
    assert images.shape == (2, 2)
    features = images.features(np.array([5, 0]))
    assert features.dtype == np.float32
    assert np.allclose(features, np.array([5 / 255, 0])[:, None, None] * np.ones((2, 2)))
