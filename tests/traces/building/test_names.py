"""Clients and labels have names, in data sets of one's own too."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.errors import InputError
from tests.traces.building.layouts import draw
from traces.building import Request
from traces.building.images import ImageBuilder
from traces.building.pixels import ImageFiles
from traces.building.rows import Rows, codes, samples_of


class Own(ImageBuilder):
    """Two images of one client, the second of which has no class."""

    needs = "a.png and b.png"

    def list_samples(self, root: Path) -> Rows:
        _, classes = codes(["only"])
        return samples_of(ImageFiles(root, ["a.png", "b.png"]), codes(["ann"] * 2), (codes("ab")[0], classes))


def test_a_label_without_a_name_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        draw(tmp_path / "d" / name, (255, 0, 0))
    with pytest.raises(InputError, match=r"^labels are 0 to 1, and there are 1 names of labels$"):
        Own(Own.Settings()).build(Request(tmp_path / "d", tmp_path / "out"))
    assert not list(tmp_path.glob("out*"))
