"""All pages that are written, by their paths below docs/."""

from __future__ import annotations

from pathlib import Path

from docs.writing.api import api_page
from docs.writing.commands import commands_page
from docs.writing.configuration import configuration_page
from docs.writing.frames import frames_page
from docs.writing.gallery import gallery_page
from docs.writing.log import log_page
from docs.writing.parts import index_page, kind_pages
from docs.writing.profiles import NAME, profiles_page
from emulator.storage.checkpoints import naming_file

DOCS = Path(__file__).resolve().parents[1]
"""The folder of the documentation."""


def written_pages() -> dict[str, str]:
    """The text of each page by its path below docs/."""
    return {
        "gallery.md": gallery_page(),
        "reference/configuration.md": configuration_page(),
        "reference/parts/index.md": index_page(),
        **{f"reference/parts/{name}.md": text for name, text in kind_pages().items()},
        f"reference/parts/{NAME}.md": profiles_page(),
        "reference/frames.md": frames_page(),
        "reference/log.md": log_page(),
        "reference/commands.md": commands_page(),
        "reference/api.md": api_page(),
    }


def write_pages(folder: Path) -> list[Path]:
    """Write the pages below `folder`; returns the paths of those that changed."""
    changed = []
    for name, text in written_pages().items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            with naming_file(path):
                path.write_text(text, encoding="utf-8")
            changed.append(path)
    return changed
