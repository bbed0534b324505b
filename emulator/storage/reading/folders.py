"""The files below a folder, also by way of links to other folders, as data folders often have."""

from __future__ import annotations

import os
from pathlib import Path

from emulator.errors import DataFileError


def files_below(root: Path) -> list[Path]:
    """All that is not a folder below `root`, sorted; links to folders are followed.

    Raises DataFileError for a link to a folder around it, which would never end.
    """
    found: list[Path] = []
    around = {root: {os.path.realpath(root)}}
    for folder, subfolders, files in os.walk(root, followlinks=True):
        path = Path(folder)
        above = around.pop(path)
        found.extend(path / name for name in files)
        for name in subfolders:
            real = os.path.realpath(path / name)
            if real in above:
                raise DataFileError(path / name, "is a link to a folder that it is in itself")
            around[path / name] = above | {real}
    return sorted(found)
