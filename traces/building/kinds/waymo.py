"""Waymo Open v2: objects on the street, cut out of the images of five cameras of a car."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
from pydantic import Field

from emulator.arrays import Floats, Ints
from emulator.errors import DataFileError, InputError
from emulator.numbers import Count
from emulator.plugins import Settings
from emulator.storage.parquet_columns import ParquetColumns
from emulator.storage.reading.tally import Tally
from traces.building.images import ImageBuilder
from traces.building.kinds.intervals import IntervalSettings
from traces.building.parquet_images import ParquetImages
from traces.building.rows import Rows, codes

CLASSES = ("vehicle", "pedestrian", "sign", "cyclist")
IMAGES, BOXES = "camera_image", "camera_box"
SEGMENT, TIME, CAMERA = "key.segment_context_name", "key.frame_timestamp_micros", "key.camera_name"
IMAGE, TYPE = "[CameraImageComponent].image", "[CameraBoxComponent].type"
CENTRE, SIZE = "[CameraBoxComponent].box.center", "[CameraBoxComponent].box.size"

MOST_CAMERAS = 16


class WaymoSettings(IntervalSettings):
    """The same with Fielding's values."""

    owned_steps: Count = Field(5, description="intervals that clients have from the start")


class Waymo(ImageBuilder):
    """Waymo Open v2 (Parquet), as Fielding plays it: a client per segment and camera, ten intervals.

    Objects are the boxes of camera_box, cut out of the images of camera_image. The frames of a client in
    which it has objects are cut into ten intervals by their times, of which five are owned from the start.
    All splits that are there are read: their segments differ.
    """

    needs = "SPLIT/camera_image/SEGMENT.parquet and SPLIT/camera_box/SEGMENT.parquet"
    licence = "Waymo Open Dataset: its own licence, for non-commercial use"
    play: ClassVar[Mapping[str, object]] = {"rounds_per_step": 20, "retain_rounds": 100}

    Settings: ClassVar[type[Settings]] = WaymoSettings
    settings: WaymoSettings

    def list_samples(self, root: Path) -> Rows:
        files = sorted(root.glob(f"*/{BOXES}/*.parquet")) or sorted(root.glob(f"{BOXES}/*.parquet"))
        if not files:
            raise InputError(f"--root {root}: has no SPLIT/{BOXES}/SEGMENT.parquet")
        names: list[str] = []
        rows: list[int] = []
        parts: list[_Objects] = []
        tally = self.tally()
        for path in files:
            source = path.parents[1] / IMAGES / path.name
            keys = _Keys(source, tally)
            parts.append(self._objects(path, keys, sum(rows), tally))
            names.append(str(source.relative_to(root)))
            rows.append(len(keys.key))
        rank, clients = codes([name for part in parts for name in part.clients])
        first = np.cumsum([0, *(len(part.clients) for part in parts)])
        client = np.concatenate(
            [rank[part.client + start] for part, start in zip(parts, first, strict=False)]
        )
        label, image, box, moment = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("label", "image", "box", "moment")
        )
        sides = box[:, 2:] - box[:, :2]
        large = np.flatnonzero((sides > self.settings.min_box).all(axis=1))
        client, label, image, box, moment = (column[large] for column in (client, label, image, box, moment))
        listing = Rows(
            client=client,
            clients=clients,
            label=label,
            classes=CLASSES,
            when="step",
            at=self.settings.steps(*_frames(client, moment)),
            value=image,
            pixels=ParquetImages(root, names, np.array(rows), IMAGE),
            box=box,
        )
        return listing.take(np.arange(len(listing)))  # without clients whose objects are too small

    def _objects(self, path: Path, keys: _Keys, first_image: int, tally: Tally) -> _Objects:
        """The objects in one file of camera_box; its images are numbered from `first_image` on."""
        table = ParquetColumns(path)
        tally.add_rows(path, table.num_rows, 1)
        segment, names = table.texts(SEGMENT)
        tally.add_names(path, names)
        time = table.integers(TIME, 0, 2**53).astype(np.int64)
        camera = table.integers(CAMERA, 0, MOST_CAMERAS - 1)
        label = table.integers(TYPE, 1, len(CLASSES)).astype(np.int64) - 1
        centre, size = (
            np.column_stack([table.numbers(f"{what}.{axis}") for axis in "xy"]) for what in (CENTRE, SIZE)
        )
        known, client = np.unique(segment.astype(np.int64) * MOST_CAMERAS + camera, return_inverse=True)
        return _Objects(
            clients=[f"{names[k // MOST_CAMERAS]} camera {k % MOST_CAMERAS}" for k in known.tolist()],
            client=client,
            label=label,
            image=keys.find(path, time * MOST_CAMERAS + camera) + first_image,
            box=np.hstack([centre - size / 2, centre + size / 2]),
            moment=time,
        )


class _Objects(NamedTuple):
    """Objects as columns (n,): the number of each one's client, its class, image, box (n, 4) and time."""

    clients: list[str]
    client: Ints
    label: Ints
    image: Ints
    box: Floats
    moment: Ints


class _Keys:
    """The frames of a file of camera_image by time and camera."""

    def __init__(self, path: Path, tally: Tally) -> None:
        table = ParquetColumns(path)
        tally.add_rows(path, table.num_rows, 1)
        table.kind(IMAGE)  # refuses a missing one
        self.path = path
        self.key = table.integers(TIME, 0, 2**53).astype(np.int64) * MOST_CAMERAS + table.integers(
            CAMERA, 0, MOST_CAMERAS - 1
        )
        self._order = np.argsort(self.key, kind="stable")
        self._sorted = self.key[self._order]
        if (np.diff(self._sorted) == 0).any():
            row = int(self._order[1:][np.diff(self._sorted) == 0][0])
            raise DataFileError(path, f"{TIME} and {CAMERA}: occur twice", row + 1)

    def find(self, path: Path, wanted: Ints) -> Ints:
        """(n,) the row of each frame; DataFileError about `path` if this file does not have it."""
        place = np.minimum(np.searchsorted(self._sorted, wanted), len(self._sorted) - 1)
        missing = self._sorted[place] != wanted
        if missing.any():
            row = int(missing.argmax())
            time, camera = divmod(int(wanted[row]), MOST_CAMERAS)
            raise DataFileError(
                path, f"{TIME} = {time}, {CAMERA} = {camera}: {self.path} has no such frame", row + 1
            )
        found: Ints = self._order[place]
        return found


def _frames(client: Ints, moment: Ints) -> tuple[Ints, Ints]:
    """For each object (n,) the rank of its frame among those of its client, and their number.

    >>> _frames(np.array([0, 0, 0, 1]), np.array([7, 9, 7, 3]))
    (array([0, 1, 0, 0]), array([2, 2, 2, 1]))
    """
    frames, of_row = np.unique(np.column_stack([client, moment]), axis=0, return_inverse=True)
    sizes = np.bincount(frames[:, 0])
    first = np.cumsum(sizes) - sizes
    rank = np.arange(len(frames)) - first[frames[:, 0]]
    return rank[of_row.ravel()], sizes[client]
