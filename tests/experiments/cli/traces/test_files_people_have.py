"""Nine files as people have them, each built by one command: pandas counts the same in the source."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from tests.experiments.cli.conftest import Driftscale
from tests.traces.building.layouts import colour, draw, write_csv
from traces.building.workspace import Workspace
from traces.files import ARRIVALS, read_facts

ROWS = 300
KINDS = np.array(["down", "left", "up"])

Counts = Mapping[tuple[str, str, object], int]


class Source(NamedTuple):
    """A data set, the options that build it, and how many samples it has by client, label and day."""

    root: Path
    kind: str
    options: tuple[str, ...]
    counts: Counts


def a_frame(**more: object) -> pd.DataFrame:
    """Columns who, kind, day, a and b, of 300 rows in no order."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "who": [f"phone-{number}" for number in rng.integers(0, 6, ROWS)],
            "kind": KINDS[rng.integers(0, 3, ROWS)],
            "day": rng.integers(0, 8, ROWS),
            "a": rng.normal(size=ROWS).round(3),
            "b": rng.normal(20, 5, ROWS).round(2),
            **more,
        }
    )


def counts_of(frame: pd.DataFrame, client: str = "who", label: str = "kind", at: str = "day") -> Counts:
    return Counter(zip(frame[client].astype(str), frame[label].astype(str), frame[at], strict=True))


def semicolons_and_decimal_commas(folder: Path) -> Source:
    path = folder / "t.csv"
    a_frame().to_csv(path, sep=";", decimal=",", index=False)
    back = pd.read_csv(path, sep=";", decimal=",")
    return Source(path, "table", ("--client", "who", "--step", "day", "--label", "kind"), counts_of(back))


def tabs(folder: Path) -> Source:
    path = folder / "t.tsv"
    a_frame().to_csv(path, sep="\t", index=False)
    options = ("--client", "who", "--step", "day", "--label", "kind")
    return Source(path, "table", options, counts_of(pd.read_csv(path, sep="\t")))


def a_local_log_over_a_change_of_clocks(folder: Path) -> Source:
    path = folder / "t.csv"
    seconds = np.random.default_rng(1).integers(0, 8 * 86_400, ROWS)
    instants = pd.Timestamp("2024-03-27", tz="Europe/Berlin") + pd.to_timedelta(seconds, unit="s")
    a_frame(day=instants.map(str)).to_csv(path, index=False)
    back = pd.read_csv(path)
    assert set(back.day.str[-6:]) == {"+01:00", "+02:00"}
    back["day"] = pd.to_datetime(back.day, utc=True).dt.tz_convert("Europe/Berlin").dt.date
    options = ("--client", "who", "--time", "day", "--zone", "Europe/Berlin", "--label", "kind")
    return Source(path, "table", options, counts_of(back))


def unix_milliseconds(folder: Path) -> Source:
    path = folder / "t.csv"
    ms = 1_711_500_000_000 + np.random.default_rng(1).integers(0, 8 * 86_400_000, ROWS)
    a_frame(day=ms).to_csv(path, index=False)
    back = pd.read_csv(path)
    back["day"] = pd.to_datetime(back.day, unit="ms").dt.date
    return Source(path, "table", ("--client", "who", "--time", "day", "--label", "kind"), counts_of(back))


def dashes_for_missing_numbers(folder: Path) -> Source:
    path = folder / "t.csv"
    frame = a_frame().astype({"a": object})
    frame.loc[::7, "a"] = "-"
    frame.to_csv(path, index=False)
    options = ("--client", "who", "--step", "day", "--label", "kind", "--na", "-", "--missing", "mean")
    return Source(path, "table", options, counts_of(pd.read_csv(path, na_values="-")))


def one_file_per_client(folder: Path) -> Source:
    for who, of_one in a_frame().groupby("who"):
        path = folder / "logs" / str(who) / "log.csv"
        path.parent.mkdir(parents=True)
        of_one.drop(columns="who").to_csv(path, index=False)
    files = sorted((folder / "logs").glob("*/*.csv"))
    back = pd.concat([pd.read_csv(path).assign(who=path.parent.name) for path in files])
    options = ("--client-from", "{client}/*.csv", "--step", "day", "--label", "kind")
    return Source(folder / "logs", "table", options, counts_of(back))


def a_column_of_lists(folder: Path) -> Source:
    path = folder / "t.parquet"
    vectors = list(np.random.default_rng(2).normal(size=(ROWS, 16)))
    a_frame(a=vectors).drop(columns="b").to_parquet(path, index=False)
    options = ("--client", "who", "--step", "day", "--label", "kind", "--features", "a", "--shape", "4,4")
    return Source(path, "table", options, counts_of(pd.read_parquet(path)))


def class_labels_of_datasets(folder: Path) -> Source:
    datasets = pytest.importorskip("datasets", reason="needs `datasets`")
    frame = a_frame().replace({"kind": {name: code for code, name in enumerate(KINDS)}}).infer_objects()
    names = datasets.ClassLabel(names=list(KINDS))
    features = datasets.Features(
        {name: datasets.Value(str(kind)) for name, kind in frame[["day", "a", "b"]].dtypes.items()}
        | {"who": datasets.Value("string"), "kind": names}
    )
    path = folder / "t.parquet"
    datasets.Dataset.from_pandas(frame[list(features)], features=features).to_parquet(str(path))
    back = pd.read_parquet(path)
    back["kind"] = KINDS[back.kind]
    return Source(path, "table", ("--client", "who", "--step", "day", "--label", "kind"), counts_of(back))


def femnist_of_fedscale(folder: Path) -> Source:
    frame = a_frame()
    rows = []
    for number, (who, kind) in enumerate(zip(frame.who[:60], frame.kind[:60], strict=True)):
        draw(folder / "femnist/data" / f"{number:05d}.png", colour(number))
        rows.append([who, f"data/{number:05d}.png", "", list(KINDS).index(kind)])
    mapping = folder / "femnist/client_data_mapping/train.csv"
    write_csv(mapping, "client_id,sample_path,label_name,label_id", rows)
    back = pd.read_csv(mapping).assign(day=0)
    options = ("--size", "8")
    return Source(folder / "femnist", "fedscale", options, counts_of(back, "client_id", "label_id"))


DRAWN: tuple[Callable[[Path], Source], ...] = (
    semicolons_and_decimal_commas,
    tabs,
    a_local_log_over_a_change_of_clocks,
    unix_milliseconds,
    dashes_for_missing_numbers,
    one_file_per_client,
    a_column_of_lists,
    class_labels_of_datasets,
    femnist_of_fedscale,
)


def built_counts(folder: Path) -> Counts:
    """The samples of each client, label and step or day, as the files of the trace folder have them."""
    rows = pq.read_table(folder / ARRIVALS).to_pandas()
    classes = np.array(read_facts(folder).classes)
    at = rows["step"] if "step" in rows else rows["time"].dt.date
    return Counter(zip(rows["client"].astype(str), classes[rows["label"]], at, strict=True))


def everything(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize("drawn", DRAWN, ids=lambda drawn: drawn.__name__)
def test_a_file_is_built_by_one_command_and_resumed_to_the_same_bytes(
    driftscale: Driftscale, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drawn: Callable[[Path], Source]
) -> None:
    source = drawn(tmp_path)
    command = ("traces", "build", source.kind, "--root", str(source.root), *source.options)
    ended = driftscale(*command, "--out", str(tmp_path / "whole"))
    assert ended.code == 0, ended.error
    assert built_counts(tmp_path / "whole") == source.counts
    record = Workspace.record

    def interrupted(self: Workspace, progress: Mapping[str, object]) -> None:
        record(self, progress)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Workspace, "record", interrupted)
        assert driftscale(*command, "--out", str(tmp_path / "out")).code == 130
    assert not (tmp_path / "out").exists()
    assert json.loads((tmp_path / "out.building/progress.json").read_text())
    assert driftscale(*command, "--out", str(tmp_path / "out")).code == 0
    assert everything(tmp_path / "out") == everything(tmp_path / "whole")
