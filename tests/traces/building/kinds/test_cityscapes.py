from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

from emulator.errors import InputError
from tests.traces.building.layouts import BLUE, GREEN, RED, build, opened, pixels, rows, write_csv


def frame(root: Path, city: str, sequence: int, number: int, objects: list[tuple[str, list[int]]]) -> str:
    """A red frame of 200 x 100 with a blue square of 60 x 60 at (20, 20), and its polygons."""
    name = f"{city}_{sequence:06d}_{number:06d}"
    image = Image.new("RGB", (200, 100), RED)
    image.paste(BLUE, (20, 20, 80, 80))
    path = root / "leftImg8bit" / "train" / city / f"{name}_leftImg8bit.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path)
    polygons = root / "gtFine" / "train" / city / f"{name}_gtFine_polygons.json"
    polygons.parent.mkdir(parents=True, exist_ok=True)
    outlined = [
        {"label": label, "polygon": [[x0, y0], [x1, y0], [x1, y1], [x0, y1]]}
        for label, (x0, y0, x1, y1) in objects
    ]
    polygons.write_text(json.dumps({"imgHeight": 100, "imgWidth": 200, "objects": outlined}))
    return f"train/{city}/{name}_leftImg8bit.png"


SQUARE, ASIDE = [20, 20, 80, 80], [100, 20, 160, 80]


def test_objects_are_the_bounding_boxes_of_polygons_that_are_large_enough(tmp_path: Path) -> None:
    root = tmp_path / "c"
    frame(root, "ulm", 0, 19, [("car", SQUARE), ("person", ASIDE), ("road", SQUARE), ("bus", [0, 0, 50, 90])])
    folder = opened("cityscapes", root, tmp_path / "out", test_share=0, size=8)
    assert rows(folder) == [("ulm-000", "car", -3, "train"), ("ulm-000", "person", -3, "train")]
    assert pixels(folder) == [list(BLUE), list(RED)]
    assert folder.rows.classes == ("person", "car", "truck", "bus", "bicycle", "motorcycle")


def test_a_client_has_100_frames_in_ten_intervals_of_which_four_are_owned(tmp_path: Path) -> None:
    """Twelve frames in clients of ten: an interval a frame, and two frames in the second client."""
    root = tmp_path / "c"
    for number in range(12):  # sequences run backwards in the order of the files
        frame(root, "ulm", number // 6, 900_000 - number if number < 6 else number, [("car", SQUARE)])
    frame(root, "bonn", 0, 1, [("bus", SQUARE)])
    folder = opened("cityscapes", root, tmp_path / "out", test_share=0, size=4, frames_per_client=10)
    assert [(client, at) for client, _, at, _ in rows(folder)] == [
        ("bonn-000", -3),
        *(("ulm-000", step) for step in range(-3, 7)),
        ("ulm-001", -3),
        ("ulm-001", 2),
    ]


def test_the_list_of_objects_is_used_where_there_is_one(tmp_path: Path) -> None:
    root = tmp_path / "c"
    first = frame(root, "ulm", 0, 1, [])
    second = frame(root, "ulm", 0, 2, [])
    write_csv(
        root / "ulm_fine.csv",
        "idx,imgpath,class,x0,y0,x1,y1",
        [
            (0, f"leftImg8bit/{second}", 1, *SQUARE),
            (1, first, "truck", *ASIDE),
            (2, first, 0, 0, 0, 50, 100),
        ],
    )
    folder = opened("cityscapes", root, tmp_path / "out", test_share=0, size=8)
    assert rows(folder) == [("ulm-000", "truck", -3, "train"), ("ulm-000", "car", 2, "train")]
    assert pixels(folder) == [list(RED), list(BLUE)]


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (
            (0, "train/ulm/x.png", 6, 0, 0, 60, 60),
            r"row 1: class '6': must be a number from 0 to 5, or one of",
        ),
        (
            (0, "train/ulm/x.png", 0, 0, 0, 60, 60),
            r"x\.png: is not named CITY_SEQUENCE_FRAME_leftImg8bit\.png",
        ),
        ((0, "../x.png", 0, 0, 0, 60, 60), r"row 1: imgpath '\.\./x\.png': leads out of"),
        (
            (0, "x.png", 0, 60, 0, 0, 60),
            r"row 1: x0,y0,x1,y1 = \[60\.0, 0\.0, 0\.0, 60\.0\]: the box is empty",
        ),
        ((0, "x.png", 0, "left", 0, 0, 60), r"row 1: x0 = 'left': must be a number"),
        ((0, "x.png", 0, "nan", 0, 0, 60), r"row 1: x0 = nan: must be a finite number"),
    ],
)
def test_a_bad_row_of_the_list_is_one_line(tmp_path: Path, row: tuple[object, ...], problem: str) -> None:
    write_csv(tmp_path / "c" / "ulm_fine.csv", "idx,imgpath,class,x0,y0,x1,y1", [row])
    with pytest.raises(InputError, match=problem):
        build("cityscapes", tmp_path / "c", tmp_path / "out")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{", "cannot be read as JSON"),
        ("[]", "objects: is missing or not a list"),
        ('{"objects": [{"polygon": []}]}', "objects.0.label: is missing or not a text"),
        ('{"objects": [{"label": "car", "polygon": [[1]]}]}', "objects.0.polygon: must be a list of points"),
        ('{"objects": [{"label": "car"}]}', "objects.0.polygon: must be a list of points"),
    ],
)
def test_bad_polygons_are_one_line_with_their_key(tmp_path: Path, content: str, problem: str) -> None:
    frame(tmp_path / "c", "ulm", 0, 1, [])
    path = next(tmp_path.glob("c/gtFine/*/*/*.json"))
    path.write_text(content)
    with pytest.raises(InputError) as refused:
        build("cityscapes", tmp_path / "c", tmp_path / "out")
    assert str(refused.value).startswith(f"{path}: {problem}")


def test_a_box_outside_its_frame_is_a_sample_that_cannot_be_read(tmp_path: Path) -> None:
    root = tmp_path / "c"
    frame(root, "ulm", 0, 1, [("car", SQUARE)])
    frame(root, "ulm", 0, 2, [("car", [300, 0, 400, 90])])
    with pytest.raises(InputError, match=r"has 200 x 100 pixels, of which the box 200,0,200,90 has none"):
        build("cityscapes", root, tmp_path / "out")
    assert build("cityscapes", root, tmp_path / "out", skip_bad=1).left_out == 1
    assert GREEN != BLUE
