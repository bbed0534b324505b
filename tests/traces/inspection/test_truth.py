from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tests.traces.files.written import write_trace
from tests.traces.tiny import trace_of
from traces.files import ARRIVALS, open_folder
from traces.files.windows import windows_of_rows
from traces.inspection.truth import MassEvent, Truth, folder_truth, trace_truth
from traces.onsets import of_steps

ROWS = [(c, s, step, 0) for c in range(3) for s in (0, 1) for step in range(3)]


def test_the_truth_of_a_trace_has_its_concepts_onsets_and_mass_events() -> None:
    moves = of_steps([(2, np.array([0]))])
    trace = trace_of(ROWS, concepts=[[0, 0, 4], [1, 0, 5], [1, 0, 5], [1, 7, 5]], moves=moves)
    assert trace_truth(trace) == Truth(5, 3, 2, (MassEvent(1, 2, 2 / 3),))
    tested = [[0, 0, 4], [0, 0, 9], [0, 0, 9]]
    still = trace_of(ROWS, concepts=[[0, 0, 4]] * 4, test_concepts=tested)
    assert trace_truth(still) == Truth(3, 1, 1, ())


def test_nothing_is_known_of_a_trace_without_concepts_and_moves() -> None:
    assert trace_truth(trace_of(ROWS)) == Truth(None, None, None, None)
    assert trace_truth(trace_of(ROWS, moves=of_steps([]))) == Truth(None, 0, 0, ())


def truth_of(folder: Path, width: int | None = None, since: int | None = None, **columns: list[Any]) -> Truth:
    size = len(columns["client"])
    rows = {"label": ["x"] * size, "sample": list(range(size)), **columns}
    write_trace(folder, rows, np.zeros((size, 2), np.uint8), {})
    opened = open_folder(folder)
    windows = windows_of_rows(
        opened.rows, folder / ARRIVALS, width=width, since=since, until=None, key=lambda name: name
    )
    return folder_truth(opened, windows)


CLIENT = list("aaaabbbb")
STEP = [-1, 0, 1, 3, 0, 1, 2, 3]


def test_the_onsets_of_a_folder_are_changes_of_its_column_concept(tmp_path: Path) -> None:
    concept = [0, 0, 1, 2, 5, 5, 5, 2]  # a changes at 1, and at 3 after a gap; b at 3
    truth = truth_of(tmp_path / "t", client=CLIENT, step=STEP, concept=concept)
    assert truth == Truth(4, 3, 2, (MassEvent(1, 1, 0.5), MassEvent(3, 2, 1.0)))
    later = truth_of(tmp_path / "later", since=1, client=CLIENT, step=STEP, concept=concept)
    assert later == Truth(3, 2, 2, (MassEvent(3, 2, 1.0),))
    # Steps -2 to -1, 0 to 1 and 2 to 3: a has concepts 0, 1 and 2; b has 5 and 2.
    wide = truth_of(tmp_path / "wide", width=2, client=CLIENT, step=STEP, concept=concept)
    assert wide == Truth(4, 3, 2, (MassEvent(0, 1, 0.5), MassEvent(1, 2, 1.0)))


def test_rows_of_tests_and_those_that_never_arrive_have_no_onset(tmp_path: Path) -> None:
    columns = {"client": list("aaa"), "step": [0, 1, 2], "concept": [0, 1, 0]}
    events = (MassEvent(1, 1, 1.0), MassEvent(2, 1, 1.0))
    assert truth_of(tmp_path / "both", **columns) == Truth(2, 2, 1, events)
    tested = truth_of(tmp_path / "tested", **columns, split=["train", "test", "train"])
    assert tested == Truth(1, 0, 0, ())
    assert truth_of(tmp_path / "counted", **columns, count=[1, 0, 2]) == Truth(1, 0, 0, ())


def test_of_a_folder_without_a_column_concept_nothing_is_known(tmp_path: Path) -> None:
    assert truth_of(tmp_path / "t", client=["a", "a"], step=[0, 1]) == Truth()
