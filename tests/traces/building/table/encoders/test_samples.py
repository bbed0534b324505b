"""Arrays of samples: which are taken, how they are stored, and by what they are standardised."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from emulator.errors import InputError
from traces.building.table.encoders.samples import as_samples
from traces.building.table.frame import write_frame
from traces.building.table.settings import TableSettings
from traces.files import TraceFolder, open_folder

SETTINGS = TableSettings(label="kind", client="who", split="use", count="often")
TRAIN = np.array([True, True, False, True])
OFTEN = np.array([1, 3, 2, 1])


def written(out: Path, features: Any) -> TraceFolder:
    """The folder of four samples of one client, the third of which is for tests."""
    frame = pd.DataFrame(
        {"who": [0] * 4, "kind": [0, 1, 0, 1], "use": np.where(TRAIN, "train", "test"), "often": OFTEN}
    )
    write_frame(out, features, frame, SETTINGS)
    return open_folder(out)


@pytest.mark.parametrize("shape", [(3,), (2, 5), (3, 2, 2), (1, 2, 2)])
@pytest.mark.parametrize("dtype", [np.uint8, np.float64])
def test_each_channel_is_standardised_over_training_rows_as_often_as_they_arrive(
    tmp_path: Path, shape: tuple[int, ...], dtype: type
) -> None:
    values = np.random.default_rng(0).integers(0, 256, (4, *shape)).astype(dtype)
    folder = written(tmp_path / "out", values)
    assert folder.features.values.dtype == (np.uint8 if dtype is np.uint8 else np.float32)
    assert (folder.features.values == values).all()
    trained = np.repeat(values[TRAIN], OFTEN[TRAIN], axis=0) * (1 / 255 if dtype is np.uint8 else 1.0)
    axes = (0,) if len(shape) == 1 else (0, 2, 3) if len(shape) == 3 else (0, 1, 2)
    assert folder.facts.mean == pytest.approx(np.atleast_1d(trained.mean(axis=axes)))
    assert folder.facts.deviation == pytest.approx(np.atleast_1d(trained.std(axis=axes)))
    given = folder.features.features(np.repeat(np.arange(4), OFTEN)[np.repeat(TRAIN, OFTEN)])
    assert given.mean(axis=axes) == pytest.approx(0, abs=1e-5)
    assert given.std(axis=axes) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    "features",
    [
        np.array([[0], [1], [2**24], [-(2**24)]]),
        np.array([[0], [1], [2], [-1]], dtype=np.int8),
        np.array([[True], [False], [True], [True]]),
        np.array([[0.1], [1e-50], [1e30], [3]], dtype=">f8"),
        np.array([[0.1], [2], [3], [4]], dtype=np.float16),
        [[0.5], [1], [2], [3]],
        pd.DataFrame({"x": [0.5, 1, 2, 3]}),
        torch.tensor([[0.1], [2], [3], [4]], requires_grad=True),
        torch.tensor([[0.1], [2], [3], [4]], dtype=torch.bfloat16),
    ],
    ids=["int64", "int8", "bool", "big-endian", "float16", "list", "frame", "tensor", "bfloat16"],
)
def test_numbers_become_the_nearest_ones_of_32_bits(tmp_path: Path, features: Any) -> None:
    expected = features.detach().double().numpy() if isinstance(features, torch.Tensor) else features
    stored = written(tmp_path / "out", features).features.values
    assert stored.dtype == np.dtype("<f4")
    assert stored.tolist() == np.asarray(expected, dtype=np.float64).astype(np.float32).tolist()


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (np.array([0, np.nan]), "nan at 1 of its features: must be a finite number of 32 bits, up to 1e"),
        (np.array([3.4e38, 0]), "3.4e+38 at 0 of its features: must be a finite number of 32 bits, up to"),
        (np.array([-np.inf, 0]), "-inf at 0 of its features"),
        (np.array([0, 4e38]), "4e+38 at 1 of its features"),
        (np.array([0, 2**24 + 1]), "16777217 at 1 of its features: a whole number must be at most 16777216"),
        (np.array([-(2**63), 0]), "-9223372036854775808 at 0 of its features"),
        (np.array([[0, 0], [0, np.nan]]), "nan at (1, 1) of its features"),
    ],
)
def test_a_value_that_is_none_of_32_bits_is_refused_with_its_row(
    tmp_path: Path, value: np.ndarray, problem: str
) -> None:
    features = np.zeros((4, *value.shape), value.dtype)
    features[2] = value
    with pytest.raises(InputError) as error:
        written(tmp_path / "out", features)
    assert str(error.value).startswith(f"frame, row 2: {problem}")
    assert list(tmp_path.iterdir()) == []


class Sparse:
    def toarray(self) -> np.ndarray:
        raise AssertionError("it may not fit into memory")


@pytest.mark.parametrize(
    ("features", "problem"),
    [
        (np.zeros(4), "features: have the shape (4,); must be (samples, features), (samples, height, width)"),
        (np.zeros((4, 0)), "features: have the shape (4, 0)"),
        (np.zeros((4, 2, 3, 8, 8)), "features: have the shape (4, 2, 3, 8, 8)"),
        (np.zeros((4, 8, 8, 3)), "features: have the shape (4, 8, 8, 3), with the channels last; must be"),
        (np.zeros((4, 8, 8, 1)), "features: have the shape (4, 8, 8, 1), with the channels last"),
        (
            np.zeros((1, 2**14 + 1), np.int8),
            "features: have the shape (1, 16385); a vector has at most 16384",
        ),
        (np.zeros((4, 2), np.complex64), "features: are complex64; must be numbers"),
        (np.array([["a"]]), "features: are <U1; must be numbers"),
        (np.array([[object()]]), "features: are object; must be numbers"),
        ([[1], [1, 2]], "features: setting an array element with a sequence"),
        (np.ma.masked_invalid([[1, np.nan]]), "features: a masked array; fill it first"),
        (Sparse(), "features: a sparse matrix; give features.toarray()"),
    ],
)
def test_what_is_no_array_of_vectors_or_images_is_refused(features: Any, problem: str) -> None:
    with pytest.raises(InputError) as error:
        as_samples(features)
    assert str(error.value).startswith(problem)


@pytest.mark.parametrize("shape", [(4, 3, 8, 3), (4, 1, 8, 8), (4, 3, 32, 32), (4, 28, 28)])
def test_channels_that_come_first_are_taken(shape: tuple[int, ...]) -> None:
    features = np.zeros(shape, np.uint8)
    assert as_samples(features) is features
