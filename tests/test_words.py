"""One word for one thing: words that were replaced do not come back."""

from __future__ import annotations

import re
from pathlib import Path

from experiments.own_packages import OUR_PACKAGES

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = (*OUR_PACKAGES, "tests")
REPLACED = re.compile(r"\b(remix|heirs?|renew|liars?|of_tree|of_state|side_by_side)\b", re.IGNORECASE)
OLD_ON_PURPOSE = ("emulator/deprecated.py", "tests/test_old_names.py", "tests/old_plugin_package", __file__)


def test_replaced_words_are_used_for_nothing() -> None:
    files = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py")]
    on_purpose = tuple(str(ROOT / name) for name in OLD_ON_PURPOSE)
    uses = [
        f"{file.relative_to(ROOT)}:{number}: {line.strip()}"
        for file in files
        if not str(file).startswith(on_purpose)
        for number, line in enumerate(file.read_text().splitlines(), start=1)
        if REPLACED.search(line)
    ]
    assert len(files) > 300
    assert uses == []
