"""Texts as ids of tokens, worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emulator.errors import EmulatorError
from emulator.ports import Tokens
from tests.traces.building.table.tables import rows
from traces.building import Request
from traces.building.kinds.text import Text, TextSettings
from traces.files import TraceFolder, open_folder
from traces.files.checking import check_folder


def built(root: Path, **settings: Any) -> tuple[TraceFolder, tuple[str, ...]]:
    out = root.parent / "out"
    notes = Text(TextSettings.model_validate({"test_share": 0, **settings})).build(Request(root, out)).notes
    assert check_folder(out).violations == []
    return open_folder(out), notes


def folder_of(path: Path, **texts: str) -> Path:
    path.mkdir()
    for name, text in texts.items():
        (path / f"{name}.txt").write_text(text)
    return path


def test_lines_are_cut_into_samples_that_overlap_by_the_token_that_the_next_one_tells(tmp_path: Path) -> None:
    folder, notes = built(folder_of(tmp_path / "t", ann="abab\n\nb\n", bob="ba"), length=3)
    # a occurs four times in the samples, and is 1; b three times, and is 2.
    assert folder.features.values.tolist() == [[1, 2, 1], [1, 2, 0], [2, 1, 0]]
    assert (folder.features.tokens, folder.features.objective) == (Tokens(3, 0), {"kind": "next_token"})
    assert rows(folder, "client", "order", "sample") == [("ann", 0, 0), ("ann", 1, 1), ("bob", 0, 2)]
    assert folder.rows.classes == ("all",)
    assert notes[0] == "7 tokens, of 2 characters; 2 of 3 samples are filled up with id 0"


def test_words_are_counted_in_training_rows_and_others_are_unknown(tmp_path: Path) -> None:
    texts = dict.fromkeys("abc", "the sea\n" * 9 + "the end\n")
    folder, notes = built(folder_of(tmp_path / "t", **texts), length=4, words=2, test_share=0.5)
    # The commonest are "the", id 2, and "sea", id 3; "end" is none of them.
    assert folder.features.tokens == Tokens(4, 0)
    assert sorted(set(map(tuple, folder.features.values.tolist()))) == [(2, 1, 0, 0), (2, 3, 0, 0)]
    assert notes[0] == (
        "60 tokens, of 2 words; 3 are none of them, and have id 1; 30 of 30 samples are filled up with id 0"
    )
    assert folder.rows.split is not None
    assert 12 <= int(folder.rows.split.sum()) <= 18


def test_a_word_of_tests_alone_is_unknown(tmp_path: Path) -> None:
    texts = "".join(f"w{number} w{number}\n" for number in range(40))
    folder, _ = built(folder_of(tmp_path / "t", a=texts, b=texts), length=2, words=100, test_share=0.5)
    split = folder.rows.split
    assert split is not None
    values, sample = folder.features.values, folder.rows.sample
    trained = set(values[sample[split == 0]].ravel().tolist())
    assert 1 not in trained
    assert set(values[sample[split == 1]].ravel().tolist()) <= {1, *trained}


def test_a_table_of_lines_has_clients_times_and_labels(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(
        "client,time,label,text\nann,2020-01-02,up,ab\nbob,2020-01-01,down,abc\nann,2020-01-01,up,ba\n"
    )
    folder, _ = built(tmp_path / "t.csv", length=2)
    assert folder.rows.classes == ("down", "up")
    assert [row[:2] for row in rows(folder, "client", "sample")] == [
        ("ann", 3), ("ann", 0), ("bob", 1), ("bob", 2),
    ]  # fmt: skip
    assert folder.features.values.tolist() == [[2, 1], [2, 1], [1, 3], [1, 2]]


def test_samples_of_leaf_that_slide_over_a_text_are_joined_to_it(tmp_path: Path) -> None:
    text = "abcabcab"
    users = {"ann": {"x": [text[at : at + 3] for at in range(5)], "y": list(text[3:])}}
    users["ann"] = {key: [*users["ann"][key], more] for key, more in (("x", "bbb"), ("y", "c"))}
    (tmp_path / "leaf.json").write_text(json.dumps({"user_data": users}))
    folder, notes = built(tmp_path / "leaf.json", length=20)
    assert len(folder.features.values) == 2  # the text, and another one
    assert notes[0].startswith("12 tokens, of 3 characters")


def test_samples_of_leaf_are_x_and_the_character_that_follows(tmp_path: Path) -> None:
    data = {"romeo": {"x": ["ab", "ba"], "y": ["b", "b"]}, "juliet": {"x": ["aa"], "y": ["b"]}}
    root = tmp_path / "all.json"
    root.write_text(json.dumps({"users": list(data), "num_samples": [2, 1], "user_data": data}))
    folder, _ = built(root, length=3)
    # b occurs five times, a four times.
    assert rows(folder, "client", "sample") == [("juliet", 0), ("romeo", 1), ("romeo", 2)]
    assert folder.features.values.tolist() == [[2, 2, 1], [2, 1, 1], [1, 2, 1]]


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ({}, "user_data: must be an object that has the users of LEAF, and not empty"),
        ({"user_data": {"a": {"x": ["ab"]}}}, "user_data.a.y: is missing or not a list"),
        ({"user_data": {"a": {"x": ["ab"], "y": []}}}, "user_data.a: x and y must be lists of"),
        ({"user_data": {"a": {"x": [1], "y": ["b"]}}}, "user_data.a: x and y must be lists of texts"),
        ({"user_data": {"a": {"x": [], "y": []}, "b": {"x": ["ab"], "y": ["c"]}}}, "client 'a' has no line"),
    ],
)  # fmt: skip
def test_a_damaged_file_of_leaf_is_refused(tmp_path: Path, document: Any, problem: str) -> None:
    root = tmp_path / "all.json"
    root.write_text(json.dumps(document))
    with pytest.raises(EmulatorError) as error:
        built(root)
    assert problem in str(error.value)
    assert "\n" not in str(error.value)
    assert [path.name for path in tmp_path.iterdir()] == ["all.json"]


def test_a_client_without_a_line_is_refused_by_name(tmp_path: Path) -> None:
    root = folder_of(tmp_path / "t", ann="ab", bob="\n\n", cid="c")
    problem = r"client 'bob' has no line of two tokens or more; leave it out \(2 of 3 clients have none\)"
    with pytest.raises(EmulatorError, match=problem):
        built(root)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("client,line\na,b\n", "text: unknown column 'text'"),
        ("client,text,time\na,bb,soon\n", r"t\.csv, row 1: time = 'soon': must be a date"),
        ("client,text\n,bb\n", r"t\.csv, row 1: client is missing"),
        ("who,text\na,bb\n", "client: unknown column 'client'"),
    ],
)
def test_a_damaged_table_is_refused_with_the_row_of_the_line(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(EmulatorError, match=problem):
        built(tmp_path / "t.csv")


def test_a_folder_without_texts_and_one_that_is_no_utf_8_are_refused(tmp_path: Path) -> None:
    root = folder_of(tmp_path / "t")
    with pytest.raises(EmulatorError, match=r"has no \.txt file; it needs one for each client"):
        built(root)
    (root / "a.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(EmulatorError, match=r"a\.txt: cannot be read as text in UTF-8"):
        built(root)
    assert np.array(sorted(path.name for path in tmp_path.iterdir())).tolist() == ["t"]
