from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from emulator.errors import InputError
from tests.traces.building.layouts import build, idx, opened
from traces.building.remarks import PIXELS_STANDARDISED

IID = {"partition": "iid", "clients": 2}


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_idx_files_plain_or_gzipped_keep_split_label_and_pixels(tmp_path: Path, suffix: str) -> None:
    folder = opened("idx", idx(tmp_path / "i", suffix=suffix), tmp_path / "out", **IID)
    assert folder.features.values.shape == (28, 4, 6)
    number = folder.features.values[folder.rows.sample][:, 1, 0].astype(int)
    assert sorted(number) == list(range(28))
    assert (folder.rows.label == number % 2).all()
    assert ((number >= 20) == (folder.rows.split == 1)).all()
    assert (folder.features.values[folder.rows.sample][:, 0] == number[:, None] + 100).all()
    assert np.bincount(folder.rows.client[folder.rows.split == 0]).tolist() == [10, 10]


def test_emnist_is_turned_upright_and_chosen_among_several_sets(tmp_path: Path) -> None:
    root = idx(tmp_path / "i", prefix="emnist-letters-", suffix=".gz")
    idx(root, prefix="emnist-digits-")
    with pytest.raises(InputError, match="has several sets; give --dataset, one of digits, letters"):
        build("idx", root, tmp_path / "out", **IID)
    folder = opened("idx", root, tmp_path / "out", **IID, dataset="letters")
    assert folder.features.values.shape == (28, 6, 4)
    first = folder.features.values[0].astype(int)
    assert (first[:, 0] == first[0, 1] + 100).all()  # the first row of the file has become a column
    with pytest.raises(InputError, match="--dataset balanced: the folder has digits, letters"):
        build("idx", root, tmp_path / "other", **IID, dataset="balanced")


def test_labels_that_begin_at_1_are_renumbered_and_told_with_what_becomes_of_pixels(tmp_path: Path) -> None:
    root = idx(tmp_path / "i")
    for labels in root.glob("*-labels-idx1-ubyte"):
        content = labels.read_bytes()
        labels.write_bytes(content[:8] + bytes(label + 1 for label in content[8:]))
    assert build("idx", root, tmp_path / "out", **IID).notes == (
        PIXELS_STANDARDISED,
        "labels are renumbered by what occurs: 1 is class 0 of 2",
    )


def test_images_are_resized_if_that_is_asked_for(tmp_path: Path) -> None:
    folder = opened("idx", idx(tmp_path / "i"), tmp_path / "out", **IID, size=2)
    assert folder.features.values.shape == (28, 2, 2)


def test_images_that_are_as_wide_as_asked_for_and_not_as_high_are_resized_too(tmp_path: Path) -> None:
    folder = opened("idx", idx(tmp_path / "i"), tmp_path / "out", **IID, size=6)
    assert folder.features.values.shape == (28, 6, 6)


def test_a_folder_that_does_not_fit_is_one_line(tmp_path: Path) -> None:
    root = idx(tmp_path / "i")
    labels = root / "train-labels-idx1-ubyte"
    content = labels.read_bytes()
    labels.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 19]) + content[8:-1])
    with pytest.raises(InputError, match=r"train-labels-idx1-ubyte: 19 labels for 20 images"):
        build("idx", root, tmp_path / "out", **IID)
    labels.write_bytes(content)
    images = root / "train-images-idx3-ubyte"
    images.write_bytes(images.read_bytes()[:-1])
    with pytest.raises(InputError, match=r"train-images-idx3-ubyte: truncated: image 20 of 20 is cut off"):
        build("idx", root, tmp_path / "out", **IID)
    labels.unlink()
    with pytest.raises(InputError, match=r"has no train-labels-idx1-ubyte beside"):
        build("idx", root, tmp_path / "out", **IID)
    with pytest.raises(InputError, match=r"has no train-images-idx3-ubyte"):
        build("idx", tmp_path / "i" / "..", tmp_path / "out", **IID)
