"""Data sets in their published layouts, drawn small: every image has one colour."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from traces.building import BUILDERS, Built, Request, Watch
from traces.files import TraceFolder, open_folder

Colour = tuple[int, int, int]
RED, GREEN, BLUE = (255, 0, 0), (0, 255, 0), (0, 0, 255)


def colour(number: int) -> Colour:
    """A colour of its own for each number below 4,096; in a JPEG it is off by 3 at most."""
    return number % 16 * 16, number // 16 % 16 * 16, number // 256 % 16 * 16


def draw(path: Path, rgb: Colour, size: tuple[int, int] = (8, 8), mode: str = "RGB") -> Path:
    """Write an image of one colour, as the suffix of the path says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.new("RGB", size, rgb).convert(mode)
    image.save(path, **({"quality": 95} if path.suffix == ".jpg" else {}))
    return path


def write_csv(path: Path, header: str, rows: Sequence[Sequence[object]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


def build(
    kind: str, root: Path, out: Path, workers: int = 1, watch: Watch | None = None, **options: Any
) -> Built:
    """Build a data set with the settings `options`, as the command does."""
    builder = BUILDERS.find(kind)
    settings = builder.Settings.model_validate(options)
    return builder(settings).build(Request(root, out, workers=workers, watch=watch or Watch()))


def opened(kind: str, root: Path, out: Path, **options: Any) -> TraceFolder:
    """The trace folder of a data set, built and opened."""
    build(kind, root, out, **options)
    return open_folder(out)


def pixels(folder: TraceFolder) -> list[list[int]]:
    """The colour of every row's image, by its first pixel; all its pixels must have about that colour."""
    values = folder.features.values[folder.rows.sample]
    first = values.reshape(*values.shape[: 2 if values.ndim == 4 else 1], -1)
    assert (np.ptp(first.astype(int), axis=-1) <= 2).all()
    return first[..., 0].tolist()


def rows(folder: TraceFolder) -> list[tuple[str, str, int, str]]:
    """Client, class, time and split of every row, in the order of the file."""
    found = folder.rows
    assert found.split is not None
    return [
        (str(found.clients[client]), found.classes[label], int(at), ("train", "test")[split])
        for client, label, at, split in zip(found.client, found.label, found.at, found.split, strict=True)
    ]


# -- fMoW ---------------------------------------------------------------------------------------------------

DAY = 86_400_000_000


def fmow_raw(root: Path, images: Sequence[tuple[str, str, str, Colour]]) -> Path:
    """Raw fMoW-rgb: images with class, UTM zone, time and colour; of 20 x 8 pixels, with a box of 4 x 4."""
    for number, (category, utm, timestamp, rgb) in enumerate(images):
        name = f"{category}_{number}"
        image = draw(root / "train" / category / name / f"{name}_0_rgb.jpg", rgb, (20, 8))
        draw(image.with_name(f"{name}_0_msrgb.jpg"), rgb)
        facts = {
            "timestamp": timestamp,
            "utm": utm,
            "country_code": "FRA",
            "bounding_boxes": [{"category": category, "box": [2, 2, 4, 4]}],
        }
        image.with_suffix(".json").write_text(json.dumps(facts))
    return root


def fmow_wilds(root: Path, rows: Sequence[Mapping[str, str]]) -> Path:
    """WILDS v1.1: a table and images, whose colours are those of their rows."""
    folder = root / "fmow_v1.1"
    columns = list(rows[0])
    write_csv(
        folder / "rgb_metadata.csv", ",".join(columns), [[row[name] for name in columns] for row in rows]
    )
    write_csv(
        folder / "country_code_mapping.csv",
        "name,alpha-3,region",
        [("France", "FRA", "Europe"), ("X", "ATA", "")],
    )
    for number in range(len(rows)):
        draw(folder / "images" / f"rgb_img_{number}.png", colour(number))
    return root


# -- client mappings ----------------------------------------------------------------------------------------

MAPPING_HEADER = "client_id,sample_path,label_name,label_id"


def mapping(
    root: Path,
    samples: Sequence[tuple[object, str, object]],
    split: str = "train",
    *,
    folder: str | None = None,
    prefix: str = "",
) -> Path:
    """FedScale's layout: each sample has a client, a class and a number; image k has the colour k.

    Paths have the `prefix`, and are below `folder`: that of the split, as for Open Images, or "", as for
    FEMNIST, whose paths have the prefix "data/".
    """
    lines = []
    for number, (client, label_name, label_id) in enumerate(samples):
        name = f"{prefix}{number:04d}.png"
        draw(root / (split if folder is None else folder) / name, colour(number))
        lines.append((client, name, label_name, label_id))
    write_csv(root / "client_data_mapping" / f"{split}.csv", MAPPING_HEADER, lines)
    return root


# -- Waymo --------------------------------------------------------------------------------------------------


def waymo(root: Path, frames: int = 10, split: str = "training", segment: str = "s1") -> Path:
    """One segment of Waymo v2: two cameras, a frame a second, each 40 x 20 with two boxes.

    The left half of a frame is red and has a vehicle; the right half has the colour of the frame's number and
    a pedestrian, in every other frame.
    """
    images, boxes = [], []
    for frame in range(frames):
        for camera in (1, 2):
            key = {
                "key.segment_context_name": segment,
                "key.frame_timestamp_micros": 10**6 * (frame + 1),
                "key.camera_name": camera,
            }
            image = Image.new("RGB", (40, 20), RED)
            image.paste(colour(frame + 16 * camera), (20, 0, 40, 20))
            file = root / "frame.png"
            root.mkdir(parents=True, exist_ok=True)
            image.save(file)
            images.append({**key, "[CameraImageComponent].image": file.read_bytes()})
            for kind, x in ((1, 10.0), (2, 30.0)):
                if kind == 1 or frame % 2 == 0:
                    boxes.append(
                        {
                            **key,
                            "[CameraBoxComponent].box.center.x": x,
                            "[CameraBoxComponent].box.center.y": 10.0,
                            "[CameraBoxComponent].box.size.x": 8.0,
                            "[CameraBoxComponent].box.size.y": 6.0,
                            "[CameraBoxComponent].type": kind,
                        }
                    )
    file.unlink()
    for name, lines in (("camera_image", images), ("camera_box", boxes)):
        folder = root / split / name
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(lines), folder / f"{segment}.parquet", row_group_size=7)
    return root


# -- pixels -------------------------------------------------------------------------------------------------


def cifar10(root: Path, per_file: int = 4) -> Path:
    """CIFAR-10, binary: record k has the label k modulo 10, and planes of k, k + 1 and k + 2."""
    folder = root / "cifar-10-batches-bin"
    folder.mkdir(parents=True)
    number = 0
    for name in [*(f"data_batch_{batch}" for batch in range(1, 6)), "test_batch"]:
        content = b""
        for _ in range(per_file):
            planes = b"".join(bytes([number + plane]) * 1024 for plane in range(3))
            content += bytes([number % 10]) + planes
            number += 1
        (folder / f"{name}.bin").write_bytes(content)
    classes = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
    (folder / "batches.meta.txt").write_text("\n".join(classes) + "\n\n")
    return root


def write_idx(path: Path, array: np.ndarray) -> None:
    header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    content = header + array.astype(np.uint8).tobytes()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def idx(root: Path, prefix: str = "", suffix: str = "", train: int = 20, test: int = 8) -> Path:
    """Idx files of 4 x 6 pixels: image k has the label k modulo 2, and its first row is k + 100."""
    root.mkdir(parents=True, exist_ok=True)
    for split, first, number in (("train", 0, train), ("t10k" if not prefix else "test", train, test)):
        images = np.repeat(np.arange(first, first + number), 24).reshape(number, 4, 6)
        images[:, 0] += 100
        write_idx(root / f"{prefix}{split}-images-idx3-ubyte{suffix}", images)
        write_idx(root / f"{prefix}{split}-labels-idx1-ubyte{suffix}", np.arange(first, first + number) % 2)
    return root
