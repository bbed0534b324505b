"""`python -m docs.writing` writes the pages, and prints those that changed."""

from __future__ import annotations

import sys

from docs.writing.pages import DOCS, write_pages

if __name__ == "__main__":
    for path in write_pages(DOCS):
        sys.stdout.write(f"{path.relative_to(DOCS.parent)}\n")
