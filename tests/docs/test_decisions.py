"""Each decision of DECISIONS.md is one short paragraph that begins with what was decided, in bold."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

from tests.docs.markdown_pages import NOT_PAGES, read_pages

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "DECISIONS.md"
ENTRY = re.compile(r"\*\*([^*]+\.)\*\* \S")
MOST_WORDS = 70


def sections() -> dict[str, list[str]]:
    """The paragraphs of each section, each on one line, by its heading."""
    parts = PAGE.read_text(encoding="utf-8").strip().split("\n## ")[1:]
    return {
        heading: [" ".join(paragraph.split()) for paragraph in content.strip().split("\n\n")]
        for heading, _, content in (part.partition("\n\n") for part in parts)
    }


def decisions() -> list[str]:
    """All paragraphs of sections but their introductions."""
    return [paragraph for _, *entries in sections().values() for paragraph in entries]


def test_every_section_has_an_introduction_and_decisions() -> None:
    for heading, (introduction, *entries) in sections().items():
        assert not introduction.startswith("**"), f"{heading}: a paragraph on the section comes first"
        assert entries, heading


def test_every_other_paragraph_begins_with_a_bold_sentence_and_gives_a_reason() -> None:
    assert len(decisions()) > 150, "the page was not parsed"
    assert [text for text in decisions() if not ENTRY.match(text)] == []


def test_decisions_are_short() -> None:
    assert [text for text in decisions() if len(text.split()) > MOST_WORDS] == []


def test_no_two_decisions_have_the_same_bold_sentence() -> None:
    sentences = Counter(match[1] for text in decisions() if (match := ENTRY.match(text)))
    assert [sentence for sentence, count in sentences.items() if count > 1] == []


def test_the_page_is_not_on_the_site() -> None:
    assert PAGE.name not in read_pages(ROOT)
    settings = ast.parse((ROOT / "docs/conf.py").read_text(encoding="utf-8"))
    excluded = [
        node.value
        for statement in settings.body
        if isinstance(statement, ast.Assign | ast.AugAssign) and "exclude_patterns" in ast.dump(statement)
        for node in ast.walk(statement.value)
        if isinstance(node, ast.Constant)
    ]
    assert set(excluded) >= NOT_PAGES
