"""Every kind of data set counts what it lists."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from emulator.errors import InputError
from emulator.storage.reading import tally
from tests.traces.building import layouts
from tests.traces.building.layouts import RED, build
from traces.building.image_values import MOST_CROPS


def a_folder(root: Path) -> Path:
    for number in range(8):
        layouts.draw(root / "ann" / "up" / f"{number}.png", RED)
    return root


DIVIDED = {"partition": {"kind": "iid"}, "clients": 2}
KINDS: dict[str, tuple[Callable[[Path], Path], dict[str, Any]]] = {
    "cifar": (layouts.cifar10, DIVIDED),
    "fmow": (
        lambda root: layouts.fmow_raw(root, [("airport", "31N", "2016-01-01T00:00:00Z", RED)] * 8),
        {},
    ),
    "fedscale": (lambda root: layouts.mapping(root, [("a", "x", 0)] * 8), {}),
    "folder": (a_folder, {}),
    "idx": (layouts.idx, DIVIDED),
    "waymo": (layouts.waymo, {}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_too_many_samples_are_refused_before_a_pixel_is_read(tmp_path: Path, kind: str) -> None:
    make, options = KINDS[kind]
    root = make(tmp_path / "data")
    with pytest.raises(InputError, match=r"rows or more.* at most 100 cells are read: raise --most-cells"):
        build(kind, root, tmp_path / "out", most_cells=100, **options)
    assert not list(tmp_path.glob("*out*"))


def test_too_much_text_of_a_mapping_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = layouts.mapping(tmp_path / "data", [("a", "x", 0)] * 8)
    monkeypatch.setattr(tally, "MOST_TEXT", 100)
    with pytest.raises(InputError, match=r"train\.csv: has more than 100 bytes of text: leave out columns"):
        build("fedscale", root, tmp_path / "out")


def test_many_crops_of_one_image_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = layouts.waymo(tmp_path / "data")
    monkeypatch.setattr("traces.building.image_values.MOST_CROPS", 1)
    with pytest.raises(InputError, match="row 1: has 2 objects; at most 1 of an image are read"):
        build("waymo", root, tmp_path / "out")
    assert MOST_CROPS >= 1000


def test_images_that_wait_to_be_decoded_are_bounded_by_their_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = layouts.idx(tmp_path / "data", train=60)
    build("idx", root, tmp_path / "whole", **DIVIDED)
    monkeypatch.setattr("traces.building.writing.MOST_HELD", 1)
    monkeypatch.setattr("traces.building.image_values.BLOCK_BYTES", 50)
    build("idx", root, tmp_path / "out", workers=2, **DIVIDED)
    for name in ("arrivals.parquet", "features.npy", "trace.toml"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
