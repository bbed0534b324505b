from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from emulator.errors import InputError
from tests.traces.building.layouts import BLUE, DAY, GREEN, RED, build, draw, opened, pixels, rows, write_csv
from traces.building.remarks import PIXELS_STANDARDISED


def drawn(root: Path) -> Path:
    draw(root / "bob" / "cat" / "cam_19700103.png", RED)
    draw(root / "bob" / "cat" / "cam_19700102.png", GREEN)
    draw(root / "ann" / "dog" / "cam_19700101.PNG", BLUE)
    (root / "bob" / ".DS_Store").write_bytes(b"x")
    (root / "bob" / "notes.txt").write_text("x")
    return root


def test_folders_are_client_and_class_and_without_times_all_is_owned_from_the_start(tmp_path: Path) -> None:
    root = drawn(tmp_path / "f")
    built = build("folder", root, tmp_path / "out", test_share=0)
    assert built.notes == (
        "1 file(s) are ignored, as their suffix is not that of an image",
        PIXELS_STANDARDISED,
    )
    folder = opened("folder", root, tmp_path / "again", test_share=0)
    # The origin is part of the bytes of a trace: another sentence here would change those of every folder.
    assert folder.facts.origin == (
        "driftscale traces build, A folder of images, CLIENT/CLASS/IMAGE; with a partition, CLASS/IMAGE."
    )
    assert rows(folder) == [
        ("ann", "dog", 0, "train"),
        ("bob", "cat", 0, "train"),
        ("bob", "cat", 0, "train"),
    ]
    assert pixels(folder) == [list(BLUE), list(GREEN), list(RED)]  # of one time by name


def test_times_are_part_of_the_names_or_rows_of_a_table(tmp_path: Path) -> None:
    root = drawn(tmp_path / "f")
    wanted = [("ann", "dog", 0, "train"), ("bob", "cat", DAY, "train"), ("bob", "cat", 2 * DAY, "train")]
    named = opened("folder", root, tmp_path / "a", test_share=0, time_pattern="cam_%Y%m%d")
    assert rows(named) == wanted
    starred = opened("folder", root, tmp_path / "c", test_share=0, time_pattern="*_%Y%m%d")
    assert rows(starred) == wanted
    table = write_csv(
        tmp_path / "times.csv",
        "time,path",
        [
            ("1970-01-03", "bob/cat/cam_19700103.png"),
            ("1970-01-01T00:00", "ann/dog/cam_19700101.PNG"),
            ("1970-01-02", "bob/cat/cam_19700102.png"),
        ],
    )
    listed = opened("folder", root, tmp_path / "b", test_share=0, times=table)
    assert rows(listed) == wanted
    assert pixels(listed) == [list(BLUE), list(GREEN), list(RED)]


def test_classes_without_clients_are_divided(tmp_path: Path) -> None:
    for number in range(8):
        draw(tmp_path / "f" / ("cat", "dog")[number % 2] / f"{number}.png", RED)
    folder = opened("folder", tmp_path / "f", tmp_path / "out", partition="iid", clients=2, test_share=0)
    assert [client for client, _, _, _ in rows(folder)] == ["0"] * 4 + ["1"] * 4
    assert sorted(label for _, label, _, _ in rows(folder)) == ["cat"] * 4 + ["dog"] * 4
    with pytest.raises(
        InputError, match=r"cat/0\.png: is not in a folder CLIENT/CLASS/IMAGE; folders CLASS/IMAGE"
    ):
        build("folder", tmp_path / "f", tmp_path / "more")


def test_the_client_of_an_image_is_where_the_pattern_says(tmp_path: Path) -> None:
    """At any depth; the class stays the folder."""
    root = tmp_path / "f"
    for number, name in enumerate(["cat/bob_1.png", "cat/ann_2.png", "dog/bob_1.png"]):
        draw(root / "2024" / name, (RED, GREEN, BLUE)[number])
    draw(root / "2024" / "cat" / "cover.png", RED)
    options = {"client_from": "*/*/{client}_*.png", "test_share": 0}
    built = build("folder", root, tmp_path / "out", **options)
    assert built.notes[0] == (
        "1 image does not match --client-from */*/{client}_*.png: left out; the first: 2024/cat/cover.png"
    )
    folder = opened("folder", root, tmp_path / "again", **options)
    assert rows(folder) == [
        ("ann", "cat", 0, "train"),
        ("bob", "cat", 0, "train"),
        ("bob", "dog", 0, "train"),
    ]
    assert pixels(folder) == [list(GREEN), list(RED), list(BLUE)]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (
            {"client_from": "{client}/*.gif"},
            "f: no image in it matches --client-from {client}/*.gif; one that",
        ),
        (
            {"client_from": "{client}/{client}/*.png"},
            "f: bob/cat/1.png: --client-from {client}/{client}/*.png",
        ),
        ({"client_from": "{client}.png"}, "f/x.png: is in no folder below the root, whose name would be its"),
        ({"client_from": "{client}.png", "partition": "iid"}, "--client-from and --partition exclude each"),
        ({"client_from": "{client}.png", "clients": 2}, "--client-from and --partition exclude each other"),
    ],
)
def test_a_pattern_that_does_not_fit_the_folder_is_refused(
    tmp_path: Path, options: dict[str, Any], problem: str
) -> None:
    draw(tmp_path / "f" / "bob" / "cat" / "1.png", RED)
    draw(tmp_path / "f" / "x.png", RED)
    with pytest.raises(InputError) as error:
        build("folder", tmp_path / "f", tmp_path / "out", **options)
    assert str(error.value).replace(f"{tmp_path}/", "").startswith(problem)


def test_classes_that_differ_by_spaces_bad_images_and_clients_without_tests_are_remarked(
    tmp_path: Path,
) -> None:
    root = drawn(tmp_path / "f")
    for number in range(10):
        draw(root / "bob" / "cat " / f"{number}.png", RED)
    for number in range(3):
        (root / "ann" / "dog" / f"{number}.png").write_bytes(b"x" * number)
    built = build("folder", root, tmp_path / "out", skip_bad=3)
    no_image = "is not an image, or damaged (known are JPEG, PNG, BMP, GIF, TIFF, WEBP, PPM)"
    assert built.notes == (
        "1 file(s) are ignored, as their suffix is not that of an image",
        "classes 'cat' and 'cat ' are two, and differ by spaces around their names only",
        f"3 bad images were left out; 3 of them: {no_image}; the first: {root}/ann/dog/0.png: {no_image}",
        "1 of 2 clients has no test samples, and is not scored: raise --test-share (0.2)",
        PIXELS_STANDARDISED,
    )


def test_folders_that_are_links_are_followed_unless_they_lead_back(tmp_path: Path) -> None:
    draw(tmp_path / "elsewhere" / "cat" / "x.png", RED)
    draw(tmp_path / "f" / "ann" / "cat" / "x.png", BLUE)
    (tmp_path / "f" / "bob").symlink_to(tmp_path / "elsewhere")
    assert build("folder", tmp_path / "f", tmp_path / "out").clients == 2
    (tmp_path / "f" / "cid").symlink_to(tmp_path / "f")
    with pytest.raises(InputError, match="cid: is a link to a folder that it is in itself"):
        build("folder", tmp_path / "f", tmp_path / "more")


def test_a_pattern_that_is_none_is_one_line(tmp_path: Path) -> None:
    root = drawn(tmp_path / "f")
    with pytest.raises(InputError, match="is not written as --time-pattern cam_%Y%Y says"):
        build("folder", root, tmp_path / "out", time_pattern="cam_%Y%Y")
    with pytest.raises(InputError, match=r"^--time-pattern \*_%s: %s does not go with \*; these do: %Y %y"):
        build("folder", root, tmp_path / "out", time_pattern="*_%s")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("1970-01-01", "x/y.png"), r"row 4: path 'x/y\.png': no such image below"),
        (("1970-01-01", "ann/dog/cam_19700101.PNG"), r"row 4: path '.*PNG' is also in row 2"),
        (("1970-01-01T00:00:00Z", "x"), r"row 4: time: .* has a time zone, unlike those before it"),
        (
            ("yesterday", "x"),
            r"row 4: time: 'yesterday' is not a time; it must be written as 2015-01-31T12:00:00Z",
        ),
        (("0000-12-31", "x"), r"row 4: time: '0000-12-31' is out of range: years 1 to 9999 are read"),
        (("", "x"), r"row 4: time is missing"),
    ],
)
def test_a_bad_row_of_times_is_one_line(tmp_path: Path, change: tuple[str, str], problem: str) -> None:
    root = drawn(tmp_path / "f")
    lines = [
        ("1970-01-03", "bob/cat/cam_19700103.png"),
        ("1970-01-01", "ann/dog/cam_19700101.PNG"),
        ("1970-01-02", "bob/cat/cam_19700102.png"),
        change,
    ]
    table = write_csv(tmp_path / "times.csv", "time,path", lines)
    with pytest.raises(InputError, match=problem):
        build("folder", root, tmp_path / "out", times=table)
    write_csv(tmp_path / "times.csv", "time,path", lines[:2])
    with pytest.raises(InputError, match=r"times\.csv: has no row with the path 'bob/cat/cam_19700102\.png'"):
        build("folder", root, tmp_path / "out", times=table)


def test_names_without_the_pattern_and_both_kinds_of_times_are_refused(tmp_path: Path) -> None:
    root = drawn(tmp_path / "f")
    with pytest.raises(
        InputError, match=r"PNG: its name without suffix is not written as --time-pattern %Y says"
    ):
        build("folder", root, tmp_path / "out", time_pattern="%Y")
    with pytest.raises(InputError, match="--times and --time-pattern: give one of them"):
        build("folder", root, tmp_path / "out", time_pattern="%Y", times=tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"has no image \(\.jpg"):
        build("folder", (tmp_path / "empty"), tmp_path / "out")


@pytest.mark.parametrize("name", [" ", "a\x1b[2J", os.fsdecode(b"caf\xe9")])
@pytest.mark.parametrize("what", ["client", "class"])
def test_a_name_that_cannot_be_written_is_refused_before_anything_is_decoded(
    tmp_path: Path, what: str, name: str
) -> None:
    folders = (name, "cat") if what == "client" else ("bob", name)
    draw(tmp_path / "f" / folders[0] / folders[1] / "x.png", RED)
    with pytest.raises(InputError, match=rf"^{what} .* is no (name|text)"):
        build("folder", tmp_path / "f", tmp_path / "out")
    assert not list(tmp_path.glob("out*"))


def test_photographs_are_upright_on_request(tmp_path: Path) -> None:
    path = tmp_path / "f" / "ann" / "cat" / "x.png"
    path.parent.mkdir(parents=True)
    photograph = Image.new("RGB", (8, 8), RED)
    photograph.paste(BLUE, (0, 4, 8, 8))
    exif = Image.Exif()
    exif[0x0112] = 3  # upside down
    photograph.save(path, exif=exif)
    stored = opened("folder", tmp_path / "f", tmp_path / "stored", size=8).features.values
    upright = opened("folder", tmp_path / "f", tmp_path / "upright", size=8, upright=True).features.values
    assert stored[0, :, 0, 0].tolist() == list(RED)
    assert np.array_equal(upright, stored[..., ::-1, ::-1])
