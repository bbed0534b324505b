"""Folders of images: the names of folders say client and class."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from pydantic import Field

from emulator.arrays import Ints
from emulator.errors import DataFileError, InputError
from emulator.storage.reading.files import files_below
from emulator.storage.reading.tally import Tally
from traces.building.dividing import DividedSettings, divided
from traces.building.images import ImageBuilder, WholeImageSettings
from traces.building.path_patterns import PatternText, match_files
from traces.building.pixels import ImageFiles
from traces.building.rows import Rows, codes, samples_of
from traces.building.rules import PATHS_OF_IMAGES, PATHS_ONCE, Cells, refuse
from traces.building.text_columns import TextColumns
from traces.building.times import parse_pattern, refuse_pattern, times_of

SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm")

IN_A_FOLDER = range(2, 4096)
"""The parts that the path of an image in a folder may have; no path has more."""


class FolderSettings(DividedSettings, WholeImageSettings):
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


class ImageFolder(ImageBuilder):
    """A folder of images, CLIENT/CLASS/IMAGE; with a partition, CLASS/IMAGE.

    With `client_from`, clients are where it says in the path, and classes are the folders of the images.
    Times are those of a CSV, or are part of the names of the files; without either, clients own all images
    from the start. Hidden files and files whose suffix is not that of an image are ignored, and counted.
    """

    needs = "CLIENT/CLASS/IMAGE, or CLASS/IMAGE with --partition, or .../CLASS/IMAGE with --client-from"

    Settings = FolderSettings
    settings: FolderSettings

    def list_samples(self, root: Path) -> Rows:
        settings = self.settings
        if settings.times is not None and settings.time_pattern is not None:
            raise InputError("--times and --time-pattern: give one of them")
        if settings.time_pattern is not None:
            try:
                refuse_pattern(settings.time_pattern)
            except ValueError as error:
                raise InputError(f"--time-pattern {settings.time_pattern}: {error}") from error
        if settings.client_from is not None and (settings.partition, settings.clients) != (None, None):
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
        owners: Sequence[str] = [Path(name).parts[0] for name in names]
        if settings.client_from is not None:
            matched = match_files(settings.client_from, root, names, "image")
            names, owners = [names[number] for number in matched.numbers], matched.clients
            notes += [] if matched.note is None else [matched.note]
        _refuse_layout(root, names, settings)
        label, classes = codes([Path(name).parts[-2] for name in names])
        client = codes(owners) if settings.partition is None else divided(settings, label)
        at = None
        if settings.time_pattern is not None:
            at = _from_names(root, names, settings.time_pattern)
        elif settings.times is not None:
            at = _from_table(root, names, settings.times, self.tally())
        return samples_of(ImageFiles(root, names), client, (label, classes), at=at, notes=tuple(notes))


def _refuse_layout(root: Path, names: list[str], settings: FolderSettings) -> None:
    """Raise DataFileError for an image that is not in the folders that the settings want."""
    if settings.client_from is not None:
        depths, problem = IN_A_FOLDER, "is in no folder below the root, whose name would be its class"
    elif settings.partition is not None:
        depths, problem = range(2, 3), "is not in a folder CLASS/IMAGE, as --partition makes the clients"
    else:
        depths, problem = range(3, 4), "is not in a folder CLIENT/CLASS/IMAGE; folders CLASS/IMAGE need "
        problem += "--partition, others --client-from"
    for name in names:
        if len(Path(name).parts) not in depths:
            raise DataFileError(root / name, problem)


def _from_names(root: Path, names: list[str], pattern: str) -> Ints:
    times = np.empty(len(names), np.int64)
    for number, name in enumerate(names):
        try:
            times[number] = parse_pattern(Path(name).stem, pattern)
        except ValueError as error:
            problem = f"its name without suffix is not written as --time-pattern {pattern} says ({error})"
            raise DataFileError(root / name, problem) from error
    return times


def _from_table(root: Path, names: list[str], path: Path, tally: Tally) -> Ints:
    table = TextColumns(path, ("path", "time"), tally)
    at = times_of(table, "time")
    paths, known = table.texts("path"), set(names)
    row: dict[str, int] = {}
    cells = Cells(
        path=paths,
        first=np.array([row.setdefault(name, number) for number, name in enumerate(paths, start=1)]),
        number=np.arange(1, table.num_rows + 1),
        known=np.array([name in known for name in paths]),
        root=root,
    )
    refuse(PATHS_ONCE, cells, path, table.num_rows)
    for name in names:
        if name not in row:
            raise DataFileError(path, f"has no row with the path {name!r}, which is in {root}")
    refuse(PATHS_OF_IMAGES, cells, path, table.num_rows)
    times: Ints = at[np.array([row[name] - 1 for name in names])]
    return times
