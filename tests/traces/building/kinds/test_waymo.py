from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from emulator.errors import InputError
from tests.traces.building.layouts import RED, build, colour, opened, pixels, rows, waymo


def test_a_client_is_a_segment_and_camera_and_frames_arrive_in_ten_intervals(tmp_path: Path) -> None:
    folder = opened("waymo", waymo(tmp_path / "w"), tmp_path / "out", test_share=0, size=4)
    wanted = []
    for camera in (1, 2):
        for frame in range(10):
            wanted.append((f"s1 camera {camera}", "vehicle", frame - 4, "train"))
            if frame % 2 == 0:
                wanted.append((f"s1 camera {camera}", "pedestrian", frame - 4, "train"))
    assert rows(folder) == wanted
    assert pixels(folder) == [
        list(RED if label == "vehicle" else colour(at + 4 + 16 * int(client[-1])))
        for client, label, at, _ in wanted
    ]
    assert folder.rows.classes == ("vehicle", "pedestrian", "sign", "cyclist")


def test_all_splits_are_read_and_small_boxes_can_be_left_out(tmp_path: Path) -> None:
    root = waymo(tmp_path / "w", frames=2)
    waymo(root, frames=2, split="validation", segment="s2")
    folder = opened("waymo", root, tmp_path / "out", test_share=0, size=4)
    assert folder.rows.clients == ("s1 camera 1", "s1 camera 2", "s2 camera 1", "s2 camera 2")
    assert len(folder.rows) == 12
    with pytest.raises(InputError, match="no samples that fit the options"):
        build("waymo", root, tmp_path / "none", min_box=6)  # boxes are 8 x 6


@pytest.mark.slow
def test_images_are_read_a_few_rows_at_a_time(tmp_path: Path) -> None:
    """Row groups of seven, of which the pieces that are read have at most as many rows."""
    root = waymo(tmp_path / "w", frames=30)
    one = build("waymo", root, tmp_path / "one", size=4)
    build("waymo", root, tmp_path / "two", workers=2, size=4)
    assert one.clients == 2
    for name in ("features.npy", "arrivals.parquet"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def change(root: Path, table: str, column: str, values: list[object]) -> None:
    path = next(root.glob(f"*/{table}/*.parquet"))
    content = pq.read_table(path).to_pydict()
    content[column][: len(values)] = values
    import pyarrow as pa

    pq.write_table(pa.table(content), path)


@pytest.mark.parametrize(
    ("table", "column", "value", "problem"),
    [
        ("camera_box", "[CameraBoxComponent].type", 5, r"type = 5: must be from 1 to 4"),
        ("camera_box", "[CameraBoxComponent].box.size.x", None, r"row 1: .*box\.size\.x is missing"),
        (
            "camera_box",
            "[CameraBoxComponent].box.size.x",
            float("nan"),
            r"row 1: .*x = nan: must be a finite",
        ),
        (
            "camera_box",
            "key.frame_timestamp_micros",
            7,
            r"row 1: .* = 7, .*camera_name = 1: .* has no such frame",
        ),
        ("camera_image", "key.camera_name", 2, r"key\.camera_name: occur twice"),
    ],
)
def test_a_bad_row_is_one_line_with_file_and_column(
    tmp_path: Path, table: str, column: str, value: object, problem: str
) -> None:
    root = waymo(tmp_path / "w", frames=2)
    change(root, table, column, [value])
    with pytest.raises(InputError, match=rf"{table}/s1\.parquet.*{problem}"):
        build("waymo", root, tmp_path / "out")


def test_a_missing_or_damaged_file_is_one_line(tmp_path: Path) -> None:
    root = waymo(tmp_path / "w", frames=2)
    image = next(root.glob("*/camera_image/*.parquet"))
    content = image.read_bytes()
    image.write_bytes(content[:-20])
    with pytest.raises(InputError, match=r"camera_image/s1\.parquet: cannot be read as parquet"):
        build("waymo", root, tmp_path / "out")
    image.unlink()
    with pytest.raises(InputError, match=r"camera_image/s1\.parquet: no such file"):
        build("waymo", root, tmp_path / "out")


def test_an_image_that_is_damaged_is_named_by_its_row(tmp_path: Path) -> None:
    root = waymo(tmp_path / "w", frames=3)
    change(root, "camera_image", "[CameraImageComponent].image", [b"", None])
    with pytest.raises(InputError, match=r"camera_image/s1\.parquet, row 1: is not an image, or damaged"):
        build("waymo", root, tmp_path / "out", size=4)
    # Rows 1 and 2 are the first frames of the cameras, with two objects each.
    built = build("waymo", root, tmp_path / "out", size=4, skip_bad=4)
    assert (built.left_out, built.train + built.test) == (4, 6)
