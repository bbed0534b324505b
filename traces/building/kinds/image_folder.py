"""Folders of images: the names of folders say client and class."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np
from pydantic import Field

from emulator.arrays import Ints
from emulator.errors import DataFileError, InputError
from emulator.plugins import Settings
from emulator.storage.reading.files import files_below
from emulator.storage.reading.tally import Tally
from traces.building.dividing import DividedImageSettings, divided
from traces.building.images import WholeImageBuilder
from traces.building.listing import Listing, codes
from traces.building.path_patterns import PatternText, match_files
from traces.building.pixels import ImageFiles
from traces.building.text_columns import TextColumns
from traces.building.times import TimeError, parse_pattern, parse_times, refuse_pattern

SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm")


class FolderSettings(DividedImageSettings):
    """Whose images are, where their times come from, and how images without clients are divided."""

    client_from: PatternText | None = Field(
        None,
        description="where the client is in the path of an image, as */{client}_*.jpg, whose class is the "
        "name of its folder; other paths are left out",
    )
    times: Path | None = Field(
        None, description="a CSV with the columns path (below the root) and time (ISO 8601), one row an image"
    )
    time_pattern: str | None = Field(
        None,
        description="how the time is written in the name of a file without its suffix, such as "
        "cam_%Y%m%d_%H%M%S; * stands for any text, as in *_%Y%m%d_%H%M%S",
    )


class ImageFolder(WholeImageBuilder):
    """A folder of images, CLIENT/CLASS/IMAGE; with a partition, CLASS/IMAGE.

    With `client_from`, clients are where it says in the path, and classes are the folders of the images.
    Times are those of a CSV, or are part of the names of the files; without either, clients own all images
    from the start. Hidden files and files whose suffix is not that of an image are ignored, and counted.
    """

    needs = "CLIENT/CLASS/IMAGE, or CLASS/IMAGE with --partition, or .../CLASS/IMAGE with --client-from"

    Settings: ClassVar[type[Settings]] = FolderSettings
    settings: FolderSettings

    def list_samples(self, root: Path) -> Listing:
        settings = self.settings
        if settings.times is not None and settings.time_pattern is not None:
            raise InputError("--times and --time-pattern: give one of them")
        if settings.time_pattern is not None:
            _refuse_pattern(settings.time_pattern)
        divides = settings.partition is not None or settings.clients is not None
        if settings.client_from is not None and divides:
            raise InputError("--client-from and --partition exclude each other: an image has one client")
        files = sorted(
            str(path.relative_to(root))
            for path in files_below(root)
            if path.is_file() and not any(part.startswith(".") for part in path.relative_to(root).parts)
        )
        self.tally().add_rows(root, len(files), 1)
        names = [name for name in files if name.lower().endswith(SUFFIXES)]
        if not names:
            raise InputError(f"--root {root}: has no image ({', '.join(SUFFIXES)})")
        ignored = len(files) - len(names)
        notes = [f"{ignored} file(s) are ignored, as their suffix is not that of an image"] * (ignored > 0)
        owners: tuple[str, ...] | None = None
        if settings.client_from is not None:
            matched = match_files(settings.client_from, root, names, "image")
            names = [names[number] for number in matched.numbers]
            owners = matched.clients
            notes += [] if matched.note is None else [matched.note]
        _refuse_layout(root, names, settings)
        label, classes = codes([Path(name).parts[-2] for name in names])
        if owners is None and settings.partition is None:
            owners = tuple(Path(name).parts[0] for name in names)
        client, clients = divided(settings, label, None) if owners is None else codes(owners)
        at = self._times(root, names)
        return Listing(
            client=client,
            clients=clients,
            label=label,
            classes=classes,
            when="step" if at is None else "time",
            at=np.zeros(len(names), np.int64) if at is None else at,
            image=np.arange(len(names)),
            pixels=ImageFiles(root, names),
            notes=tuple(notes),
        )

    def _times(self, root: Path, names: list[str]) -> Ints | None:
        """(n,) microseconds since 1970, or None if images have no times."""
        if self.settings.time_pattern is not None:
            return _from_names(root, names, self.settings.time_pattern)
        if self.settings.times is not None:
            return _from_table(root, names, self.settings.times, self.tally())
        return None


def _refuse_pattern(pattern: str) -> None:
    try:
        refuse_pattern(pattern)
    except ValueError as error:
        raise InputError(f"--time-pattern {pattern}: {error}") from error


def _refuse_layout(root: Path, names: list[str], settings: FolderSettings) -> None:
    """Raise DataFileError for an image that is not in the folders that the settings want."""
    if settings.client_from is not None:
        alone = next((name for name in names if len(Path(name).parts) < 2), None)
        if alone is not None:
            raise DataFileError(root / alone, "is in no folder below the root, whose name would be its class")
        return
    depth = 2 if settings.partition is None else 1
    for name in names:
        if len(Path(name).parts) != depth + 1:
            layout = "CLIENT/CLASS/IMAGE" if depth == 2 else "CLASS/IMAGE, as --partition makes the clients"
            hint = "; folders CLASS/IMAGE need --partition" if depth == 2 else ""
            hint += ", others --client-from" if depth == 2 else ""
            raise DataFileError(root / name, f"is not in a folder {layout}{hint}")


def _from_names(root: Path, names: list[str], pattern: str) -> Ints:
    times = np.empty(len(names), np.int64)
    for number, name in enumerate(names):
        try:
            times[number] = parse_pattern(Path(name).stem, pattern)
        except ValueError as error:
            raise DataFileError(
                root / name,
                f"its name without suffix is not written as --time-pattern {pattern} says ({error})",
            ) from error
    return times


def _from_table(root: Path, names: list[str], path: Path, tally: Tally) -> Ints:
    table = TextColumns(path, ("path", "time"), tally)
    try:
        at = parse_times(table.texts("time"))
    except TimeError as error:
        raise DataFileError(path, f"time: {error}", row=error.number + 1) from error
    row: dict[str, int] = {}
    for number, name in enumerate(table.texts("path")):
        if name in row:
            raise DataFileError(path, f"path {name!r} is also in row {row[name] + 1}", row=number + 1)
        row[name] = number
    for name in names:
        if name not in row:
            raise DataFileError(path, f"has no row with the path {name!r}, which is in {root}")
    known = set(names)
    for name, number in row.items():
        if name not in known:
            raise DataFileError(path, f"path {name!r}: no such image below {root}", row=number + 1)
    times: Ints = at[np.array([row[name] for name in names])]
    return times
