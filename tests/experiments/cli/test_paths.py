from __future__ import annotations

import os
from pathlib import Path

import pytest

from emulator.errors import InputError
from experiments.cli.paths import DATA_VARIABLE, data_or_variable
from tests.experiments.cli.conftest import Driftscale
from tests.experiments.small import write_idx_folder, write_label_trace, write_replay


def test_the_variable_lists_folders_and_the_option_replaces_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    assert data_or_variable(None) == []
    monkeypatch.setenv(DATA_VARIABLE, "")
    assert data_or_variable(None) == []
    monkeypatch.setenv(DATA_VARIABLE, os.pathsep.join(["my data", "b"]))
    assert data_or_variable([]) == [Path("my data"), Path("b")]
    assert data_or_variable([Path("c")]) == [Path("c")]
    monkeypatch.setenv(DATA_VARIABLE, "a" + os.pathsep)
    with pytest.raises(InputError, match="DRIFTSCALE_DATA: is empty; a path is needed"):
        data_or_variable(None)


def test_data_may_be_given_several_times_or_listed_in_the_variable(
    driftscale: Driftscale, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("images of digits", "tables"):
        (tmp_path / "data" / name).mkdir(parents=True)
    write_idx_folder(tmp_path / "data" / "images of digits" / "images")
    write_label_trace(tmp_path / "data" / "tables" / "labels.csv")
    config = write_replay(tmp_path)
    first, second = tmp_path / "data" / "images of digits", tmp_path / "data" / "tables"
    assert "labels.csv: not found" in driftscale("check", config, "--data", first).error
    given = driftscale("check", config, "--data", first, "--data", second)
    assert given.code == 0
    monkeypatch.setenv(DATA_VARIABLE, os.pathsep.join(map(str, (first, second))))
    assert driftscale("check", config).out == given.out
