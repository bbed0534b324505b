"""`driftscale traces export`, of a folder and of a configuration."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.experiments.cli.conftest import Driftscale
from tests.experiments.small import write_small
from tests.traces.tiny import daily_rows, write_trace_folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two clients that receive eight samples on each of seven days."""
    return write_trace_folder(tmp_path / "days", daily_rows(2, 7))


def exported(driftscale: Driftscale, *arguments: str) -> dict[str, object]:
    out = driftscale(
        "traces", "export", *arguments, "--to", "parquet", "--out", "t.parquet", "--format", "json"
    ).out
    facts: dict[str, object] = json.loads(out)
    return facts


def test_a_folder_is_exported_as_the_source_file_plays_it(
    driftscale: Driftscale, folder: Path, tmp_path: Path
) -> None:
    facts = exported(driftscale, "days")  # five days are owned from the start, and two more follow
    assert (facts["data steps"], facts["rows"], facts["clients"], facts["shape"]) == (3, 112, 2, [2, 2])
    table = pq.read_table(tmp_path / "t.parquet")
    assert sorted(set(table["step"].to_pylist())) == [-4, -3, -2, -1, 0, 1, 2]
    assert {row["step"]: row["expiry"] for row in table.select(["step", "expiry"]).to_pylist()} == {
        -4: 1, -3: 2, -2: None, -1: None, 0: None, 1: None, 2: None
    }  # fmt: skip
    about = json.loads(table.schema.metadata[b"driftscale"])
    assert about["origin"] == "driftscale traces export of the folder days"


def test_the_settings_of_a_folder_are_options(driftscale: Driftscale, folder: Path, tmp_path: Path) -> None:
    options = [
        "--step-width",
        "2",
        "--retain-rounds",
        "all",
        "--since",
        "2015-01-02",
        "--until",
        "2015-01-07",
    ]
    facts = exported(driftscale, "days", *options, "--rounds-per-step", "3")
    assert (facts["data steps"], facts["rows"]) == (3, 80)
    assert pq.read_table(tmp_path / "t.parquet")["expiry"].null_count == 80


def test_a_configuration_is_exported_with_the_labels_that_its_clients_train_on(
    driftscale: Driftscale, tmp_path: Path
) -> None:
    write_small(tmp_path)
    plain = exported(driftscale, "small.toml", "--seed", "1")
    labels = pq.read_table(tmp_path / "t.parquet")["label"].to_pylist()
    assert plain["rows"] == len(labels)
    (tmp_path / "t.parquet").unlink()
    flips = "faults={byzantine=[{kind='label_flip', share=1.0}]}"
    assert exported(driftscale, "small.toml", "--seed", "1", "--set", flips)["rows"] == len(labels)
    table = pq.read_table(tmp_path / "t.parquet")
    for before, after, split in zip(
        labels, table["label"].to_pylist(), table["split"].to_pylist(), strict=True
    ):
        assert after == (9 - before if split == "train" else before)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("days --out t.parquet", "--to is missing; must be parquet"),
        ("days --to csv --out t.parquet", "--to csv: is no format of a table; must be parquet"),
        ("days --to parquet", "--out is missing; it names the file to write, as trace.parquet"),
        ("days --to parquet --out t.csv", "--out t.csv: must be a file that ends in .parquet"),
        ("days --to parquet --out a/t.parquet", "--out a/t.parquet: there is no folder a"),
        ("days --to parquet --out old.parquet", "--out old.parquet: exists; delete it, or give another name"),
        (
            "days --to parquet --out t.parquet --set a=1",
            "--set: is for a configuration, but days is a folder",
        ),
        (
            "days --to parquet --out t.parquet --step-width 2",
            "has 4 windows, but clients start out with retain_rounds / rounds_per_step = 5 of them; lower "
            "--retain-rounds or --step-width",
        ),
        (
            "days --to parquet --out t.parquet --since 3",
            "--since = 3: the trace has a column time, so it must be",
        ),
        (
            "days --to parquet --out t.parquet --retain-rounds some",
            "some: must be a number of rounds, or 'all'",
        ),
        (
            "days --to parquet --out t.parquet --rounds-per-step 0",
            "--rounds-per-step 0: Input should be greater than",
        ),
        (
            "digits --to parquet --out t.parquet --until 3",
            "--until: is for a trace folder, but digits (shipped) is none; a configuration has trace.until",
        ),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_left(
    driftscale: Driftscale, folder: Path, tmp_path: Path, arguments: str, message: str
) -> None:
    (tmp_path / "old.parquet").write_text("kept")
    before = sorted(tmp_path.iterdir())
    ended = driftscale("traces", "export", *arguments.split())
    assert (ended.code, ended.err.count("\n")) == (2, 1 + arguments.startswith("digits"))
    assert message in ended.err
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "old.parquet").read_text() == "kept"
