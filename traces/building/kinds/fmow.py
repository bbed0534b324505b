"""Functional Map of the World: satellite images with a time, a place and one of 62 classes.

Read in two layouts. The raw fMoW-rgb has a `.json` beside each image; WILDS v1.1 a table of all images.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from emulator.errors import DataFileError, InputError
from emulator.storage.reading.tally import Tally
from traces.building.images import EncodedImageSettings, ImageBuilder
from traces.building.kinds.documents import field, read_document
from traces.building.pixels import ImageFiles
from traces.building.rows import Rows, codes, samples_of
from traces.building.rules import FMOW_CLASSES, Cells, refuse
from traces.building.text_columns import TextColumns
from traces.building.times import parse_times, times_of
from traces.calendar import microseconds

# fmt: off
CLASSES = (
    "airport", "airport_hangar", "airport_terminal", "amusement_park", "aquaculture",
    "archaeological_site", "barn", "border_checkpoint", "burial_site", "car_dealership",
    "construction_site", "crop_field", "dam", "debris_or_rubble", "educational_institution",
    "electric_substation", "factory_or_powerplant", "fire_station", "flooded_road", "fountain",
    "gas_station", "golf_course", "ground_transportation_station", "helipad", "hospital",
    "impoverished_settlement", "interchange", "lake_or_pond", "lighthouse", "military_facility",
    "multi-unit_residential", "nuclear_powerplant", "office_building", "oil_or_gas_facility", "park",
    "parking_lot_or_garage", "place_of_worship", "police_station", "port", "prison", "race_track",
    "railway_bridge", "recreational_facility", "road_bridge", "runway", "shipyard", "shopping_mall",
    "single-unit_residential", "smokestack", "solar_farm", "space_facility", "stadium", "storage_tank",
    "surface_mine", "swimming_pool", "toll_booth", "tower", "tunnel_opening", "waste_disposal",
    "water_treatment_facility", "wind_farm", "zoo",
)
# fmt: on
NO_CLASS = "false_detection"
"""The folder of the raw layout whose images show none of the classes; they are left out."""

METADATA = "rgb_metadata.csv"
WILDS = "fmow_v1.1"
REGIONS = "country_code_mapping.csv"
NO_REGION = "Other"
"""The region of countries that the mapping does not have, as in WILDS."""

RAW_SPLITS = ("train", "val")

MOST_JSON_BYTES = 2**20

Client = Literal["utm", "region", "country"]


class FmowSettings(EncodedImageSettings):
    """Who the clients are, and since when."""

    client: Client | None = Field(
        None,
        description="a client per UTM zone (utm), region or country; without it utm, which WILDS' table "
        "has in some copies only",
    )
    since: date = Field(date(2015, 1, 1), description="earlier images are left out")
    crop: Literal["image", "box"] = Field(
        "image", description="the whole image, or its first bounding box (raw layout only)"
    )


class Fmow(ImageBuilder):
    """fMoW, as Fielding plays it: a client per UTM zone, images since 2015, whose times are written.

    The published split into train, val and test is not ours: test samples are held out of every client's
    images. WILDS' rows of the split `seq` are left out. Fielding does not say whether images were cropped to
    their boxes; by default they are not.

    >>> len(CLASSES)
    62
    """

    needs = (
        "fMoW-rgb ({train,val}/CLASS/CLASS_N/..._rgb.jpg with .json), or WILDS (fmow_v1.1/rgb_metadata.csv)"
    )
    licence = "fMoW: Functional Map of the World Challenge Public License"
    play: ClassVar[Mapping[str, object]] = {"step_width": 1, "rounds_per_step": 2, "retain_rounds": 100}

    Settings = FmowSettings
    settings: FmowSettings

    def list_samples(self, root: Path) -> Rows:
        for folder in (root, root / WILDS):
            if (folder / METADATA).is_file():
                return self._since(self._wilds(folder))
        if any((root / split).is_dir() for split in RAW_SPLITS):
            return self._since(self._raw(root))
        raise InputError(
            f"--root {root}: has neither {WILDS}/{METADATA} nor {METADATA} (WILDS v1.1) nor a folder "
            f"{' or '.join(RAW_SPLITS)} (raw fMoW-rgb)"
        )

    def _since(self, rows: Rows) -> Rows:
        since = self.settings.since
        early = rows.at < microseconds(since)
        note = f"{early.sum():,} of {len(early):,} images are from before {since}"
        return rows.take(np.flatnonzero(~early)).noting(note)

    # -- WILDS ----------------------------------------------------------------------------------------------

    def _wilds(self, folder: Path) -> Rows:
        path = folder / METADATA
        if self.settings.crop == "box":
            raise InputError("--crop box: WILDS has no bounding boxes; take raw fMoW-rgb, or leave it out")
        kind = self.settings.client or "utm"
        column = "utm" if kind == "utm" else "country_code"
        table = TextColumns(
            path, ("split", "category", "timestamp"), self.tally(), optional=("utm", "country_code")
        )
        if column not in table:
            raise InputError(
                f"{path}: has no column {column!r}; give --client "
                + ("region or country" if "country_code" in table else "utm")
                + (" (UTM zones are published with raw fMoW-rgb)" if column == "utm" else "")
            )
        used = np.array([split != "seq" for split in table.texts("split")])
        owners = table.texts(column)
        if kind == "region":
            regions = _regions(folder / REGIONS, self.tally())
            owners = [regions.get(country, NO_REGION) for country in owners]
        at = times_of(table, "timestamp")
        number = {name: place for place, name in enumerate(CLASSES)}
        category = table.texts("category")
        label = np.array([number.get(name, -1) for name in category])
        cells = Cells(label=np.where(used, label, 0), category=category, number=len(CLASSES))
        refuse(FMOW_CLASSES, cells, path, table.num_rows)
        names = [f"images/rgb_img_{row}.png" for row in range(table.num_rows)]
        pixels = ImageFiles(folder, names, lambda image: f"{METADATA}, row {image + 1}")
        rows = samples_of(pixels, codes(owners), (label, CLASSES), at=at)
        note = f"{(~used).sum():,} rows of the split seq are left out"
        return rows.take(np.flatnonzero(used)).noting(note)

    # -- raw ------------------------------------------------------------------------------------------------

    def _raw(self, root: Path) -> Rows:
        if self.settings.client == "region":
            raise InputError("--client region: is for WILDS, whose country_code_mapping.csv has the regions")
        names = sorted(
            str(path.relative_to(root))
            for split in RAW_SPLITS
            for path in (root / split).glob("*/*/*_rgb.jpg")
            if path.parts[-3] != NO_CLASS
        )
        if not names:
            raise InputError(f"--root {root}: has no {{train,val}}/CLASS/CLASS_N/CLASS_N_M_rgb.jpg")
        self.tally().add_rows(root, len(names), 1)
        clients, labels, times, boxes = zip(*(self._facts(root, name) for name in names), strict=True)
        at = parse_times(times, lambda k, why: DataFileError(_json(root, names[k]), f"timestamp: {why}"))
        box = np.array(boxes) if self.settings.crop == "box" else None
        return samples_of(
            ImageFiles(root, names), codes(clients), (np.array(labels), CLASSES), at=at, box=box
        )

    def _facts(self, root: Path, name: str) -> tuple[str, int, str, tuple[float, ...]]:
        """Client, class, time and box of an image, from its `.json`; DataFileError if that breaks a rule."""
        path, folder = _json(root, name), Path(name).parts[1]
        if not path.exists():
            raise DataFileError(path, "no such file, beside its image")
        document = read_document(path, MOST_JSON_BYTES)
        first, within = field(path, document, "bounding_boxes", list)[0], "bounding_boxes.0."
        label = field(path, first, "category", str, within)
        if label != folder:
            raise DataFileError(path, f"{within}category {label!r}: the image is in the folder {folder!r}")
        if label not in CLASSES:
            raise DataFileError(path, f"{within}category {label!r}: is none of the {len(CLASSES)} of fMoW")
        corners: tuple[float, ...] = ()
        if self.settings.crop == "box":
            box = field(path, first, "box", list, within)
            if len(box) != 4 or not all(isinstance(number, int | float) for number in box):
                raise DataFileError(path, f"{within}box = {box}: must be x, y, width, height")
            x, y, width, height = box
            corners = (x, y, x + width, y + height)
        key = "country_code" if self.settings.client == "country" else "utm"
        client, time = field(path, document, key, str), field(path, document, "timestamp", str)
        return client, CLASSES.index(label), time, corners


def _json(root: Path, name: str) -> Path:
    return (root / name).with_suffix(".json")


def _regions(path: Path, tally: Tally) -> dict[str, str]:
    """The region of each country by its three letters; countries without one are not in it."""
    table = TextColumns(path, ("alpha-3", "region"), tally)
    pairs = zip(table.texts("alpha-3"), table.texts("region", may_be_empty=True), strict=True)
    return {country: region for country, region in pairs if region}
