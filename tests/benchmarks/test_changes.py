"""The workload changes, at a small size: its figures are named, and what it measures is what it says."""

from __future__ import annotations

import numpy as np

from benchmarks.changes import ChangeSizes, change_figures, changed, stream_of


def test_its_figures_have_references_and_targets() -> None:
    sizes = ChangeSizes(clients=40, steps=10, samples=2, many_clients=50)
    figures = {figure.name: figure for figure in change_figures(sizes, 1, lambda text: None)}
    assert list(figures) == [
        "changes-held-10",
        "changes-held-30",
        "changes-build-10",
        "changes-build-30",
        "changes-million",
        "changes-million-steps",
    ]
    assert all(figure.value > 0 for figure in figures.values())
    assert figures["changes-held-10"].ratio is not None


def test_a_share_of_the_clients_has_other_labels_from_half_of_the_steps_on() -> None:
    plain = stream_of(40, 10, 2)
    after = changed(plain, 10, 0.1)
    for step, differing in ((4, 0), (5, 4), (9, 4)):
        held = plain.held(np.arange(40), "train", step), after.held(np.arange(40), "train", step)
        assert held[0].counts().tolist() == held[1].counts().tolist()
        labels = [
            [trace.labels(rows.rows(client)).tolist() for client in range(40)]
            for trace, rows in zip((plain, after), held, strict=True)
        ]
        assert sum(one != other for one, other in zip(*labels, strict=True)) == differing
