from __future__ import annotations

from pathlib import Path

import pytest

from emulator.errors import DataFileError
from experiments import locating
from experiments.locating import OutsideError, locator
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


def test_data_folders_are_searched_in_their_order_and_are_all_readable(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    (second / "t.csv").write_text(WINDOWS)
    locate = locator([first, second], None)
    assert locate("t.csv") == second / "t.csv"
    (first / "t.csv").write_text(WINDOWS)
    assert locate("t.csv") == first / "t.csv"
    with pytest.raises(DataFileError, match="nowhere: no such folder; --data"):
        locator([first, tmp_path / "nowhere"], None)


def test_a_folder_that_is_a_link_into_another_data_folder_is_read(tmp_path: Path) -> None:
    here, data, store = (tmp_path / name for name in ("here", "data", "the store"))
    for folder in (here, data, store / "mnist"):
        folder.mkdir(parents=True)
    (store / "mnist" / "t.csv").write_text(WINDOWS)
    (data / "mnist").symlink_to(store / "mnist")
    with pytest.raises(OutsideError) as refused:
        locator(data, None, here)("mnist")
    way_out = f"--data '{store / 'mnist'}'"
    assert str(refused.value) == (
        f"mnist: leads to {store / 'mnist'}; a configuration may only read files in {here}, {data}; "
        f"to allow it, add {way_out} (--data takes several folders)"
    )
    for allowed in (store / "mnist", store):
        assert locator([data, allowed], None, here)("mnist/t.csv") == data / "mnist" / "t.csv"


def test_a_link_out_of_the_folders_is_refused_however_deep_it_is(tmp_path: Path) -> None:
    data, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    (data / "set" / "inner").mkdir(parents=True)
    (elsewhere / "secrets").mkdir(parents=True)
    (data / "set" / "inner" / "link").symlink_to(elsewhere)
    with pytest.raises(OutsideError, match=f"leads to {elsewhere}; a configuration may only read files in"):
        locator(data, None, data)("set")
    assert locator([data, elsewhere], None, data)("set") == data / "set"
    # Through an allowed link, one that leads out again is found.
    (elsewhere / "secrets" / "out").symlink_to(tmp_path)
    with pytest.raises(OutsideError, match=f"leads to {tmp_path}; "):
        locator([data, elsewhere], None, data)("set")


def test_a_folder_of_too_many_files_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locating, "MOST_ENTRIES", 3)
    (tmp_path / "set" / "inner").mkdir(parents=True)
    for name in ("set/a", "set/inner/b"):
        (tmp_path / name).touch()
    assert locator(tmp_path, None)("set") == Path("set")
    (tmp_path / "set" / "inner" / "c").touch()
    with pytest.raises(DataFileError, match="set: has more than 3 files and folders; a run reads a smaller"):
        locator(tmp_path, None)("set")
