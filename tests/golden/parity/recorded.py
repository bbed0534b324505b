"""What public implementations answered to scripted inputs; README.md says what was run, and how."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


def recorded(method: str) -> Any:
    """The content of the method's file, which may be compressed."""
    packed = FOLDER / f"{method}.json.gz"
    if packed.exists():
        return json.loads(gzip.decompress(packed.read_bytes()))
    return json.loads((FOLDER / f"{method}.json").read_text(encoding="utf-8"))
