"""Waymo Open v2: objects on the street, cut out of the images of five cameras of a car."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import numpy as np

from emulator.arrays import Floats, Ints
from emulator.errors import InputError
from emulator.storage.parquet_columns import ParquetColumns
from emulator.storage.reading.tally import Tally
from traces.building.images import ImageBuilder
from traces.building.kinds.objects import ObjectSettings, OwnedIntervals, ranks
from traces.building.parquet_images import ParquetImages
from traces.building.rows import Rows, codes, samples_of
from traces.building.rules import FRAMES, FRAMES_ONCE, Cells, refuse

CLASSES = ("vehicle", "pedestrian", "sign", "cyclist")
IMAGES, BOXES = "camera_image", "camera_box"
SEGMENT, TIME, CAMERA = "key.segment_context_name", "key.frame_timestamp_micros", "key.camera_name"
IMAGE, TYPE = "[CameraImageComponent].image", "[CameraBoxComponent].type"
CENTRE, SIZE = "[CameraBoxComponent].box.center", "[CameraBoxComponent].box.size"

MOST_CAMERAS = 16


class WaymoSettings(ObjectSettings):
    """The same with Fielding's values."""

    owned_steps: OwnedIntervals = 5


class Waymo(ImageBuilder):
    """Waymo Open v2 (Parquet), as Fielding plays it: a client per segment and camera, ten intervals.

    Objects are the boxes of camera_box, cut out of the images of camera_image. The frames of a client in
    which it has objects are cut into ten intervals by their times, of which five are owned from the start.
    All splits that are there are read: their segments differ.
    """

    needs = "SPLIT/camera_image/SEGMENT.parquet and SPLIT/camera_box/SEGMENT.parquet"
    licence = "Waymo Open Dataset: its own licence, for non-commercial use"
    play: ClassVar[Mapping[str, object]] = {"rounds_per_step": 20, "retain_rounds": 100}

    Settings = WaymoSettings
    settings: WaymoSettings

    def list_samples(self, root: Path) -> Rows:
        files = sorted(root.glob(f"*/{BOXES}/*.parquet")) or sorted(root.glob(f"{BOXES}/*.parquet"))
        if not files:
            raise InputError(f"--root {root}: has no SPLIT/{BOXES}/SEGMENT.parquet")
        rows = self.settings.large(_listed(root, files, self.tally()))
        return self.settings.arriving(rows, *ranks(rows.client, rows.at))


def _listed(root: Path, files: list[Path], tally: Tally) -> Rows:
    """All objects of some files of camera_box, which arrive at the time of their frame."""
    names: list[str] = []
    rows: list[int] = []
    clients: list[str] = []
    parts: list[tuple[np.ndarray, ...]] = []
    for path in files:
        source = path.parents[1] / IMAGES / path.name
        frame = _frames(source, tally)
        known, client, image, *columns = _objects(path, source, frame, tally)
        parts.append((client + len(clients), image + sum(rows), *columns))
        clients += known
        names.append(str(source.relative_to(root)))
        rows.append(len(frame))
    client, image, label, box, time = map(np.concatenate, zip(*parts, strict=True))
    rank, distinct = codes(clients)
    pixels = ParquetImages(root, names, rows, IMAGE)
    return samples_of(pixels, (rank[client], distinct), (label, CLASSES), image=image, at=time, box=box)


def _frames(path: Path, tally: Tally) -> Ints:
    """(rows,) the frame of each image of a file of camera_image, as one number of time and camera."""
    table = ParquetColumns(path)
    tally.add_rows(path, table.num_rows, 1)
    table.kind(IMAGE)  # refuses a missing one
    time, camera = _moments(table)
    frame = time * MOST_CAMERAS + camera
    again = np.ones(len(frame), np.bool_)
    again[np.unique(frame, return_index=True)[1]] = False
    refuse(FRAMES_ONCE, Cells(again=again, keys=(TIME, CAMERA)), path, table.num_rows)
    return frame


def _objects(
    path: Path, source: Path, frame: Ints, tally: Tally
) -> tuple[list[str], Ints, Ints, Ints, Floats, Ints]:
    """The objects of a file of camera_box, whose images are those of `frame` (k,) in `source`.

    Returns:
        The clients, and (n,) each object's client, image, class, box (n, 4) and time.
    """
    table = ParquetColumns(path)
    tally.add_rows(path, table.num_rows, 1)
    segment, names = table.texts(SEGMENT)
    tally.add_names(path, names)
    time, camera = _moments(table)
    label = table.integers(TYPE, 1, len(CLASSES)).astype(np.int64) - 1
    centre, size = (
        np.column_stack([table.numbers(f"{what}.{axis}") for axis in "xy"]) for what in (CENTRE, SIZE)
    )
    known, client = np.unique(segment.astype(np.int64) * MOST_CAMERAS + camera, return_inverse=True)
    clients = [f"{names[k // MOST_CAMERAS]} camera {k % MOST_CAMERAS}" for k in known.tolist()]
    order, wanted = np.argsort(frame), time * MOST_CAMERAS + camera
    image = order[np.minimum(np.searchsorted(frame, wanted, sorter=order), len(frame) - 1)]
    cells = Cells(known=frame[image] == wanted, time=time, camera=camera, keys=(TIME, CAMERA), images=source)
    refuse(FRAMES, cells, path, table.num_rows)
    return clients, client, image, label, np.hstack([centre - size / 2, centre + size / 2]), time


def _moments(table: ParquetColumns) -> tuple[Ints, Ints]:
    """(rows,) the time and the camera of each row."""
    return table.integers(TIME, 0, 2**53).astype(np.int64), table.integers(CAMERA, 0, MOST_CAMERAS - 1)
