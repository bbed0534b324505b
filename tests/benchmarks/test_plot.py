from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.figures import Figure, figure
from benchmarks.plot import draw, refuse_undrawable
from emulator.errors import InputError


def the_figures() -> list[Figure]:
    sizes = {"round": (10, 100), "selection": (10, 100), "training": (5, 50)}
    return [
        figure(f"{curve}-{size}", "", np.array([1.0, 2.0, 4.0]), "ms", better="lower", curve=curve, size=size)
        for curve, ends in sizes.items()
        for size in ends
    ]


@pytest.mark.slow
def test_the_same_figures_are_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one.svg", "two.svg"):
        draw(the_figures(), tmp_path / name)
    one = (tmp_path / "one.svg").read_bytes()
    assert one == (tmp_path / "two.svg").read_bytes()
    for text in (b"<svg", b"selection alone", b"one emulated round", b"clients a round"):
        assert text in one


@pytest.mark.slow
def test_a_file_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"--plot .*nowhere/a\.svg: cannot be written \(No such file"):
        draw(the_figures(), tmp_path / "nowhere" / "a.svg")


def test_a_plot_needs_the_workloads_that_it_shows() -> None:
    path = Path("sizes.svg")
    refuse_undrawable([], path)
    refuse_undrawable(["cohort-size", "e1-size", "w1"], path)
    with pytest.raises(InputError, match="--plot draws e1-size and cohort-size; name e1-size too"):
        refuse_undrawable(["cohort-size"], path)


def test_a_plot_without_a_folder_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no such folder: .*nowhere"):
        refuse_undrawable([], tmp_path / "nowhere" / "a.svg")
