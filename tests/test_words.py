"""One word for one thing: words that were replaced do not come back."""

from __future__ import annotations

import re
from pathlib import Path

from tests.packages import AT_ROOT

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = (*AT_ROOT, "tests")
REPLACED = re.compile(
    r"\b(remix|heirs?|renew|liars?|of_tree|of_state|side_by_side|crew|roster|at_hand|unfit)\b", re.IGNORECASE
)


def test_replaced_words_are_used_for_nothing() -> None:
    files = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py")]
    uses = [
        f"{file.relative_to(ROOT)}:{number}: {line.strip()}"
        for file in files
        if file != Path(__file__)
        for number, line in enumerate(file.read_text().splitlines(), start=1)
        if REPLACED.search(line)
    ]
    assert len(files) > 300
    assert uses == []
