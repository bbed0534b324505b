from __future__ import annotations

from benchmarks.parts.solvers import AGAINST, solver_figures
from benchmarks.training import Schedule


def test_each_rule_that_remembers_has_a_figure_against_one_that_does_not() -> None:
    said: list[str] = []
    figures = solver_figures(2, said.append, clients=3, schedule=Schedule(samples=4, steps=2, batch_size=2))
    assert [figure.name for figure in figures] == [f"w1-{name}" for name in AGAINST]
    assert all(figure.ratio is not None and figure.ratio > 0 for figure in figures)
    assert all(figure.target is not None and figure.target.of == "ratio" for figure in figures)
    assert said == ["repeat 1/2", "repeat 2/2"]
