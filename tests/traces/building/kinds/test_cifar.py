from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from emulator.errors import ConfigurationError, InputError
from tests.traces.building.layouts import build, cifar10, opened, rows

IID = {"partition": "iid", "clients": 2}


def test_the_published_split_and_the_planes_of_each_record_are_kept(tmp_path: Path) -> None:
    folder = opened("cifar", cifar10(tmp_path / "c"), tmp_path / "out", **IID)
    assert folder.features.values.shape == (24, 3, 32, 32)
    assert folder.rows.classes[3] == "cat"
    assert [(at, split) for _, _, at, split in rows(folder)] == 2 * ([(0, "train")] * 10 + [(0, "test")] * 2)
    planes = folder.features.values[folder.rows.sample][:, :, 0, 0].astype(int)
    record = planes[:, 0]
    assert sorted(record) == list(range(24))
    assert (planes == record[:, None] + [0, 1, 2]).all()
    assert (folder.rows.label == record % 10).all()
    assert ((record >= 20) == (folder.rows.split == 1)).all()
    # The mean over training records 0 to 19 of the red plane is 9.5, and its variance (400 - 1) / 12.
    assert folder.facts.mean is not None
    assert folder.facts.deviation is not None
    assert folder.facts.mean == pytest.approx([9.5 / 255, 10.5 / 255, 11.5 / 255])
    assert folder.facts.deviation == pytest.approx([np.sqrt(399 / 12) / 255] * 3)


def test_pixels_are_resized_only_if_that_is_asked_for(tmp_path: Path) -> None:
    root = cifar10(tmp_path / "c")
    small = opened("cifar", root, tmp_path / "small", **IID, size=4)
    assert small.features.values.shape == (24, 3, 4, 4)
    grey = opened("cifar", root, tmp_path / "grey", **IID, grey=True)
    assert grey.features.values.shape == (24, 32, 32)


def test_cifar_100_has_fine_and_coarse_classes_which_a_partition_may_use(tmp_path: Path) -> None:
    root = tmp_path / "c"
    root.mkdir()
    for name, size in (("train.bin", 12), ("test.bin", 6)):
        records = [bytes([k % 3, k % 6]) + bytes(3072) for k in range(size)]
        (root / name).write_bytes(b"".join(records))
    column = {"partition": {"kind": "column", "column": "coarse"}}
    folder = opened("cifar", root, tmp_path / "out", **column)
    assert folder.rows.clients == ("0", "1", "2")
    assert {(client, int(label) % 3) for client, label, _, _ in rows(folder)} == {
        ("0", 0),
        ("1", 1),
        ("2", 2),
    }
    assert len(folder.rows.classes) == 100
    assert len(opened("cifar", root, tmp_path / "coarse", **IID, labels="coarse").rows.classes) == 20


@pytest.mark.parametrize("names", [("data_batch_1", "batches.meta"), ("meta", "train")])
def test_the_python_version_is_refused_as_a_pickle(tmp_path: Path, names: tuple[str, ...]) -> None:
    folder = tmp_path / "c" / "cifar-py"
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).write_bytes(b"\x80\x02}q\x00.")
    with pytest.raises(
        InputError, match=r"cifar-py: is the python version of CIFAR, a pickle, which is never read"
    ):
        build("cifar", tmp_path / "c", tmp_path / "out", **IID)


def test_a_folder_that_does_not_fit_is_one_line(tmp_path: Path) -> None:
    root = cifar10(tmp_path / "c")
    path = root / "cifar-10-batches-bin" / "data_batch_2.bin"
    content = path.read_bytes()
    path.write_bytes(content[:-1])
    with pytest.raises(
        InputError, match=r"data_batch_2\.bin: has 12291 bytes, which is no multiple of the 3073"
    ):
        build("cifar", root, tmp_path / "out", **IID)
    path.write_bytes(bytes([10]) + content[1:])
    with pytest.raises(InputError, match=r"data_batch_2\.bin, row 1: fine label 10: must be below 10"):
        build("cifar", root, tmp_path / "out", **IID)
    path.unlink()
    with pytest.raises(InputError, match=r"data_batch_2\.bin: no such file"):
        build("cifar", root, tmp_path / "out", **IID)
    with pytest.raises(
        InputError, match=r"has no cifar-10-batches-bin/data_batch_1\.bin or cifar-100-binary/train"
    ):
        build("cifar", tmp_path, tmp_path / "out", **IID)


def test_clients_need_a_partition_that_fits(tmp_path: Path) -> None:
    root = cifar10(tmp_path / "c")
    with pytest.raises(InputError, match=r"has no clients: give --partition \(column, dirichlet, iid"):
        build("cifar", root, tmp_path / "out")
    with pytest.raises(ConfigurationError, match="21 clients cannot each have one of 20 samples"):
        build("cifar", root, tmp_path / "out", partition="iid", clients=21)
    with pytest.raises(InputError, match="--labels coarse: CIFAR-10 has fine labels only"):
        build("cifar", root, tmp_path / "out", **IID, labels="coarse")
