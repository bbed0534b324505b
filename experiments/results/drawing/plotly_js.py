"""plotly.js for reports: 4.8 MB, contained in a page that stands alone, or one file for a folder of them."""

from __future__ import annotations

from pathlib import Path

from plotly.offline import get_plotlyjs

from emulator.storage.checkpoints import write_durably
from emulator.storage.own_files import path_below

PLOTLY_FILE = "plotly.min.js"


def plotly_path(folder: Path) -> Path:
    """The file with plotly.js for the reports of the run directories in `folder`.

    Raises ForeignFileError if a link or an entry of another kind is in its place.
    """
    return path_below(folder, PLOTLY_FILE)


def write_plotly(folder: Path) -> None:
    """Write the file `plotly_path(folder)`, unless it has the right content already."""
    path, content = plotly_path(folder), get_plotlyjs().encode()
    if not path.is_file() or path.stat().st_size != len(content) or path.read_bytes() != content:
        write_durably(path, content)
