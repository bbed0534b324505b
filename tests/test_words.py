"""One word for one thing: words that were replaced do not come back."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
REPLACED = re.compile(r"\b(remix|heirs?|renew|liars?|of_tree|of_state|side_by_side)\b", re.IGNORECASE)
OLD_ON_PURPOSE = {"emulator/deprecated.py", "tests/test_old_names.py", "tests/test_words.py"}


def test_replaced_words_are_used_for_nothing() -> None:
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=False)
    files = listed.stdout.split() if listed.returncode == 0 else []
    if not files:
        pytest.skip("not a git checkout")
    uses = [
        f"{file}:{number}: {line.strip()}"
        for file in files
        if file not in OLD_ON_PURPOSE and not file.startswith("tests/old_plugin_package/")
        for number, line in enumerate((ROOT / file).read_text().splitlines(), start=1)
        if REPLACED.search(line)
    ]
    assert uses == []
