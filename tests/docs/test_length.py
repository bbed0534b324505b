"""The documents are read: their words have a bound, and who needs more takes others away."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST_WORDS = 165_000
MOST_OF_README = 1_600


def words(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").split())


def test_all_documents_together_have_at_most_so_many_words() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / ".github").rglob("*.md")]
    assert len(pages) > 100
    assert sum(map(words, pages)) <= MOST_WORDS


def test_readme_is_short() -> None:
    assert words(ROOT / "README.md") <= MOST_OF_README
