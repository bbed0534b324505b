"""Each decision of docs/decisions.md has a number for ever, and stands in the section of its package."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs/decisions.md"
SECTIONS = PAGE.read_text(encoding="utf-8").split("\n## ")[1:]
ENTRY = re.compile(r'^<a id="d-(\d+)"></a>\n\*\*(\d+)\.\*\* \S', re.MULTILINE)


def entries(text: str) -> list[tuple[int, int]]:
    """The number in the anchor of each entry, and the one that is printed."""
    return [(int(anchor), int(printed)) for anchor, printed in ENTRY.findall(text)]


def test_numbers_count_up_from_1_without_a_gap_and_no_two_entries_have_the_same() -> None:
    numbers = sorted(number for section in SECTIONS for number, _ in entries(section))
    assert len(numbers) >= 260
    wrong = next((count for count, number in enumerate(numbers, start=1) if number != count), None)
    assert wrong is None, f"number {wrong} is missing, or the one before it is used twice"


def test_anchors_have_the_numbers_that_are_printed() -> None:
    assert [
        (anchor, printed) for section in SECTIONS for anchor, printed in entries(section) if anchor != printed
    ] == []


def test_every_paragraph_of_a_section_but_the_first_is_an_entry() -> None:
    """An entry without an anchor, or of another form, would not be counted."""
    for section in SECTIONS:
        heading, _, content = section.partition("\n\n")
        first, *others = content.strip().split("\n\n")
        assert not ENTRY.match(first), f"{heading}: a paragraph on the section comes before its decisions"
        assert [text for text in others if not ENTRY.match(text)] == [], heading


def test_numbers_ascend_within_a_section() -> None:
    for section in SECTIONS:
        numbers = [number for number, _ in entries(section)]
        assert numbers, section.splitlines()[0]
        assert [(one, next_) for one, next_ in pairwise(numbers) if one >= next_] == [], section.splitlines()[
            0
        ]
