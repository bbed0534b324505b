"""Functional Map of the World: satellite images with a time, a place and one of 62 classes.

Read in two layouts. The raw fMoW-rgb has a `.json` beside each image; WILDS v1.1 a table of all images.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from emulator.arrays import Ints
from emulator.errors import DataFileError, InputError
from emulator.plugins import Settings
from emulator.storage.bounded import json_document, read_text
from emulator.storage.reading.tally import Tally
from traces.building.images import EncodedImageSettings, ImageBuilder
from traces.building.pixels import ImageFiles
from traces.building.rows import Rows, codes
from traces.building.text_columns import TextColumns
from traces.building.times import TimeError, parse_times
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

    Settings: ClassVar[type[Settings]] = FmowSettings
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

    def _since(self, listing: Rows) -> Rows:
        kept = np.flatnonzero(listing.at >= microseconds(self.settings.since))
        note = (
            f"{len(listing) - len(kept):,} of {len(listing):,} images are from before {self.settings.since}"
        )
        return listing.take(kept).noting(note)

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
        used = np.flatnonzero([split != "seq" for split in table.texts("split")])
        names = _taken(table.texts(column), used)
        if kind == "region":
            regions = _regions(folder / REGIONS, self.tally())
            names = [regions.get(name, NO_REGION) for name in names]
        client, clients = codes(names)
        try:
            at = parse_times(table.texts("timestamp"))
        except TimeError as error:
            raise DataFileError(path, f"timestamp: {error}", row=error.number + 1) from error
        labels = _taken(table.texts("category"), used)
        return Rows(
            client=client,
            clients=clients,
            label=_classes(
                labels,
                lambda row: DataFileError(
                    path,
                    f"category {labels[row]!r}: is none of the {len(CLASSES)} of fMoW",
                    row=int(used[row]) + 1,
                ),
            ),
            classes=CLASSES,
            when="time",
            at=at[used],
            value=used,
            pixels=ImageFiles(
                folder,
                [f"images/rgb_img_{row}.png" for row in range(table.num_rows)],
                lambda image: f"{METADATA}, row {image + 1}",
            ),
            notes=(f"{table.num_rows - len(used):,} rows of the split seq are left out",),
        )

    # -- raw ------------------------------------------------------------------------------------------------

    def _raw(self, root: Path) -> Rows:
        names = sorted(
            str(path.relative_to(root))
            for split in RAW_SPLITS
            for path in (root / split).glob("*/*/*_rgb.jpg")
            if path.parts[-3] != NO_CLASS
        )
        if not names:
            raise InputError(f"--root {root}: has no {{train,val}}/CLASS/CLASS_N/CLASS_N_M_rgb.jpg")
        self.tally().add_rows(root, len(names), 1)
        facts = [self._facts(root, name) for name in names]
        labels = [label for _, label, _, _ in facts]
        client, clients = codes([client for client, _, _, _ in facts])
        try:
            at = parse_times([time for _, _, time, _ in facts])
        except TimeError as error:
            raise DataFileError(_json(root / names[error.number]), f"timestamp: {error}") from error
        return Rows(
            client=client,
            clients=clients,
            label=_classes(
                labels,
                lambda row: DataFileError(
                    _json(root / names[row]),
                    f"bounding_boxes.0.category {labels[row]!r}: is none of the {len(CLASSES)} of fMoW",
                ),
            ),
            classes=CLASSES,
            when="time",
            at=at,
            value=np.arange(len(names)),
            pixels=ImageFiles(root, names),
            box=np.array([box for _, _, _, box in facts]) if self.settings.crop == "box" else None,
        )

    def _facts(self, root: Path, name: str) -> tuple[str, str, str, tuple[float, ...]]:
        """Client, class, time and box of an image, from its `.json`; DataFileError if that breaks a rule."""
        path = _json(root / name)
        try:
            document = json_document(read_text(path, MOST_JSON_BYTES))
        except (OSError, ValueError) as error:
            problem = (
                f"cannot be read as JSON ({error})" if path.exists() else "no such file, beside its image"
            )
            raise DataFileError(path, problem) from error
        if self.settings.client == "region":
            raise InputError("--client region: is for WILDS, whose country_code_mapping.csv has the regions")
        key = "country_code" if self.settings.client == "country" else "utm"
        boxes = _field(path, document, "bounding_boxes", list)
        first = boxes[0]
        label = _field(path, first, "category", str, "bounding_boxes.0.")
        if label != Path(name).parts[1]:
            raise DataFileError(
                path,
                f"bounding_boxes.0.category {label!r}: the image is in the folder {Path(name).parts[1]!r}",
            )
        corners: tuple[float, ...] = ()
        if self.settings.crop == "box":
            box = _field(path, first, "box", list, "bounding_boxes.0.")
            if len(box) != 4 or not all(isinstance(number, int | float) for number in box):
                raise DataFileError(path, f"bounding_boxes.0.box = {box}: must be x, y, width, height")
            x, y, width, height = box
            corners = (x, y, x + width, y + height)
        return (
            _field(path, document, key, str),
            label,
            _field(path, document, "timestamp", str),
            corners,
        )


def _taken(texts: list[str], rows: Ints) -> list[str]:
    return [texts[row] for row in rows.tolist()]


def _json(image: Path) -> Path:
    return image.with_suffix(".json")


def _field(path: Path, document: Any, key: str, kind: type, within: str = "") -> Any:
    """The value of `key`, of type `kind` and not empty; DataFileError if the document does not have it."""
    value = document.get(key) if isinstance(document, dict) else None
    if not isinstance(value, kind) or not value:
        what = "a text" if kind is str else "a list"
        raise DataFileError(path, f"{within}{key}: must be {what}, and not empty")
    return value


def _classes(labels: list[str], unknown: Any) -> np.ndarray:
    """(n,) the number of each label in CLASSES; raises `unknown(row)` for the first that is not there."""
    number = {name: place for place, name in enumerate(CLASSES)}
    label = np.array([number.get(name, -1) for name in labels], dtype=np.int16)
    if (label < 0).any():
        raise unknown(int((label < 0).argmax()))
    return label


def _regions(path: Path, tally: Tally) -> dict[str, str]:
    """The region of each country by its three letters; countries without one are not in it."""
    table = TextColumns(path, ("alpha-3", "region"), tally)
    pairs = zip(table.texts("alpha-3"), table.texts("region", may_be_empty=True), strict=True)
    return {country: region for country, region in pairs if region}
