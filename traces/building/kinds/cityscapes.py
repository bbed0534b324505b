"""Cityscapes: objects on the street, cut out of the frames of drives through cities."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from emulator.arrays import Floats, Ints
from emulator.errors import DataFileError, InputError
from emulator.numbers import Count
from emulator.storage.reading.tally import Tally
from traces.building.images import ImageBuilder
from traces.building.kinds.documents import field, read_document
from traces.building.kinds.objects import MinBox, ObjectSettings, OwnedIntervals, ranks
from traces.building.pixels import ImageFiles
from traces.building.rows import Rows, codes, samples_of
from traces.building.rules import OBJECTS, Cells, refuse
from traces.building.text_columns import TextColumns

CLASSES = ("person", "car", "truck", "bus", "bicycle", "motorcycle")
FRAME = re.compile(r"(?P<city>[^/_]+)_(?P<sequence>\d{6})_(?P<frame>\d{6})_leftImg8bit\.png")
IMAGES, POLYGONS = "leftImg8bit", "gtFine"
LISTS = "*_fine.csv"

MOST_JSON_BYTES = 2**24


class CityscapesSettings(ObjectSettings):
    """The same with Fielding's values, and the frames of a client."""

    min_box: MinBox = 50
    owned_steps: OwnedIntervals = 4
    frames_per_client: Count = Field(100, description="consecutive frames of a city that make a client")


Objects = tuple[list[str], Ints, Floats]
"""Objects as columns: the file of each (a name below the root), its class and its box (n, 4)."""


class Cityscapes(ImageBuilder):
    """Cityscapes, as Fielding plays it: objects of six classes, a client per 100 frames, ten intervals.

    Objects are listed by `<city>_fine.csv` where there are such files, else they are the bounding boxes of
    the polygons in gtFine. The frames of a city, in the order of sequence and frame, are cut into clients of
    100 frames with objects, the last of which may have fewer; a client's frames are cut into ten intervals,
    of which four are owned from the start. Polygons without a class of ours, such as groups, are left out.
    """

    needs = "leftImg8bit/SPLIT/CITY/*.png, and gtFine/SPLIT/CITY/*_polygons.json or CITY_fine.csv"
    licence = "Cityscapes: its own licence, for research"
    play: ClassVar[Mapping[str, object]] = {"rounds_per_step": 30, "retain_rounds": 100}

    Settings = CityscapesSettings
    settings: CityscapesSettings

    def list_samples(self, root: Path) -> Rows:
        lists = sorted(root.glob(LISTS)) or sorted(root.glob(f"{POLYGONS}/{LISTS}"))
        if not lists and not (root / POLYGONS).is_dir():
            raise InputError(f"--root {root}: has neither a folder {POLYGONS} nor files {LISTS}")
        parts = _listed(root, lists, self.tally()) if lists else _outlined(root, self.tally())
        files, labels, boxes = zip(*parts, strict=True)
        image, names = codes([name for part in files for name in part])
        frames = [_frame(name) for name in names]
        city, cities = codes([city for city, _ in frames])
        moment = np.array([moment for _, moment in frames], np.int64)
        rows = samples_of(
            ImageFiles(root, names),
            client=(city[image], cities),
            label=(np.concatenate(labels), CLASSES),
            image=image,
            at=moment[image],
            box=np.concatenate(boxes),
        )
        large, most = self.settings.large(rows), self.settings.frames_per_client
        assert large.value is not None
        rank, size = ranks(large.client, large.at, large.value)
        part = rank // most
        owners = zip(large.client.tolist(), part.tolist(), strict=True)
        client, clients = codes([f"{large.clients[city]}-{number:03d}" for city, number in owners])
        large = self.settings.arriving(large, rank % most, np.minimum(most, size - part * most))
        return replace(large, client=client, clients=clients).noting(
            f"{len(large):,} of {len(rows):,} objects are wider and higher than "
            f"{self.settings.min_box:g} pixels"
        )


def _frame(name: str) -> tuple[str, int]:
    """The city of a frame, and its place among the frames of all sequences of that city."""
    match = FRAME.fullmatch(Path(name).name)
    if match is None:
        raise DataFileError(name, "is not named CITY_SEQUENCE_FRAME_leftImg8bit.png, with six digits each")
    return match["city"], int(match["sequence"] + match["frame"])


def _listed(root: Path, lists: list[Path], tally: Tally) -> Iterator[Objects]:
    """The objects of each file `<city>_fine.csv`; their classes are numbers or names."""
    number = {str(key): place for place, name in enumerate(CLASSES) for key in (place, name)}
    for path in lists:
        table = TextColumns(path, ("imgpath", "class", "x0", "y0", "x1", "y1"), tally)
        text, file = table.texts("class"), table.texts("imgpath")
        label = np.array([number.get(name, -1) for name in text])
        box = np.column_stack([table.numbers(key) for key in ("x0", "y0", "x1", "y1")])
        cells = Cells(label=label, text=text, last=len(CLASSES) - 1, names=", ".join(CLASSES))
        cells.column, cells.file, cells.folder = "imgpath", file, root
        cells.box, cells.corners = box, box.tolist()
        refuse(OBJECTS, cells, path, table.num_rows)
        yield [name if name.startswith(f"{IMAGES}/") else f"{IMAGES}/{name}" for name in file], label, box


def _outlined(root: Path, tally: Tally) -> Iterator[Objects]:
    """The objects of the polygons of each frame in gtFine, by their bounding boxes."""
    files = sorted((root / POLYGONS).glob("*/*/*_gtFine_polygons.json"))
    if not files:
        raise InputError(f"--root {root}: has no {POLYGONS}/SPLIT/CITY/*_gtFine_polygons.json")
    for path in files:
        frame = path.name.replace("_gtFine_polygons.json", "_leftImg8bit.png")
        items = field(path, read_document(path, MOST_JSON_BYTES), "objects", list, may_be_empty=True)
        tally.add_rows(path, len(items), 3)
        names = [
            field(path, item, "label", str, f"objects.{number}.", may_be_empty=True)
            for number, item in enumerate(items)
        ]
        ours = [number for number, name in enumerate(names) if name in CLASSES]
        yield (
            [f"{IMAGES}/{path.parts[-3]}/{path.parts[-2]}/{frame}"] * len(ours),
            np.array([CLASSES.index(names[number]) for number in ours], np.int64),
            np.array([_bounds(path, number, items[number]) for number in ours]).reshape(-1, 4),
        )


def _bounds(path: Path, number: int, item: Mapping[str, Any]) -> Floats:
    """(4,) the bounding box of a polygon; DataFileError if it has none."""
    try:
        corners = np.array(item["polygon"], dtype=np.float64)
        if corners.shape[1:] != (2,) or len(corners) == 0 or not np.isfinite(corners).all():
            raise ValueError("no points")
    except (KeyError, TypeError, ValueError) as error:
        raise DataFileError(path, f"objects.{number}.polygon: must be a list of points") from error
    return np.concatenate([corners.min(axis=0), corners.max(axis=0)])
