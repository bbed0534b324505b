from __future__ import annotations

from pathlib import Path

import pytest

from emulator.errors import DataFileError
from experiments.locating import locator
from experiments.reading import load_experiment
from tests.experiments.small import WINDOWS

pytestmark = pytest.mark.usefixtures("beside_the_files")


def test_a_path_is_looked_for_here_then_under_data_then_beside_the_configuration(
    tmp_path: Path,
) -> None:
    data, beside = tmp_path / "data", tmp_path / "configs"
    for folder in (data, beside):
        folder.mkdir()
    locate = locator(data, beside / "c.toml")
    (beside / "t.csv").write_text(WINDOWS)
    assert locate("t.csv") == beside / "t.csv"
    (data / "t.csv").write_text(WINDOWS)
    assert locate("t.csv") == data / "t.csv"
    (tmp_path / "t.csv").write_text(WINDOWS)
    assert locate("t.csv") == Path("t.csv")
    with pytest.raises(DataFileError) as missing:
        locate("gone.csv")
    assert str(missing.value) == (
        f"gone.csv: not found; looked for gone.csv, {data / 'gone.csv'}, {beside / 'gone.csv'}; "
        "--data names a folder to look in"
    )


def test_a_data_folder_that_does_not_exist_is_refused(config: Path) -> None:
    with pytest.raises(DataFileError, match="nowhere: no such folder; --data"):
        load_experiment(config, data=Path("nowhere"))
