"""plotly.js for reports: 4.8 MB, contained in a page that stands alone, or one file for a folder of them."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from emulator.storage.checkpoints import write_durably
from emulator.storage.own_files import path_below

PLOTLY_FILE = "plotly.min.js"


def plotly_js() -> str:
    """The script as plotly brings it; its own function for it imports all that draws in a notebook."""
    package = find_spec("plotly")
    assert package is not None
    assert package.origin is not None
    return Path(package.origin).with_name("package_data").joinpath("plotly.min.js").read_text("utf-8")


def plotly_path(folder: Path) -> Path:
    """The file with plotly.js for the reports of the run directories in `folder`.

    Raises ForeignFileError if a link or an entry of another kind is in its place.
    """
    return path_below(folder, PLOTLY_FILE)


def write_plotly(folder: Path) -> None:
    """Write the file `plotly_path(folder)`, unless it has the right content already."""
    path, content = plotly_path(folder), plotly_js().encode()
    if not path.is_file() or path.stat().st_size != len(content) or path.read_bytes() != content:
        write_durably(path, content)
