"""Tables with files of each client, whose path has its name."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from emulator.errors import InputError
from tests.traces.building.table.tables import build, built, refused, rows, write, write_parquet

FROM: dict[str, Any] = {"client": None, "client_from": "{client}/*.csv"}


def drawn(root: Path) -> Path:
    """Two clients with three files; and a file that is no client's, of other columns."""
    write(root, "kind,a\nup,1\ndown,2\n", "bob/2024.csv")
    write(root, "kind,a\nup,3\n", "ann/2025.csv")
    write(root, "kind,a\nup,4\ndown,5\n", "ann/2024.csv")
    write(root, "device,owner\nann,x\n", "devices.csv")
    return root


def test_the_rows_of_a_file_are_those_of_its_client(tmp_path: Path) -> None:
    root = drawn(tmp_path / "t")
    folder = built(root, **FROM, test_share=0)
    wanted = pd.concat(
        pd.read_csv(path).assign(who=path.parent.name) for path in sorted(root.glob("*/*.csv"))
    ).reset_index()
    assert folder.features.values[:, 0].tolist() == wanted["a"].tolist()
    found = [
        (client, folder.facts.classes[label], sample)
        for client, label, sample in rows(folder, "client", "label", "sample")
    ]
    assert sorted(found) == sorted(zip(wanted["who"], wanted["kind"], wanted.index, strict=True))
    assert folder.facts.origin == "t: client_from {client}/*.csv, label kind; features a"


def test_files_without_a_client_are_counted_and_named(tmp_path: Path) -> None:
    result = build(drawn(tmp_path / "t"), tmp_path / "out", **FROM)
    assert (
        "1 table does not match --client-from {client}/*.csv: left out; the first: devices.csv"
        in result.notes
    )


def test_clients_are_whole_numbers_if_all_names_are(tmp_path: Path) -> None:
    for client in (10, 9):
        write_parquet(tmp_path / "t", {"kind": [client], "a": [1.0]}, f"client_{client}.parquet")
    folder = built(tmp_path / "t", client=None, client_from="client_{client}.parquet")
    assert rows(folder, "client", "sample") == [(9, 1), (10, 0)]


def test_no_match_two_clients_and_a_single_file_are_refused(tmp_path: Path) -> None:
    root = drawn(tmp_path / "t")
    assert refused(root, client=None, client_from="{client}/*.parquet") == (
        "t: no table in it matches --client-from {client}/*.parquet; one that is there is ann/2024.csv"
    )
    assert refused(root, client=None, client_from="{client}/{client}.csv").startswith(
        "t: ann/2024.csv: --client-from {client}/{client}.csv finds two clients in this path, 'ann' and '2"
    )
    assert refused(root / "devices.csv", **FROM) == (
        "devices.csv: is one file: --client-from is for a folder with files of several clients; give --client"
    )
    write(root, "kind,a\nup,1\n", "c\x1b/1.csv")
    assert refused(root, **FROM).startswith("client 'c\\x1b': is no name")


def test_a_build_is_not_resumed_with_other_clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of a client has another name: its files are the same."""
    root = drawn(tmp_path / "t")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("traces.building.folder.write_arrival_pieces", interrupt)
        with pytest.raises(KeyboardInterrupt):
            build(root, tmp_path / "out", **FROM)
    shutil.move(root / "bob", root / "carl")
    with pytest.raises(InputError, match="begun with another client of a file"):
        build(root, tmp_path / "out", **FROM)
