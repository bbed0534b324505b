from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from emulator.arrays import Ints
from emulator.errors import DataFileError
from emulator.seeding import RandomStreams
from tests.traces.tiny import write_idx, write_idx_folder
from traces.concepts import CONCEPT_SETS, ConceptSamples
from traces.concepts.images import standardised
from traces.idx import read_idx, read_idx_folder
from traces.patterns import named_pattern

PUBLISHED_TRAINING_IMAGES = 60_000
SIX_BATCHES = [[0, 0], [1, 0], [0, 0], [0, 1]]  # of concept 0, and two of concept 1


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Eight labels with six training images each; image i has label i % 8 and grey level i."""
    return write_idx_folder(tmp_path / "set", num_labels=8, per_label=6)


@pytest.fixture
def labels_of_mnist(tmp_path: Path, published: Path) -> Path:
    """A folder whose training labels are MNIST's, and whose images have one pixel."""
    folder = write_idx_folder(tmp_path / "labels")
    labels = read_idx(published / "mnist" / "train-labels-idx1-ubyte.gz", 1)
    write_idx(folder / "train-labels-idx1-ubyte", np.frombuffer(labels, np.uint8))
    write_idx(folder / "train-images-idx3-ubyte", np.zeros((len(labels), 1, 1)))
    write_idx(folder / "t10k-images-idx3-ubyte", np.zeros((12, 1, 1)))
    return folder


def share_trained_on_before(image: Ints) -> float:
    """The share of test images that some client has trained on before they are tested on.

    At step t, all clients have trained on the batches up to t, and are tested on batch t + 1.
    """
    return float(np.mean([np.isin(image[t], image[:t]) for t in range(1, len(image))]))


def draw(
    name: str, folder: Path, pattern: list[list[int]] | Ints, samples: int = 5, **more: Any
) -> ConceptSamples:
    part = CONCEPT_SETS.find(name)
    made = part(part.Settings.model_validate({"folder": "set", **more}))  # type: ignore[call-arg]
    return made.draw(np.array(pattern), samples, RandomStreams(0), lambda path: folder)


def test_each_concept_but_the_first_swaps_two_labels(folder: Path) -> None:
    drawn = draw("label_swaps", folder, [[0], [1], [2], [3]], samples=12)
    assert sorted(drawn.image.ravel().tolist()) == list(range(48))  # every image is drawn
    for concept, names in enumerate(
        (
            [0, 1, 2, 3, 4, 5, 6, 7],
            [0, 2, 1, 3, 4, 5, 6, 7],
            [0, 1, 2, 4, 3, 5, 6, 7],
            [0, 1, 2, 3, 4, 6, 5, 7],
        )
    ):
        true = drawn.image[concept, 0] % 8
        assert len(set(true.tolist())) > 4
        assert drawn.label[concept, 0].tolist() == [names[label] for label in true.tolist()]


def test_other_labels_may_be_swapped(folder: Path) -> None:
    drawn = draw("label_swaps", folder, [[1]], samples=48, swaps=[[0, 7]])
    true = drawn.image[0, 0] % 8
    assert drawn.label[0, 0].tolist() == [{0: 7, 7: 0}.get(label, label) for label in true.tolist()]


def test_no_image_is_used_twice(folder: Path) -> None:
    image = draw("label_swaps", folder, [[0, 1, 0], [0, 0, 1], [1, 1, 1]]).image
    assert image.shape == (3, 3, 5)
    assert len(np.unique(image)) == 45
    assert (np.diff(image.ravel()) < 0).any()  # not in the file's order


def test_more_samples_than_there_are_training_images_are_one_clear_line(folder: Path) -> None:
    draw("label_swaps", folder, [[0, 0]] * 4, samples=6)
    with pytest.raises(
        DataFileError, match=r"has 48 training images, .* 5 x 2 .* = 5 needs 50 different ones"
    ):
        draw("label_swaps", folder, [[0, 0]] * 5)


def test_a_swap_of_a_label_that_is_not_there_is_one_clear_line(folder: Path) -> None:
    with pytest.raises(DataFileError, match=r"trace\.concepts\.swaps names label 9; its labels are 0 to 7"):
        draw("label_swaps", folder, [[0]], swaps=[[2, 9]])


def test_a_concept_of_label_subsets_shows_its_labels_only_and_rightly(folder: Path) -> None:
    drawn = draw("label_subsets", folder, [[0, 1], [2, 3]], samples=12)
    for concept in range(4):
        label = drawn.label[divmod(concept, 2)]
        assert set(label.tolist()) == {2 * concept, 2 * concept + 1}
        assert (drawn.image[divmod(concept, 2)] % 8 == label).all()
        assert len(set(drawn.image[divmod(concept, 2)].tolist())) == 12


def test_no_image_of_a_subset_is_dealt_twice(folder: Path) -> None:
    image = draw("label_subsets", folder, SIX_BATCHES, samples=2).image
    assert np.unique(image).size == image.size == 16
    assert share_trained_on_before(image) == 0.0


def test_no_image_of_a_label_that_concepts_share_is_dealt_twice(folder: Path) -> None:
    drawn = draw("label_subsets", folder, [[1, 0], [1, 0], [1, 0]], samples=2, subsets=[[0, 1], [1, 2]])
    assert np.unique(drawn.image).size == drawn.image.size == 12
    assert [set(drawn.label[:, client].ravel()) for client in (0, 1)] == [{1, 2}, {0, 1}]


def test_images_of_a_subset_come_again_on_request_and_are_tested_on_after_training(folder: Path) -> None:
    image = draw("label_subsets", folder, SIX_BATCHES, samples=4, reuse=True).image
    # Twelve images are three batches of concept 0: the last three repeat the first three.
    assert share_trained_on_before(image) == pytest.approx(3 / 6)


def test_how_images_are_dealt_again_has_not_changed(folder: Path) -> None:
    drawn = draw("label_subsets", folder, SIX_BATCHES, samples=4, reuse=True)
    digest = hashlib.sha256(drawn.image.astype("<i8").tobytes()).hexdigest()
    assert digest == "1243c18348811fc3640c0ca47fd6147848912ec4673dd961c0cfc55619081461"
    once = draw("label_subsets", folder, SIX_BATCHES, samples=2)
    again = draw("label_subsets", folder, SIX_BATCHES, samples=2, reuse=True)
    assert np.array_equal(once.image, again.image)  # as long as the images suffice


def test_too_few_images_of_a_subset_are_one_clear_line(folder: Path) -> None:
    with pytest.raises(DataFileError) as caught:
        draw("label_subsets", folder, SIX_BATCHES, samples=3)
    assert str(caught.value) == (
        f"{folder}: has 12 training images of the labels [0, 1] of trace.concepts.subsets[0], and the 6 "
        f"batches of trace.samples_per_step = 3 that take from them need 18 different ones; lower "
        f"samples_per_step, or set trace.concepts.reuse = true"
    )
    sharing = {"subsets": [[0, 1], [1, 2]], "samples": 2}
    with pytest.raises(DataFileError, match=r"has 12 .* \[0, 1\] .* the 8 batches .* need 16 different"):
        draw("label_subsets", folder, SIX_BATCHES, **sharing)


def test_images_of_a_subset_come_again_only_when_all_others_have_come(folder: Path) -> None:
    drawn = draw("label_subsets", folder, SIX_BATCHES, samples=4, reuse=True)  # 6 batches of 12 images
    dealt = drawn.image[np.array(SIX_BATCHES) == 0].ravel()
    first, second = dealt[:12], dealt[12:]
    assert len(set(first.tolist())) == len(set(second.tolist())) == 12
    assert set(first.tolist()) == set(second.tolist())
    assert first.tolist() != second.tolist()


def test_a_subset_without_images_is_one_clear_line(folder: Path) -> None:
    with pytest.raises(DataFileError, match=r"has any label of trace\.concepts\.subsets\[1\], \[8, 9\]"):
        draw("label_subsets", folder, [[0], [1]], subsets=[[0, 1], [8, 9]])


@pytest.mark.parametrize("subsets", [[[0, 1], []], [[0, 0]], []])
def test_a_subset_needs_labels_each_once(folder: Path, subsets: list[list[int]]) -> None:
    with pytest.raises(ValidationError, match="subsets"):
        draw("label_subsets", folder, [[0]], subsets=subsets)


@pytest.mark.parametrize("name", ["label_swaps", "label_subsets"])
def test_a_shorter_pattern_is_the_beginning_of_a_longer_one(folder: Path, name: str) -> None:
    long = draw(name, folder, [[0, 1], [1, 1], [0, 0], [1, 0]], samples=3)
    short = draw(name, folder, [[0, 1], [1, 1]], samples=3)
    assert np.array_equal(long.image[:2], short.image)
    assert np.array_equal(long.label[:2], short.label)


def test_pixels_are_standardised_over_the_training_images(tmp_path: Path) -> None:
    pool = standardised(read_idx_folder(write_idx_folder(tmp_path / "set", num_labels=2, per_label=2)))
    # Grey levels 0, 1, 2 and 3: mean 1.5, standard deviation sqrt(1.25) = 1.118, plus 0.001.
    expected = np.array([-1.5, -0.5, 0.5, 1.5]) / (np.sqrt(1.25) + 0.001)
    assert pool.features(np.arange(4))[:, 0, 1] == pytest.approx(expected, rel=1e-6)
    assert pool.labels.tolist() == [0, 1, 0, 1]
    assert pool.pixels.dtype == np.float32


@pytest.mark.slow
def test_mnist_is_enough_for_the_published_patterns(published: Path) -> None:
    pool = standardised(read_idx_folder(published / "mnist"))
    assert len(pool.labels) == PUBLISHED_TRAINING_IMAGES >= 11 * 10 * 500
    means = pool.pixels.mean(axis=0, dtype=np.float64)
    assert np.abs(means).max() < 1e-4
    assert np.median(pool.pixels.std(axis=0)) == pytest.approx(1.0, abs=0.01)
    of_a_concept = np.bincount(pool.labels)[:8].reshape(4, 2).sum(axis=1)
    assert of_a_concept.tolist() == [12_665, 12_089, 11_263, 12_183]


def test_mnist_has_372_images_for_each_batch_of_pattern_f(labels_of_mnist: Path) -> None:
    pattern = named_pattern("F")
    assert np.bincount(pattern.ravel()).tolist() == [34, 20, 27, 29]  # 12,665 / 34 = 372.5 is the least
    image = draw("label_subsets", labels_of_mnist, pattern, samples=372).image
    assert np.unique(image).size == image.size == 110 * 372
    with pytest.raises(DataFileError, match=r"has 12665 .* \[0, 1\] .* 34 batches .* = 373 .* need 12682"):
        draw("label_subsets", labels_of_mnist, pattern, samples=373)


def test_the_published_500_samples_use_images_of_mnist_again(labels_of_mnist: Path) -> None:
    image = draw("label_subsets", labels_of_mnist, named_pattern("F"), samples=500, reuse=True).image
    assert share_trained_on_before(image) == pytest.approx(0.175, abs=0.0005)
