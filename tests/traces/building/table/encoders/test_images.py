"""Images in the cells of Parquet shards, as Hugging Face publishes them."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from tests.traces.building.table.tables import build, built, refused, rows, write_parquet
from traces.files import open_folder

RED, GREEN, BLUE = (255, 0, 0), (0, 255, 0), (0, 0, 255)


def png(colour: tuple[int, int, int], size: int = 8) -> bytes:
    written = io.BytesIO()
    Image.new("RGB", (size, size), colour).save(written, "PNG")
    return written.getvalue()


def a_column(*images: bytes | None, path: str = "x.png") -> pa.Array[Any]:
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    return pa.array([{"bytes": image, "path": path} for image in images], kind)


def test_images_are_decoded_resized_and_standardised_per_channel(tmp_path: Path) -> None:
    columns = {"who": ["y", "x"], "kind": [1, 0], "image": a_column(png(RED), png(GREEN, size=20))}
    folder = built(write_parquet(tmp_path, columns), features=["image"], size=4, test_share=0)
    assert folder.features.values.shape == (2, 3, 4, 4)
    assert folder.features.values.dtype == np.uint8
    assert folder.features.values[:, :, 0, 0].tolist() == [[255, 0, 0], [0, 255, 0]]
    assert rows(folder, "client", "label", "sample") == [("x", 0, 1), ("y", 1, 0)]
    assert folder.facts.mean == (0.5, 0.5, 0.0)
    assert folder.facts.deviation == (0.5, 0.5, 1.0)


def test_a_column_of_plain_bytes_holds_images_too(tmp_path: Path) -> None:
    columns = {"who": ["x"], "kind": [0], "picture": pa.array([png(BLUE)], pa.binary())}
    folder = built(write_parquet(tmp_path, columns), size=2)
    assert (folder.features.values[0] == np.array(BLUE)[:, None, None]).all()


@pytest.mark.parametrize(
    ("image", "problem"),
    [
        (None, "is missing: the cell has no bytes"),
        (b"no image", "is not an image"),
        (png(RED)[:-30], "damaged"),
    ],
)
def test_a_bad_image_is_named_by_its_row(tmp_path: Path, image: bytes | None, problem: str) -> None:
    columns = {"who": ["x"] * 3, "kind": [0, 1, 2], "image": a_column(png(RED), image, png(BLUE))}
    table = write_parquet(tmp_path, columns)
    assert refused(table, size=2).startswith(f"table.parquet, row 2: image {problem}")
    result = build(table, tmp_path / "out", size=2, skip_bad=1, test_share=0)
    assert result.left_out == 1
    folder = open_folder(tmp_path / "out")
    assert rows(folder, "label", "sample") == [(0, 0), (2, 2)]
    assert folder.facts.mean == (0.5, 0.0, 0.5)  # of the red and the blue one
