from __future__ import annotations

from benchmarks.parts.stopping import GAMMAS, MOST, stopping_figures
from benchmarks.training import Schedule


def test_stopping_early_has_figures_against_the_same_steps_without_it() -> None:
    said: list[str] = []
    schedule = Schedule(samples=6, batch_size=2)
    figures = stopping_figures(2, said.append, clients=3, schedule=schedule)
    assert [figure.name for figure in figures] == list(GAMMAS) == said
    assert all((figure.unit, figure.better) == ("ms", "lower") for figure in figures)
    assert all(figure.ratio is not None and figure.ratio > 0 for figure in figures)
    targets = {figure.name: figure.target.at_least for figure in figures if figure.target is not None}
    assert targets == {name: 1 / most for name, most in MOST.items()}
