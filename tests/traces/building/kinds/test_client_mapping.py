from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from emulator.errors import InputError
from tests.traces.building.layouts import (
    MAPPING_HEADER,
    build,
    colour,
    draw,
    mapping,
    opened,
    pixels,
    rows,
    write_csv,
)


def numbers(folder_pixels: list[list[int]]) -> list[int]:
    """Inverse of `colour`."""
    return [r // 16 + g // 16 * 16 + b // 16 * 256 for r, g, b in folder_pixels]


def test_samples_have_the_clients_classes_and_images_of_the_mapping(tmp_path: Path) -> None:
    root = mapping(
        tmp_path / "d", [("c2", "_m_1", 7), ("c1", "_m_1", 7), ("c1", "_m_0", 3), ("c2", "_m_1", 7)]
    )
    folder = opened("fedscale", root, tmp_path / "out", test_share=0)
    assert rows(folder) == [
        ("c1", "_m_1", 0, "train"),
        ("c1", "_m_0", 0, "train"),
        ("c2", "_m_1", 0, "train"),
        ("c2", "_m_1", 0, "train"),
    ]
    assert numbers(pixels(folder)) == [1, 2, 0, 3]
    assert folder.rows.classes == ("_m_0", "_m_1")


def test_a_mapping_without_names_has_classes_by_number_and_texts_stay_texts(tmp_path: Path) -> None:
    root = mapping(tmp_path / "d", [("1", "", 10), ("1", "", 9)])
    assert opened("fedscale", root, tmp_path / "out", test_share=0).rows.classes == ("9", "10")
    hexadecimal = mapping(tmp_path / "h", [("007", "4c", 0), ("7", "4e1", 1)])
    folder = opened("fedscale", hexadecimal, tmp_path / "hout", test_share=0)
    assert folder.rows.classes == ("4c", "4e1")
    assert folder.rows.clients == ("007", "7")


def test_the_published_test_clients_are_others_and_are_used_only_if_asked_for(tmp_path: Path) -> None:
    root = mapping(tmp_path / "d", [("a", "x", 0)] * 5)
    mapping(root, [("b", "x", 0)], "test")
    assert build("fedscale", root, tmp_path / "out").train == 4
    with pytest.raises(InputError, match=r"test\.csv: client 'b' has test samples and none in train\.csv"):
        build("fedscale", root, tmp_path / "own", test_mapping=True)
    mapping(root, [("a", "x", 0)] * 3, "test")
    folder = opened("fedscale", root, tmp_path / "own", test_mapping=True)
    assert [split for _, _, _, split in rows(folder)] == ["train"] * 5 + ["test"] * 3
    assert numbers(pixels(folder)) == [0, 1, 2, 3, 4, 0, 1, 2]
    (root / "test" / "0002.png").unlink()
    with pytest.raises(
        InputError, match=r"test/0002\.png \(client_data_mapping/test\.csv, row 3\): no such file"
    ):
        build("fedscale", root, tmp_path / "gone", test_mapping=True)


def test_files_are_below_the_root_as_those_of_femnist_if_the_first_is(tmp_path: Path) -> None:
    samples = [(f"c{k % 2}", f"l{k % 3}", k % 3) for k in range(12)]
    wanted = opened("fedscale", mapping(tmp_path / "d", samples), tmp_path / "open_images")
    root = mapping(tmp_path / "f", samples, folder="", prefix="data/")
    found = opened("fedscale", root, tmp_path / "femnist")
    assert rows(found) == rows(wanted)
    assert pixels(found) == pixels(wanted)


def test_the_files_of_either_split_may_be_below_the_root(tmp_path: Path) -> None:
    root = mapping(tmp_path / "d", [("a", "x", 0)] * 2)
    mapping(root, [("a", "x", 0)] * 3, "test", folder="", prefix="data/")
    assert numbers(pixels(opened("fedscale", root, tmp_path / "out", test_mapping=True))) == [0, 1, 0, 1, 2]
    (root / "data" / "0001.png").unlink()
    draw(root / "test" / "data" / "0001.png", colour(1))
    with pytest.raises(
        InputError,
        match=r"test\.csv, row 2: .*d/test/data/0001\.png exists and .*d/data/0001\.png does not, unlike",
    ):
        build("fedscale", root, tmp_path / "mixed", test_mapping=True, skip_bad=9)


def test_a_mapping_whose_files_are_nowhere_is_refused_with_both_paths(tmp_path: Path) -> None:
    root = mapping(tmp_path / "d", [("a", "x", 0)] * 3)
    (root / "train" / "0000.png").unlink()
    opened("fedscale", root, tmp_path / "out", skip_bad=1, test_share=0)  # as the second one says
    for path in (root / "train").iterdir():
        path.unlink()
    with pytest.raises(
        InputError, match=r"train\.csv, row 1: neither .*d/train/0000\.png nor .*d/0000\.png exists"
    ):
        build("fedscale", root, tmp_path / "none", skip_bad=2)


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (("c", "a.png", "", -1), r"row 2: label_id = -1: no class"),
        (("c", "a.png", "", ""), r"row 2: label_id is missing"),
        (("c", "a.png", "", "x"), r"row 2: label_id = 'x': must be a whole number"),
        (("", "a.png", "", 1), r"row 2: client_id is missing"),
        (("c", "../a.png", "", 1), r"row 2: sample_path '\.\./a\.png': leads out of"),
        (("c", "/etc/passwd", "", 1), r"row 2: sample_path '/etc/passwd': leads out of"),
    ],
)
def test_a_bad_row_is_one_line_with_its_number(tmp_path: Path, row: tuple[object, ...], problem: str) -> None:
    root = mapping(tmp_path / "d", [("c", "", 0)])
    write_csv(root / "client_data_mapping" / "train.csv", MAPPING_HEADER, [("c", "0000.png", "", 0), row])
    with pytest.raises(InputError, match=problem):
        build("fedscale", root, tmp_path / "out")
    assert not list(tmp_path.glob("out*"))


def test_an_empty_class_among_named_ones_is_refused(tmp_path: Path) -> None:
    root = mapping(tmp_path / "d", [("c", "cat", 0), ("c", "", 1)])
    with pytest.raises(InputError, match=r"train\.csv, row 2: label_name is missing"):
        build("fedscale", root, tmp_path / "out")


def test_the_mapping_of_detection_tasks_is_refused_for_its_classes(tmp_path: Path) -> None:
    root = tmp_path / "d"
    write_csv(
        root / "client_data_mapping" / "train.csv",
        "client_id,data_path,label_name,label_id",
        [("c", "a", "", -1)],
    )
    with pytest.raises(
        InputError, match=r"label_id = -1: no class; samples without classes cannot be played"
    ):
        build("fedscale", root, tmp_path / "out")


def test_the_commonest_classes_and_then_clients_with_enough_of_them_are_taken(tmp_path: Path) -> None:
    samples = [("a", "x", 0), ("a", "y", 1), ("a", "z", 2), ("b", "x", 0), ("b", "x", 0), ("c", "y", 1)]
    samples += [("c", "z", 2), ("c", "y", 1), ("c", "x", 0)]
    root = mapping(tmp_path / "d", samples)  # x 4 times, y 3 times, z twice
    folder = opened("fedscale", root, tmp_path / "out", classes=2, min_labels=2, test_share=0)
    assert folder.rows.classes == ("x", "y")
    assert folder.rows.clients == ("a", "c")
    assert numbers(pixels(folder)) == [0, 1, 5, 7, 8]


def test_each_clients_labels_arrive_in_buckets_two_of_which_are_owned_from_the_start(tmp_path: Path) -> None:
    """Client b has ten labels, one a bucket; client a twelve, two of whose buckets have two labels."""
    samples = [("a", f"l{k:02d}", k) for k in range(12)] + [("b", f"l{k:02d}", k) for k in range(10)] * 2
    root = mapping(tmp_path / "d", samples)
    folder = opened("openimages", root, tmp_path / "out", test_share=0)
    steps: dict[str, dict[int, set[str]]] = {"a": {}, "b": {}}
    for client, label, at, _ in rows(folder):
        steps[client].setdefault(at, set()).add(label)
    for client, sizes in (("a", [1] * 8 + [2] * 2), ("b", [1] * 10)):
        assert sorted(steps[client]) == list(range(-1, 9))
        assert sorted(map(len, steps[client].values())) == sizes
        labels = [label for of_step in steps[client].values() for label in of_step]
        assert len(set(labels)) == len(labels)  # a label arrives at one step
    order = [next(iter(steps["b"][step])) for step in range(-1, 9)]
    assert order != sorted(order)
    again = opened("openimages", root, tmp_path / "again", test_share=0)
    other = opened("openimages", root, tmp_path / "other", test_share=0, seed=1)
    assert rows(again) == rows(folder) != rows(other)


def test_open_images_leaves_out_clients_of_few_classes(tmp_path: Path) -> None:
    samples = [("a", f"l{k}", k) for k in range(10)] + [("b", f"l{k}", k) for k in range(9)]
    root = mapping(tmp_path / "d", samples)
    assert build("openimages", root, tmp_path / "out").clients == 1
    with pytest.raises(InputError, match="--owned-steps 11: must be at most --buckets 10"):
        build("openimages", root, tmp_path / "more", owned_steps=11)


def test_no_sample_is_lost_or_doubled_by_sorting(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    samples = [(f"c{c}", f"l{k}", k) for c, k in generator.integers(0, 4, (60, 2)).tolist()]
    folder = opened("fedscale", mapping(tmp_path / "d", samples), tmp_path / "out")
    found = numbers(pixels(folder))
    assert sorted(found) == list(range(60))
    assert [(client, label) for client, label, _, _ in rows(folder)] == [samples[k][:2] for k in found]
    assert colour(59) == (176, 48, 0)
