"""Cityscapes: objects on the street, cut out of the frames of drives through cities."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from pydantic import Field

from emulator.arrays import Floats, Ints
from emulator.errors import DataFileError, InputError
from emulator.numbers import Count
from emulator.plugins import Settings
from emulator.storage.bounded import json_document, read_text
from emulator.storage.reading.tally import Tally
from traces.building.images import ImageBuilder
from traces.building.kinds.intervals import BoxSide, IntervalSettings
from traces.building.pixels import ImageFiles, leads_out
from traces.building.rows import Rows, codes
from traces.building.text_columns import TextColumns

CLASSES = ("person", "car", "truck", "bus", "bicycle", "motorcycle")
FRAME = re.compile(r"(?P<city>[^/_]+)_(?P<sequence>\d{6})_(?P<frame>\d{6})_leftImg8bit\.png")
IMAGES, POLYGONS = "leftImg8bit", "gtFine"
LISTS = "*_fine.csv"

MOST_JSON_BYTES = 2**24


class CityscapesSettings(IntervalSettings):
    """The same with Fielding's values, and the frames of a client."""

    min_box: BoxSide = Field(50, description="leave out objects whose box is not wider and higher than that")
    owned_steps: Count = Field(4, description="intervals that clients have from the start")
    frames_per_client: Count = Field(100, description="consecutive frames of a city that make a client")


class Objects(NamedTuple):
    """Objects as columns: the file of each (a name below the root), its class and its box (n, 4)."""

    names: list[str]
    label: Ints
    box: Floats


class Cityscapes(ImageBuilder):
    """Cityscapes, as Fielding plays it: objects of six classes, a client per 100 frames, ten intervals.

    Objects are listed by `<city>_fine.csv` where there are such files, else they are the bounding boxes of
    the polygons in gtFine. The frames of a city, in the order of sequence and frame, are cut into clients of
    100 frames with objects, the last of which may have fewer; a client's frames are cut into ten intervals,
    of which four are owned from the start. Polygons without a class of ours, such as groups, are left out.

    >>> CityscapesSettings().steps(np.array([0, 39, 40, 99]), np.full(4, 100))
    array([-3,  0,  1,  6])
    """

    needs = "leftImg8bit/SPLIT/CITY/*.png, and gtFine/SPLIT/CITY/*_polygons.json or CITY_fine.csv"
    licence = "Cityscapes: its own licence, for research"
    play: ClassVar[Mapping[str, object]] = {"rounds_per_step": 30, "retain_rounds": 100}

    Settings: ClassVar[type[Settings]] = CityscapesSettings
    settings: CityscapesSettings

    def list_samples(self, root: Path) -> Rows:
        lists = sorted(root.glob(LISTS)) or sorted(root.glob(f"{POLYGONS}/{LISTS}"))
        if not lists and not (root / POLYGONS).is_dir():
            raise InputError(f"--root {root}: has neither a folder {POLYGONS} nor files {LISTS}")
        objects = _listed(root, lists, self.tally()) if lists else _outlined(root, self.tally())
        sides = objects.box[:, 2:] - objects.box[:, :2]
        large = np.flatnonzero((sides > self.settings.min_box).all(axis=1))
        image, names = codes(objects.names)
        frames = [_frame(name) for name in names]
        city, cities = codes([frame[0] for frame in frames])
        # Frames of a city in the order of sequence and frame, of those with an object that is large enough.
        has_objects = np.bincount(image[large], minlength=len(names)) > 0
        rank, size = np.zeros(len(names), np.int64), np.zeros(len(names), np.int64)
        part = np.zeros(len(names), np.int64)
        moment = np.array([frame[1] * 10**6 + frame[2] for frame in frames])
        for number in range(len(cities)):
            own = np.flatnonzero((city == number) & has_objects)
            own = own[np.argsort(moment[own], kind="stable")]
            place = np.arange(len(own))
            part[own], rank[own] = divmod(place, self.settings.frames_per_client)
            size[own] = np.minimum(
                self.settings.frames_per_client, len(own) - part[own] * self.settings.frames_per_client
            )
        client, clients = codes(
            [f"{cities[city[k]]}-{part[k]:03d}" for k in image[large].tolist()],
        )
        return Rows(
            client=client,
            clients=clients,
            label=objects.label[large],
            classes=CLASSES,
            when="step",
            at=self.settings.steps(rank[image[large]], size[image[large]]),
            value=image[large],
            pixels=ImageFiles(root, names),
            box=objects.box[large],
            notes=(
                f"{len(large):,} of {len(image):,} objects are wider and higher than "
                f"{self.settings.min_box:g} pixels",
            ),
        )


def _frame(name: str) -> tuple[str, int, int]:
    match = FRAME.fullmatch(Path(name).name)
    if match is None:
        raise DataFileError(name, "is not named CITY_SEQUENCE_FRAME_leftImg8bit.png, with six digits each")
    return match["city"], int(match["sequence"]), int(match["frame"])


def _listed(root: Path, lists: list[Path], tally: Tally) -> Objects:
    """The objects of files `<city>_fine.csv`; their classes are numbers or names."""
    number = {str(key): place for place, name in enumerate(CLASSES) for key in (place, name)}
    names: list[str] = []
    labels: list[int] = []
    boxes: list[Floats] = []
    for path in lists:
        table = TextColumns(path, ("imgpath", "class", "x0", "y0", "x1", "y1"), tally)
        for row, label in enumerate(table.texts("class"), start=1):
            if label not in number:
                raise DataFileError(
                    path,
                    f"class {label!r}: must be a number from 0 to {len(CLASSES) - 1}, or one of "
                    f"{', '.join(CLASSES)}",
                    row,
                )
            labels.append(number[label])
        for row, name in enumerate(table.texts("imgpath"), start=1):
            if leads_out(name):
                raise DataFileError(path, f"imgpath {name!r}: leads out of {root}", row)
            names.append(name if name.startswith(f"{IMAGES}/") else f"{IMAGES}/{name}")
        box = np.column_stack([table.numbers(key) for key in ("x0", "y0", "x1", "y1")])
        _refuse_empty(path, box)
        boxes.append(box)
    return Objects(names, np.array(labels, dtype=np.int64), np.concatenate(boxes))


def _refuse_empty(path: Path, box: Floats) -> None:
    empty = (box[:, 2:] <= box[:, :2]).any(axis=1)
    if empty.any():
        row = int(empty.argmax())
        raise DataFileError(path, f"x0,y0,x1,y1 = {box[row].tolist()}: the box is empty", row + 1)


def _outlined(root: Path, tally: Tally) -> Objects:
    """The objects of the polygons in gtFine, by their bounding boxes."""
    names: list[str] = []
    labels: list[int] = []
    boxes: list[tuple[float, float, float, float]] = []
    files = sorted((root / POLYGONS).glob("*/*/*_gtFine_polygons.json"))
    if not files:
        raise InputError(f"--root {root}: has no {POLYGONS}/SPLIT/CITY/*_gtFine_polygons.json")
    for path in files:
        name = f"{IMAGES}/{path.parts[-3]}/{path.parts[-2]}/" + path.name.replace(
            "_gtFine_polygons.json", "_leftImg8bit.png"
        )
        try:
            document = json_document(read_text(path, MOST_JSON_BYTES))
        except (OSError, ValueError) as error:
            raise DataFileError(path, f"cannot be read as JSON ({error})") from error
        objects = document.get("objects") if isinstance(document, dict) else None
        if not isinstance(objects, list):
            raise DataFileError(path, "objects: is missing or not a list")
        tally.add_rows(path, len(objects), len(Objects._fields))
        for number, item in enumerate(objects):
            label = item.get("label") if isinstance(item, dict) else None
            if not isinstance(label, str):
                raise DataFileError(path, f"objects.{number}.label: is missing or not a text")
            if label in CLASSES:
                names.append(name)
                labels.append(CLASSES.index(label))
                boxes.append(_bounds(path, number, item))
    return Objects(names, np.array(labels, dtype=np.int64), np.array(boxes, dtype=np.float64).reshape(-1, 4))


def _bounds(path: Path, number: int, item: Mapping[str, Any]) -> tuple[float, float, float, float]:
    """The bounding box of a polygon; DataFileError if it has none."""
    try:
        corners = np.array(item["polygon"], dtype=np.float64)
    except (KeyError, TypeError, ValueError) as error:
        raise DataFileError(path, f"objects.{number}.polygon: must be a list of points") from error
    if corners.ndim != 2 or corners.shape[1] != 2 or len(corners) == 0 or not np.isfinite(corners).all():
        raise DataFileError(path, f"objects.{number}.polygon: must be a list of points")
    (x0, y0), (x1, y1) = corners.min(axis=0).tolist(), corners.max(axis=0).tolist()
    return x0, y0, x1, y1
