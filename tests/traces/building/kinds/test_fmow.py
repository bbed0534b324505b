from __future__ import annotations

import json
from pathlib import Path

import pytest

from emulator.errors import InputError
from tests.traces.building.layouts import (
    BLUE,
    DAY,
    GREEN,
    RED,
    build,
    fmow_raw,
    fmow_wilds,
    opened,
    pixels,
    rows,
)
from traces.building.kinds.fmow import CLASSES

FIRST = 16_436  # days from 1970-01-01 to 2015-01-01


def near(found: list[list[int]], wanted: list[tuple[int, int, int]]) -> bool:
    """Whether colours are what they should be, but for what JPEG makes of them."""
    return all(abs(a - b) <= 3 for x, y in zip(found, wanted, strict=True) for a, b in zip(x, y, strict=True))


def raw(root: Path) -> Path:
    return fmow_raw(
        root,
        [
            ("zoo", "32T", "2016-03-01T00:00:00Z", RED),
            ("airport", "32T", "2015-01-01T12:00:00.5Z", GREEN),
            ("airport", "10N", "2015-01-02T01:00:00+01:00", BLUE),
            ("zoo", "10N", "2014-12-31T23:59:59Z", RED),
        ],
    )


def test_raw_images_have_zone_class_and_time_and_those_before_2015_are_left_out(tmp_path: Path) -> None:
    folder = opened("fmow", raw(tmp_path / "fmow"), tmp_path / "out", test_share=0)
    assert rows(folder) == [
        ("10N", "airport", (FIRST + 1) * DAY, "train"),
        ("32T", "airport", FIRST * DAY + DAY // 2 + 500_000, "train"),
        ("32T", "zoo", 16_861 * DAY, "train"),
    ]
    assert near(pixels(folder), [BLUE, GREEN, RED])
    assert folder.features.values.shape == (3, 3, 32, 32)
    assert folder.rows.when == "time"
    assert folder.rows.classes == CLASSES


def test_images_are_whole_or_cropped_to_their_first_box(tmp_path: Path) -> None:
    root = raw(tmp_path / "fmow")
    image = next(root.glob("train/zoo/zoo_0/*_0_rgb.jpg"))
    from PIL import Image

    drawn = Image.new("RGB", (20, 8), RED)
    drawn.paste(BLUE, (2, 2, 6, 6))
    drawn.save(image, quality=100, subsampling=0)
    options = {"test_share": 0, "since": "2016-01-01"}
    whole = opened("fmow", root, tmp_path / "whole", **options)
    boxed = opened("fmow", root, tmp_path / "boxed", crop="box", **options)
    assert whole.features.values[0, 0, 0, 0] > 240
    assert near([boxed.features.values[0, :, 16, 16].tolist()], [BLUE])


def test_a_class_of_its_own_for_false_detections_is_left_out(tmp_path: Path) -> None:
    root = fmow_raw(
        tmp_path / "fmow",
        [
            ("false_detection", "32T", "2016-03-01T00:00:00Z", RED),
            ("zoo", "32T", "2016-03-01T00:00:00Z", RED),
        ],
    )
    assert build("fmow", root, tmp_path / "out").train == 1


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            {"timestamp": "March"},
            "timestamp: 'March' is not a time; it must be written as 2015-01-31T12:00:00Z",
        ),
        ({"timestamp": "2016-03-01T00:00:00"}, "has no time zone, unlike those before it"),
        ({"utm": ""}, "utm: must be a text, and not empty"),
        ({"bounding_boxes": []}, "bounding_boxes: must be a list, and not empty"),
        ({"bounding_boxes": [{"category": "zoos"}]}, "'zoos': the image is in the folder 'zoo'"),
    ],
)
def test_a_json_that_breaks_a_rule_is_one_line_with_file_and_key(
    tmp_path: Path, change: dict[str, object], problem: str
) -> None:
    root = raw(tmp_path / "fmow")
    path = next(root.glob("train/zoo/zoo_0/*_0_rgb.json"))
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(InputError) as refused:
        build("fmow", root, tmp_path / "out")
    assert str(path) in str(refused.value)
    assert problem in str(refused.value)


def test_an_unknown_class_and_a_missing_json_are_one_line(tmp_path: Path) -> None:
    root = fmow_raw(tmp_path / "fmow", [("castle", "32T", "2016-03-01T00:00:00Z", RED)])
    with pytest.raises(
        InputError, match=r"castle_0_0_rgb\.json: bounding_boxes\.0\.category 'castle': is none"
    ):
        build("fmow", root, tmp_path / "out")
    next(root.glob("train/*/*/*_rgb.json")).unlink()
    with pytest.raises(InputError, match=r"castle_0_0_rgb\.json: no such file, beside its image"):
        build("fmow", root, tmp_path / "out")


# -- WILDS --------------------------------------------------------------------------------------------------


def wilds_rows(**more: str) -> list[dict[str, str]]:
    times = ["2015-06-01T00:00:00Z", "2015-07-01T00:00:00Z", "2010-01-01T00:00:00Z", "2016-01-01T00:00:00Z"]
    return [
        {"split": split, "category": category, "country_code": country, "timestamp": time, **more}
        for split, category, country, time in zip(
            ["val", "seq", "train", "test"],
            ["zoo", "zoo", "dam", "dam"],
            ["FRA", "FRA", "FRA", "ATA"],
            times,
            strict=True,
        )
    ]


def test_wilds_needs_the_zone_or_another_client(tmp_path: Path) -> None:
    root = fmow_wilds(tmp_path / "w", wilds_rows())
    with pytest.raises(InputError, match=r"rgb_metadata\.csv: has no column 'utm'; give --client region"):
        build("fmow", root, tmp_path / "out")
    folder = opened("fmow", root, tmp_path / "out", client="region", test_share=0)
    assert [(client, label) for client, label, _, _ in rows(folder)] == [("Europe", "zoo"), ("Other", "dam")]
    assert pixels(folder) == [[0, 0, 0], [48, 0, 0]]  # rows 0 and 3: row 1 is seq, row 2 too early


def test_wilds_with_a_column_of_zones_has_a_client_per_zone(tmp_path: Path) -> None:
    root = fmow_wilds(tmp_path / "w", wilds_rows(utm="32T"))
    folder = opened("fmow", root, tmp_path / "out", test_share=0, since="2000-01-01")
    assert rows(folder)[0] == ("32T", "dam", 14_610 * DAY, "train")
    assert len(folder.rows) == 3


def test_a_table_separated_by_semicolons_is_named_as_such(tmp_path: Path) -> None:
    root = fmow_wilds(tmp_path / "w", wilds_rows())
    path = root / "fmow_v1.1" / "rgb_metadata.csv"
    path.write_text(path.read_text().replace(",", ";"))
    with pytest.raises(
        InputError, match=r"rgb_metadata\.csv: its columns are separated by semicolons; they must"
    ):
        build("fmow", root, tmp_path / "out", client="region")


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("timestamp", "soon", r"rgb_metadata\.csv, row 3: timestamp: 'soon' is not a time"),
        ("category", "castle", r"rgb_metadata\.csv, row 3: category 'castle': is none of the 62 of fMoW"),
        ("category", "", r"rgb_metadata\.csv, row 3: category is missing"),
    ],
)
def test_a_bad_row_of_the_table_is_one_line_with_its_number(
    tmp_path: Path, key: str, value: str, problem: str
) -> None:
    table = wilds_rows()
    table[2][key] = value
    with pytest.raises(InputError, match=problem):
        build("fmow", fmow_wilds(tmp_path / "w", table), tmp_path / "out", client="country")


def test_a_missing_image_is_named_with_its_row(tmp_path: Path) -> None:
    root = fmow_wilds(tmp_path / "w", wilds_rows())
    (root / "fmow_v1.1" / "images" / "rgb_img_3.png").unlink()
    with pytest.raises(
        InputError, match=r"rgb_img_3\.png \(rgb_metadata\.csv, row 4\): no such file; --skip-bad"
    ):
        build("fmow", root, tmp_path / "out", client="region")


def test_a_folder_of_neither_layout_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has neither fmow_v1\.1/rgb_metadata\.csv nor"):
        build("fmow", tmp_path, tmp_path / "out")
    with pytest.raises(InputError, match="no such folder"):
        build("fmow", tmp_path / "nowhere", tmp_path / "out")
