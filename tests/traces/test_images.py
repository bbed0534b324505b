from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.traces.tiny import some_images
from traces.images import ImageSet, stratified_parts, stratified_split, two_digit_numbers


@pytest.mark.slow
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


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=60),
    st.sampled_from([(0.6, 0.2), (0.7, 0.3), (0.1, 0.9), (0.05, 0.05), (1.0, 1e-12)]),
    st.integers(0, 99),
)
def test_every_label_gives_its_shares_to_train_and_test_and_shares_of_1_leave_out_nothing(
    labels: list[int], shares: tuple[float, float], seed: int
) -> None:
    column = np.array(labels)
    train, test = stratified_parts(column, shares, np.random.default_rng(seed))
    assert len(set(train.tolist()) | set(test.tolist())) == len(train) + len(test)
    for label in set(labels):
        of_label, trained, tested = (int((of == label).sum()) for of in (column, column[train], column[test]))
        assert trained == round(shares[0] * of_label)
        assert trained + tested == round(sum(shares) * of_label)


def test_counts_of_a_label_are_rounded_with_the_images_before_them() -> None:
    """Of 1 to 7 images 0.6 are 0.6, 1.2, 1.8, 2.4, 3, 3.6 and 4.2, and 0.8 are 0.8 to 5.6."""
    labels = np.repeat(np.arange(7), np.arange(1, 8))
    train, test = stratified_parts(labels, (0.6, 0.2), np.random.default_rng(0))
    assert np.bincount(labels[train]).tolist() == [1, 1, 2, 2, 3, 4, 4]
    assert np.bincount(labels[test], minlength=7).tolist() == [0, 1, 0, 1, 1, 1, 2]


def test_which_images_are_left_out_is_drawn() -> None:
    labels = np.zeros(40, dtype=np.int64)
    parts = [stratified_parts(labels, (0.5, 0.25), np.random.default_rng(seed)) for seed in (0, 0, 1)]
    first, again, other = (np.concatenate(part).tolist() for part in parts)
    assert first == again
    assert sorted(first) != sorted(other)


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


def test_a_two_digit_number_is_two_images_of_its_split_side_by_side() -> None:
    # Two images of each digit, one for train and one for test, whose pixels name digit and split.
    digit, is_test = np.divmod(np.arange(20), 2)
    pixels = np.repeat((10.0 * is_test + digit)[:, None, None], 3, axis=2).astype(np.float32)  # (20, 1, 3)
    digits = ImageSet(pixels, 0.5, digit, 10, np.flatnonzero(is_test == 0), np.flatnonzero(is_test == 1))
    numbers = two_digit_numbers(digits, np.random.default_rng(0))
    assert numbers.shape == (1, 6)
    assert numbers.num_labels == 100
    assert numbers.scale == 0.5
    for images, offset, count in ((numbers.train, 0, 60), (numbers.test, 10, 30)):
        labels = numbers.labels[images]
        assert np.bincount(labels, minlength=100).tolist() == [count] * 100
        assert (numbers.pixels[images, 0, :3] == offset + labels[:, None] // 10).all()
        assert (numbers.pixels[images, 0, 3:] == offset + labels[:, None] % 10).all()


def test_two_digit_numbers_are_drawn() -> None:
    digit = np.repeat(np.arange(10), 4)
    pixels = np.arange(40, dtype=np.float32)[:, None, None]
    is_test = np.arange(40) % 4 == 3
    digits = ImageSet(pixels, 1.0, digit, 10, np.flatnonzero(~is_test), np.flatnonzero(is_test))
    first, again, other = (
        two_digit_numbers(digits, np.random.default_rng(seed)).pixels for seed in (0, 0, 1)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
