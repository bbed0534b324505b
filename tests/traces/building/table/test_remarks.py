"""What is said of a table that was built: what the user may not have meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.traces.building.table.tables import a_large_table, build, write, write_parquet
from traces.building import remarks
from traces.building.table.encoders import features

STANDARDISED = "features are standardised over the training rows; ids of tokens are not, with --tokens"
OWNED = "all rows are owned at the start; retain_rounds = 'all' keeps them to the end"
ROWS = "".join(f"{who},{row % 2},{row},1,{row},2,{row}\n" for who in "xyz" for row in range(8))
TABLE = f"who,kind,a,b,c,d,e\n{ROWS}"


@pytest.mark.parametrize(
    ("text", "settings", "said"),
    [
        (
            TABLE,
            {},
            ["features: a, b, c and 2 more, as --features names none", "b, d: constant in the training rows"],
        ),
        (TABLE, {"features": ["a"]}, []),
        (
            "who,kind,a\nx, up,1\nx,up,2\ny,down ,3\ny,no,4\n",
            {"features": ["a"], "test_share": 0},
            [
                "labels ' up' and 'up' are one class: spaces around a text are left off",
            ],
        ),
        (
            "who,kind,a\nx, up,1\nx,up ,2\ny,down,3\n",
            {"features": ["a"], "test_share": 0},
            [
                "labels ' up' and 'up ' are one class: spaces around a text are left off",
            ],
        ),
        (
            "who,kind,a\nx,up,1\nx,down,2\n",
            {"features": ["a"], "test_share": 0},
            ["only 1 client: federated learning needs several; check what says whose a row is"],
        ),
        (
            "who,kind,use,a\nx,0,train,1\ny,0,train,2\nx,0,test,3\n",
            {"features": ["a"], "split": "use"},
            [
                "1 of 2 clients has no test samples, and is not scored: give them rows with test in column "
                "'use', or leave --split away"
            ],
        ),
        (
            "who,kind,a\nx,0,1\ny,0,2\nz,0,3\n",
            {"features": ["a"]},
            [
                "3 of 3 clients have no test samples, and are not scored: raise --test-share (0.2), leave "
                "small clients out with --min-samples, or say with --split which rows are for tests"
            ],
        ),
    ],
)
def test_a_table_is_remarked_on(tmp_path: Path, text: str, settings: dict[str, Any], said: list[str]) -> None:
    notes = build(write(tmp_path, text), tmp_path / "out", **settings).notes
    assert list(notes) == [*said, STANDARDISED, OWNED]


def test_spellings_of_texts_that_no_row_has_are_not_remarked(tmp_path: Path) -> None:
    kinds = pa.DictionaryArray.from_arrays(pa.array([0, 2, 0]), pa.array(["up", " up", "down"]))
    table = write_parquet(tmp_path, {"who": ["x", "y", "y"], "kind": kinds, "a": [1, 2, 3]})
    assert build(table, tmp_path / "out", features=["a"], test_share=0).notes == (STANDARDISED, OWNED)


def test_bad_rows_are_counted_by_cause_and_the_commonest_is_named(tmp_path: Path) -> None:
    lines = [
        "x,0,train,1",
        "y,1,train,2",
        ",1,train,3",
        "x,0,soon,4",
        "x,0,later: x; y,5",
        "x,1,train",
        "y,,no,6",
    ]
    table = write(tmp_path, "who,kind,use,a\n" + "\n".join(lines) + "\n")
    notes = build(table, tmp_path / "out", split="use", features=["a"], skip_bad=9).notes
    # The last row is bad by its class already.
    assert notes[1] == (
        f"5 bad rows were left out; 2 of them: use: must be train or test; the first: {table}, row 3: who is "
        f"missing: the client of the row"
    )


def test_causes_are_bounded_and_survive_an_interruption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = a_large_table(400, 2)
    columns["x0"][[5, 205]] = float("nan")
    columns["x1"][[105, 305, 306]] = float("inf")
    root = write_parquet(tmp_path, columns, row_group_size=100)
    monkeypatch.setattr("traces.building.writing.RECORD_EVERY_S", 0.0)
    encode, calls = features.Numbers.encode, [0]

    def fail_later(*arguments: Any) -> Any:
        calls[0] += 1
        if calls[0] == 4:
            raise KeyboardInterrupt
        return encode(*arguments)

    monkeypatch.setattr(features.Numbers, "encode", fail_later)
    with pytest.raises(KeyboardInterrupt):
        build(root, tmp_path / "out", step="day", skip_bad=5)
    notes = build(root, tmp_path / "out", step="day", skip_bad=5).notes
    assert any(note.startswith("5 bad rows were left out; 3 of them: x1 is not finite") for note in notes)
    monkeypatch.setattr(remarks, "MOST_CAUSES", 1)
    causes: dict[str, int] = {}
    for problem in ("a is missing; give it", "a is missing", "b = 3: must be 4", "c is missing"):
        remarks.count_cause(causes, problem)
    assert causes == {"a is missing": 2, "other causes": 2}
