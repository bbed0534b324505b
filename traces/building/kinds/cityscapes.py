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
from emulator.storage.reading.tally import Tally
from traces.building.images import EncodedImageBuilder
from traces.building.kinds.documents import field, read_document
from traces.building.kinds.objects import MinBox, ObjectSettings, OwnedIntervals, ranks
from traces.building.listing import Listing, codes
from traces.building.pixels import ImageFiles
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


class Objects(NamedTuple):
    """Objects as columns: the file of each (a name below the root), its class and its box (n, 4)."""

    names: list[str]
    label: Ints
    box: Floats


class Cityscapes(EncodedImageBuilder):
    """Cityscapes, as Fielding plays it: objects of six classes, a client per 100 frames, ten intervals.

    Objects are listed by `<city>_fine.csv` where there are such files, else they are the bounding boxes of
    the polygons in gtFine. The frames of a city, in the order of sequence and frame, are cut into clients of
    100 frames with objects, the last of which may have fewer; a client's frames are cut into ten intervals,
    of which four are owned from the start. Polygons without a class of ours, such as groups, are left out.
    """

    needs = "leftImg8bit/SPLIT/CITY/*.png, and gtFine/SPLIT/CITY/*_polygons.json or CITY_fine.csv"
    licence = "Cityscapes: its own licence, for research"
    play: ClassVar[Mapping[str, object]] = {"rounds_per_step": 30, "retain_rounds": 100}

    Settings: ClassVar[type[Settings]] = CityscapesSettings
    settings: CityscapesSettings

    def list_samples(self, root: Path) -> Listing:
        lists = sorted(root.glob(LISTS)) or sorted(root.glob(f"{POLYGONS}/{LISTS}"))
        if not lists and not (root / POLYGONS).is_dir():
            raise InputError(f"--root {root}: has neither a folder {POLYGONS} nor files {LISTS}")
        objects = _listed(root, lists, self.tally()) if lists else _outlined(root, self.tally())
        large = self.settings.large(objects.box)
        of_object, names = codes(objects.names)
        frames = [_frame(name) for name in names]
        of_name, cities = codes([city for city, _ in frames])
        moment = np.array([moment for _, moment in frames])
        image, most = of_object[large], self.settings.frames_per_client
        city = of_name[image]
        rank, size = ranks(city, moment[image], image)
        part = rank // most
        client, clients = codes(
            [f"{cities[k]}-{number:03d}" for k, number in zip(city.tolist(), part.tolist(), strict=True)]
        )
        note = (
            f"{len(large):,} of {len(of_object):,} objects are wider and higher than "
            f"{self.settings.min_box:g} pixels"
        )
        return Listing(
            client=client,
            clients=clients,
            label=objects.label[large],
            classes=CLASSES,
            when="step",
            at=self.settings.steps(rank % most, np.minimum(most, size - part * most)),
            image=image,
            pixels=ImageFiles(root, names),
            box=objects.box[large],
            notes=(note,),
        )


def _frame(name: str) -> tuple[str, int]:
    """The city of a frame, and its place among the frames of all sequences of that city."""
    match = FRAME.fullmatch(Path(name).name)
    if match is None:
        raise DataFileError(name, "is not named CITY_SEQUENCE_FRAME_leftImg8bit.png, with six digits each")
    return match["city"], int(match["sequence"] + match["frame"])


def _listed(root: Path, lists: list[Path], tally: Tally) -> Objects:
    """The objects of files `<city>_fine.csv`; their classes are numbers or names."""
    number = {str(key): place for place, name in enumerate(CLASSES) for key in (place, name)}
    parts: list[Objects] = []
    for path in lists:
        table = TextColumns(path, ("imgpath", "class", "x0", "y0", "x1", "y1"), tally)
        name, file = (np.array(table.texts(column), dtype=object) for column in ("class", "imgpath"))
        label = np.array([number.get(text, -1) for text in name])
        box = np.column_stack([table.numbers(key) for key in ("x0", "y0", "x1", "y1")])
        cells = Cells(
            label=label, name=name, classes=CLASSES, column="imgpath", file=file, folder=root, box=box
        )
        refuse(OBJECTS, cells, path, table.num_rows)
        names = [text if text.startswith(f"{IMAGES}/") else f"{IMAGES}/{text}" for text in file]
        parts.append(Objects(names, label, box))
    return Objects(
        [name for part in parts for name in part.names],
        np.concatenate([part.label for part in parts]),
        np.concatenate([part.box for part in parts]),
    )


def _outlined(root: Path, tally: Tally) -> Objects:
    """The objects of the polygons in gtFine, by their bounding boxes."""
    files = sorted((root / POLYGONS).glob("*/*/*_gtFine_polygons.json"))
    if not files:
        raise InputError(f"--root {root}: has no {POLYGONS}/SPLIT/CITY/*_gtFine_polygons.json")
    names: list[str] = []
    labels: list[int] = []
    boxes: list[Floats] = []
    for path in files:
        frame = path.name.replace("_gtFine_polygons.json", "_leftImg8bit.png")
        items = field(path, read_document(path, MOST_JSON_BYTES), "objects", list, may_be_empty=True)
        tally.add_rows(path, len(items), len(Objects._fields))
        for number, item in enumerate(items):
            label = field(path, item, "label", str, f"objects.{number}.", may_be_empty=True)
            if label in CLASSES:
                names.append(f"{IMAGES}/{path.parts[-3]}/{path.parts[-2]}/{frame}")
                labels.append(CLASSES.index(label))
                boxes.append(_bounds(path, number, item))
    return Objects(names, np.array(labels, np.int64), np.array(boxes, np.float64).reshape(-1, 4))


def _bounds(path: Path, number: int, item: Mapping[str, Any]) -> Floats:
    """(4,) the bounding box of a polygon; DataFileError if it has none."""
    try:
        corners = np.array(item["polygon"], dtype=np.float64)
        if corners.shape[1:] != (2,) or len(corners) == 0 or not np.isfinite(corners).all():
            raise ValueError("no points")
    except (KeyError, TypeError, ValueError) as error:
        raise DataFileError(path, f"objects.{number}.polygon: must be a list of points") from error
    return np.concatenate([corners.min(axis=0), corners.max(axis=0)])
