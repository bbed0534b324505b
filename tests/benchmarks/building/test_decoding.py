from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.building.decoding import Decoding, DecodingSizes, decoding_figures
from traces.building import Watch
from traces.building.decoding import Decoder
from traces.building.image_values import ImageValues
from traces.building.workspace import workspace
from traces.building.writing import write_features

TINY = DecodingSizes(images=4, files=2, side=128)


def test_the_figures_are_ratios_of_one_process() -> None:
    figures = {item.name: item for item in decoding_figures(TINY, repeats=2, say=lambda text: None)}
    assert list(figures) == ["decoding", "decoding-draft", "decoding-2-workers"]
    assert [item.target.at_least for item in figures.values() if item.target] == [0.9, 2.0, 1.7]
    assert all(item.ratio is not None and item.ratio > 0 for item in figures.values())


def test_the_plain_loop_makes_the_same_samples(tmp_path: Path) -> None:
    workload = Decoding(TINY, tmp_path)
    loop = workload.bare()
    loop()
    [samples] = [
        cell.cell_contents
        for cell in loop.__closure__[0].cell_contents.__closure__  # type: ignore[attr-defined]
        if isinstance(cell.cell_contents, np.ndarray)
    ]
    with workspace(tmp_path / "out", {}) as space:
        values = ImageValues(tmp_path, workload.rows, Decoder(32, grey=False), (3, 32, 32), 0)
        write_features(values, len(workload.rows), space, 1, Watch())
        assert np.array_equal(np.load(space.path / "features.npy"), samples)
