"""The checks that go through rows in blocks find what a check of row after row finds."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.traces.files.written import write_trace
from traces.files import ARRIVALS, FEATURES, arrivals
from traces.files.checking import blocks, check_folder

NUM_ROWS, NUM_SAMPLES, NUM_CLIENTS = 120, 110, 9

Row = dict[str, Any]


def drawn(seed: int) -> dict[str, list[Any]]:
    """Rows of a few clients, in order or not; some have a label that is out of range, and do not count."""
    generator = np.random.default_rng(seed)
    columns = {
        "client": generator.integers(0, NUM_CLIENTS, NUM_ROWS) * 10**12,
        "split": np.where(generator.random(NUM_ROWS) < 0.6, "train", "test"),
        "step": generator.integers(0, 6, NUM_ROWS),
        "label": generator.integers(0, 4, NUM_ROWS) - (generator.random(NUM_ROWS) < 0.05),
        "sample": generator.integers(0, NUM_SAMPLES if seed % 3 else 9, NUM_ROWS),
        "count": generator.integers(0, 4, NUM_ROWS),
        "concept": generator.integers(0, 2, NUM_ROWS),
    }
    if seed % 2:
        columns["client"][:90] = 0  # more than a block
        order = np.lexsort((columns["step"], columns["split"] == "test", columns["client"]))
        columns = {name: values[order] for name, values in columns.items()}
    return {name: values.tolist() for name, values in columns.items()}


def found_row_by_row(rows: list[Row]) -> tuple[list[str], list[str]]:
    """The violations and remarks that depend on several rows, of `rows`, each with its number `row`."""
    violations, remarks = [], []
    arrived = [row for row in rows if row["count"] > 0]
    for client in sorted({row["client"] for row in arrived}):
        own = [row for row in arrived if row["client"] == client]
        if all(row["split"] == "test" for row in own):
            text = f"row {own[0]['row']}: client {client} has test samples and none for training"
            violations.append(text)
    trains = [row for row in arrived if row["split"] == "train"]
    by_instant = sorted(trains, key=lambda row: (row["client"], row["step"]))
    for before, after in pairwise(by_instant):
        instants = [(row["client"], row["step"]) for row in (before, after)]
        if instants[0] == instants[1] and before["concept"] != after["concept"]:
            violations.append(
                f"row {after['row']}: concept: client {after['client']} has concepts {before['concept']} and "
                f"{after['concept']} at the same step; training samples of one step have one concept"
            )
    keys = [(row["client"], row["split"] == "test", row["step"]) for row in rows]
    late = [
        row["row"] for row, key, before in zip(rows[1:], keys[1:], keys[:-1], strict=True) if key < before
    ]
    if late:
        text = f"the first row out of the order of (client, split, step), of {len(late)}"
        remarks.append(f"row {late[0]}: {text}: rows are sorted at every start")
    once: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for row in rows:
        once[row["client"], row["sample"], row["step"]].append(row["row"])
    for (client, sample, _), same in sorted(once.items()):
        remarks += [
            f"row {after}: client {client} receives sample {sample} as in row {before}, at the same step; a "
            f"column count says how often"
            for before, after in pairwise(same)
        ]
    of = {split: {row["sample"] for row in rows if row["split"] == split} for split in ("train", "test")}
    both, unused = (
        sorted(of["train"] & of["test"]),
        sorted(set(range(NUM_SAMPLES)) - of["train"] - of["test"]),
    )
    if both:
        remarks.append(f"{len(both)} samples are for training and for tests; the first is sample {both[0]}")
    text = f"{len(unused)} of {NUM_SAMPLES} samples are never used; the first is sample {unused[0]}"
    return violations, [*remarks, text]


@pytest.mark.parametrize("seed", range(8))
def test_findings_are_those_of_a_check_row_by_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    for module, name, rows in (
        (blocks, "STRETCH_ROWS", 7),
        (blocks, "BLOCK_ROWS", 20),
        (arrivals, "CHUNK_ROWS", 7),
    ):
        monkeypatch.setattr(module, name, rows)
    columns = drawn(seed)
    folder = write_trace(tmp_path / "t", columns, np.zeros((NUM_SAMPLES, 2), np.float32))
    every = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    valid = [row | {"row": number} for number, row in enumerate(every, 1) if row["label"] >= 0]
    findings = check_folder(folder)
    ours = [
        [str(line).removeprefix(f"{folder}/") for line in lines if "label = -1" not in line.problem]
        for lines in (
            findings.violations,
            [line for line in findings.remarks if "digest" not in line.problem],
        )
    ]
    expected = found_row_by_row(valid)
    assert [line.split(", ", 1)[-1].removeprefix(f"{ARRIVALS}: ") for line in ours[0]] == expected[0]
    assert ours[1] == [
        f"{FEATURES if 'never used' in line else ARRIVALS}{', ' if line.startswith('row') else ': '}{line}"
        for line in expected[1]
    ]


def test_a_client_with_more_rows_than_a_block_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 3)
    client = np.array([4, 0, 1, 1, 4, 1, 1, 0, 3])
    found = [block.tolist() for block in blocks.blocks_of_clients(client, 6)]
    assert found == [[1, 7], [2, 3, 5, 6], [0, 4, 8]]
    in_order = [block.tolist() for block in blocks.blocks_of_clients(np.sort(client), 6)]
    assert in_order == [[0, 1], [2, 3, 4, 5], [6, 7, 8]]
    monkeypatch.setattr(blocks, "MOST_BLOCKS", 1)
    assert len(list(blocks.blocks_of_clients(client, 6))) == 1
