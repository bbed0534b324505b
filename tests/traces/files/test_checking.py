from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emulator.errors import DataFileError
from tests.traces.files.bad_folders import BAD_FACTS, BAD_FEATURES, BAD_ROWS
from tests.traces.files.written import ROWS, with_cell, without, write_trace
from traces.files import ARRIVALS, FACTS, FEATURES, file_facts, open_folder
from traces.files.checking import Findings, check_folder
from traces.files.checking.findings import MOST_LISTED

IN_ORDER = {
    "client": ["ann", "ann", "ann", "bob", "bob", "bob"],
    "label": [0, 0, 1, 1, 1, 0],
    "sample": [0, 2, 1, 3, 4, 5],
    "step": [0, 1, 0, -1, 1, 2],
    "split": ["train", "train", "test", "train", "train", "test"],
}


def with_digests(folder: Path, facts: Mapping[str, Any] | None = None) -> Path:
    """The folder, with a `trace.toml` that has the digests of its files."""
    files = {name: file_facts(folder / name).model_dump(by_alias=True) for name in (ARRIVALS, FEATURES)}
    toml = "".join(f"{key} = {value!r}\n" for key, value in {"version": 1, **(facts or {})}.items())
    for name, known in files.items():
        toml += f'[files."{name}"]\nbytes = {known["bytes"]}\nsha256 = "{known["sha256"]}"\n'
    (folder / FACTS).write_text(toml)
    return folder


def below(folder: Path, findings: Findings) -> list[str]:
    """The violations, below the folder's name; each is one line."""
    lines = [str(finding).removeprefix(f"{folder}/") for finding in findings.violations]
    assert not any("\n" in line for line in lines)
    return lines


def remarks_of(folder: Path) -> list[str]:
    findings = check_folder(folder)
    assert findings.violations == []
    return [str(finding).removeprefix(f"{folder}/") for finding in findings.remarks]


def test_nothing_is_found_in_a_folder_that_is_right(tmp_path: Path) -> None:
    assert remarks_of(with_digests(write_trace(tmp_path / "t", IN_ORDER))) == []


@pytest.mark.parametrize(("rows", "message"), BAD_ROWS)
def test_what_the_reader_refuses_of_rows_is_found(tmp_path: Path, rows: Any, message: str) -> None:
    folder = write_trace(tmp_path / "t", rows)
    with pytest.raises(DataFileError) as refused:
        open_folder(folder)
    assert str(refused.value).removeprefix(f"{folder}/") in below(folder, check_folder(folder))


@pytest.mark.parametrize(("features", "message"), BAD_FEATURES)
def test_what_the_reader_refuses_of_features_is_found(
    tmp_path: Path, features: np.ndarray, message: str
) -> None:
    folder = write_trace(tmp_path / "t", features=features)
    assert any(line.startswith(f"{FEATURES}: {message}") for line in below(folder, check_folder(folder)))


@pytest.mark.parametrize(("facts", "message"), BAD_FACTS)
def test_what_the_reader_refuses_of_facts_is_found(tmp_path: Path, facts: Any, message: str) -> None:
    folder = write_trace(tmp_path / "t", facts=facts)
    with pytest.raises(DataFileError) as refused:
        open_folder(folder)
    assert str(refused.value).removeprefix(f"{folder}/") in below(folder, check_folder(folder))


def test_all_violations_are_found_and_not_only_the_first(tmp_path: Path) -> None:
    rows = {
        "client": ["a", None, " ", "b", "c", "b"],
        "label": ["x", "y", "z", "x", "y", ""],
        "sample": [0, -1, 7, 8, 1, 2],
        "step": [0, None, 1, 0, 0, 0],
        "split": ["train", "valid", "train", "train", "test", "test"],
        "count": [1, -1, 1, 1, 1, 1],
        "weight": [1.0] * 6,
    }
    features = np.array([[0, 1], [np.nan, 1], [2, 3], [np.inf, -np.inf]], np.float32)
    facts = {"version": 3, "lable": "x", "shape": [3], "mean": [1.0], "classes": ["x", "y"], "scale": -1.0}
    folder = write_trace(tmp_path / "t", rows, features, facts)
    assert below(folder, check_folder(folder)) == [
        f"{FACTS}: version: Input should be 1 or 2",
        f"{FACTS}: unknown key 'lable'; choices: classes, deviation, files, licence, mean, objective, "
        f"origin, scale, shape, tokens, version; did you mean 'scale'?",
        f"{FACTS}: scale: Input should be greater than 0",
        f"{FACTS}: shape: states (3,), but features.npy has (2,)",
        f"{FACTS}: mean: has 1 numbers, but samples of shape (2,) have 2 channel(s)",
        f"{FEATURES}: sample 1: has 1 value(s) that are not finite, such as nan",
        f"{FEATURES}: sample 3: has 2 value(s) that are not finite, such as inf",
        f"{ARRIVALS}: unknown column 'weight'; known are client, label, sample, step, time, order, expiry, "
        f"split, count, concept",
        f"{ARRIVALS}, row 2: client is missing",
        f"{ARRIVALS}, row 3: client is missing",
        f"{ARRIVALS}, row 6: label is missing",
        f"{ARRIVALS}, row 3: label 'z': no such class; trace.toml names 2: x, y",
        f"{ARRIVALS}, row 2: sample = -1: must be from 0 to 2147483647",
        f"{ARRIVALS}, row 3: sample = 7: features.npy has rows 0 to 3",
        f"{ARRIVALS}, row 4: sample = 8: features.npy has rows 0 to 3",
        f"{ARRIVALS}, row 2: step is missing",
        f"{ARRIVALS}, row 2: split 'valid': must be train or test",
        f"{ARRIVALS}, row 2: count = -1: must be from 0 to 2147483647",
        # Of the rows that are valid, 1 and 5.
        f"{ARRIVALS}, row 5: client 'c' has test samples and none for training",
    ]


def test_a_folder_without_its_files_is_found_wanting(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    assert below(folder, check_folder(folder)) == [f"{folder}: no such folder"]
    write_trace(folder)
    (folder / FEATURES).unlink()
    (folder / ARRIVALS).write_text("no parquet")
    missing, damaged = below(folder, check_folder(folder))
    assert missing.startswith(f"{folder}: has no features.npy; a trace folder has")
    assert damaged.startswith(f"{ARRIVALS}: cannot be read as parquet (")
    (folder / FACTS).write_text("version = ")
    lines = below(folder, check_folder(folder))
    assert lines[0].startswith(f"{FACTS}: cannot be read as TOML (")
    assert lines[1:] == [missing, damaged]


def test_files_are_hashed_again(tmp_path: Path) -> None:
    folder = with_digests(write_trace(tmp_path / "t", IN_ORDER))
    content = (folder / FEATURES).read_bytes()
    recorded = file_facts(folder / FEATURES).sha256
    (folder / FEATURES).write_bytes(content[:-1] + b"\x07")
    open_folder(folder)  # sizes agree
    now = file_facts(folder / FEATURES).sha256
    digests = f"has the sha256 {now}, but trace.toml records {recorded}"
    assert below(folder, check_folder(folder)) == [f"{FEATURES}: {digests}: changed since it was built"]
    (folder / FEATURES).write_bytes(content[:-1])
    sizes = f"has {len(content) - 1} bytes, but trace.toml records {len(content)}"
    assert below(folder, check_folder(folder))[0] == f"{FEATURES}: {sizes}: changed since it was built"


def test_a_folder_without_digests_is_remarked(tmp_path: Path) -> None:
    text = "trace.toml has no digest of it: it is hashed at every start"
    folder = write_trace(tmp_path / "t", IN_ORDER)
    assert remarks_of(folder) == [f"{ARRIVALS}: {text}", f"{FEATURES}: {text}"]


def test_rows_out_of_order_are_remarked_with_the_first(tmp_path: Path) -> None:
    # In ROWS the test sample of ann comes before her second training sample.
    folder = with_digests(write_trace(tmp_path / "t"))
    order = "the first row out of the order of (client, split, step), of 1"
    assert remarks_of(folder) == [f"{ARRIVALS}, row 3: {order}: rows are sorted at every start"]
    folder = with_digests(write_trace(folder, without("split")))
    text = "has no column split: it is drawn at every start, and rows are sorted then"
    assert remarks_of(folder) == [f"{ARRIVALS}: {text}"]


def test_what_is_never_used_is_remarked(tmp_path: Path) -> None:
    rows = IN_ORDER | {"label": [0, 0, 2, 0, 0, 2], "sample": [0, 1, 2, 0, 1, 2], "step": [0, 1, 3, 0, 1, 7]}
    folder = with_digests(write_trace(tmp_path / "t", rows), {"classes": ["a", "b", "c", "d"]})
    assert remarks_of(folder) == [
        f"{ARRIVALS}: class 'b' is never used",
        f"{ARRIVALS}: class 'd' is never used",
        f"{ARRIVALS}: class 'c' has test samples and none for training",
        f"{ARRIVALS}: nobody receives a sample at step 2",
        f"{ARRIVALS}: nobody receives a sample at steps 4 to 6",
        f"{FEATURES}: 3 of 6 samples are never used; the first is sample 3",
    ]


def test_steps_that_nobody_sends_are_known_of_steps_only(tmp_path: Path) -> None:
    days = [date(2015, 1, 1), date(2015, 6, 1), date(2016, 1, 1)]
    rows = {name: values for name, values in IN_ORDER.items() if name != "step"}
    folder = with_digests(write_trace(tmp_path / "t", rows | {"time": sorted(days) * 2}))
    assert not any("nobody" in line for line in remarks_of(folder))


def test_repeated_rows_and_samples_in_both_splits_are_remarked(tmp_path: Path) -> None:
    rows = IN_ORDER | {"sample": [0, 2, 0, 3, 4, 3], "step": [0, 1, 0, -1, 1, 2]}
    folder = with_digests(write_trace(tmp_path / "t", rows, np.zeros((5, 2), np.uint8)))
    assert remarks_of(folder) == [
        f"{ARRIVALS}, row 3: client 'ann' receives sample 0 as in row 1, at the same step; a column count "
        f"says how often",
        f"{ARRIVALS}: 2 samples are for training and for tests; the first is sample 0",
        f"{FEATURES}: 1 of 5 samples are never used; the first is sample 1",
    ]


def test_a_trace_without_tests_is_remarked(tmp_path: Path) -> None:
    folder = with_digests(write_trace(tmp_path / "t", IN_ORDER | {"split": ["train"] * 6, "step": [0] * 6}))
    assert remarks_of(folder) == [
        f"{ARRIVALS}: no row is for tests; a run needs a client that has test samples at its start"
    ]


def test_the_concept_of_a_row_that_never_arrives_does_not_matter(tmp_path: Path) -> None:
    rows = IN_ORDER | {"step": [1, 1, 1, 0, 1, 2], "concept": [0, 1, 5, 1, 2, 2], "count": [1, 0, 1, 1, 1, 1]}
    assert below(tmp_path / "t", check_folder(write_trace(tmp_path / "t", rows))) == []


def test_two_concepts_at_one_instant_are_a_violation(tmp_path: Path) -> None:
    rows = IN_ORDER | {"step": [1, 1, 1, 0, 1, 2], "concept": [0, 1, 5, 1, 2, 2]}
    folder = write_trace(tmp_path / "t", rows)
    assert below(folder, check_folder(folder)) == [
        f"{ARRIVALS}, row 2: concept: client 'ann' has concepts 0 and 1 at the same step; training samples "
        f"of one step have one concept"
    ]


def test_of_many_rows_the_first_are_listed_and_the_others_counted(tmp_path: Path) -> None:
    size = MOST_LISTED + 7
    rows = {
        "client": [1] * size,
        "label": [0] * size,
        "sample": [6] * size,
        "step": [0] * size,
        "split": ["train"] * size,
    }
    folder = write_trace(tmp_path / "t", rows)
    lines = below(folder, check_folder(folder))
    assert len(lines) == MOST_LISTED + 1
    assert lines[-2].startswith(f"{ARRIVALS}, row {MOST_LISTED}: sample = 6")
    assert lines[-1] == f"{ARRIVALS}: and 7 more rows like row 1"


@pytest.mark.slow
def test_a_flipped_byte_never_ends_in_a_traceback(tmp_path: Path) -> None:
    folder = write_trace(tmp_path / "t", ROWS)
    for name in (ARRIVALS, FEATURES, FACTS):
        whole = (folder / name).read_bytes()
        for place in range(0, len(whole), 23):
            damaged = bytearray(whole)
            damaged[place] ^= 1
            (folder / name).write_bytes(damaged)
            below(folder, check_folder(folder))
        (folder / name).write_bytes(whole)
    assert check_folder(write_trace(folder, with_cell("label", 1, 1))).violations == []
