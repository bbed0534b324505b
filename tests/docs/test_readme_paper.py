"""README's path for a paper: sweep, compare, a notebook cell, a figure."""

from __future__ import annotations

from pathlib import Path

import pytest

import driftscale
from tests.experiments.small import write_small


def test_a_sweep_is_compared_and_drawn_in_a_notebook_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = write_small(tmp_path, seeds=[0, 1])
    results = driftscale.run(config, sweep={"round.participants": [2, 3]}, progress=False)

    compared = driftscale.compare(results.path).frame
    last = driftscale.load("runs/small-sweep").rounds.groupby(["experiment", "arm"]).accuracy.last()
    driftscale.load("runs/small-sweep/small,participants=3").plot_accuracy().write_html("accuracy.html")

    assert list(compared["round.participants"].unique()) == [2, 3]
    assert len(last) == 4  # two cells, two arms
    assert Path("accuracy.html").stat().st_size > 0
