"""The pages of the site hang together: navigation, headings, anchors, links and pictures."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.markdown_pages import Page, mistakes, read_pages, slugified

ROOT = Path(__file__).resolve().parents[2]
INDEX = "# Site\n\n```{toctree}\n:glob:\n\npage\nRead me <../README>\n```\n"


def test_the_pages_have_no_mistake() -> None:
    assert len(read_pages(ROOT)) > 15
    assert mistakes(ROOT) == []


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("no title", "1: a page begins with its title, a heading of level 1"),
        ("# One\n\n# Two", "3: a page has one heading of level 1: Two"),
        ("# One\n\n### Three", "3: level 3 follows level 1: Three"),
        ("# One\n\n![](picture.svg)", "3: a picture without a text (alt)"),
        ('# One\n\n<img src="picture.svg">', "3: a picture without a text (alt)"),
        ("# One\n\n| | b |\n|---|---|\n| 1 | 2 |", "3: a column without a name"),
        ("# One\n\n| a | b |  |\n|---|---|---|\n| 1 | 2 | 3 |", "3: a column without a name"),
        ("# One\n\n[two](other.md)", "3: a link leads to a page or a file, other.md is neither"),
        ("# One\n\n[two](../docs)", "3: a link leads to a page or a file, ../docs is neither"),
        ("# One\n\n[a link\nover lines](../README.md#two)", "4: README.md has no anchor #two"),
        (
            '# One\n\n<picture>\n<source srcset="dark.svg">\n<img alt="x" src="picture.svg">\n</picture>',
            "4: a link leads to a page or a file, dark.svg is neither",
        ),
        ("# One\n\n[why](../DECISIONS.md)", "3: DECISIONS.md is not on the site: name it without a link"),
        ("# One\n\n[two](#two)", "3: docs/page.md has no anchor #two"),
        ("# One\n\n[two](picture.svg#two)", "3: docs/picture.svg is no page and has no anchor #two"),
        ("# One\n\n```{toctree}\nother\n```", "4: no page other"),
    ],
)
def test_a_mistake_is_named_with_file_and_line(tmp_path: Path, text: str, mistake: str) -> None:
    site(tmp_path, text)
    assert mistakes(tmp_path) == [f"docs/page.md:{mistake}"]


@pytest.mark.parametrize(
    "text",
    [
        "# One\n\n[read](../README.md#a-heading-with-code-1) [it](#one) [x](https:a) ![x](picture.svg)",
        "<!-- a comment -->\n# One\n\n## Two\n\n### Three\n\n## Four\n\n| a | b |\n|---|---|\n| | 2 |",
        "# One\n\n```python\n# no heading\nx = a[0](b)\n```\n\nand `a[0](b)`",
        '# One\n\n<a id="cell"></a>**Cell.** One\n\n[cell](#cell)',
    ],
)
def test_what_is_right_is_no_mistake(tmp_path: Path, text: str) -> None:
    site(tmp_path, text)
    assert mistakes(tmp_path) == []


def test_a_page_that_no_navigation_lists_is_a_mistake(tmp_path: Path) -> None:
    site(tmp_path, "# One")
    (tmp_path / "docs" / "howto").mkdir()
    (tmp_path / "docs" / "howto" / "page.md").write_text("# Two")
    assert mistakes(tmp_path) == ["docs/howto/page.md:1: no {toctree} lists this page"]


def test_anchors_are_githubs() -> None:
    assert slugified("Figures 5 and 6: selectors, `FedProx` & [optimisers](a.md)") == (
        "figures-5-and-6-selectors-fedprox--optimisers"
    )
    assert Page("a.md", "# A\n\n## B c\n\n## B c\n").anchors == {"a", "b-c", "b-c-1"}


def site(root: Path, text: str) -> None:
    """A site of an index, a README, a picture and a page with `text`."""
    (root / "docs").mkdir()
    (root / "docs" / "index.md").write_text(INDEX)
    (root / "docs" / "page.md").write_text(text)
    (root / "docs" / "picture.svg").write_text("<svg/>")
    (root / "README.md").write_text("# Read\n\n## A heading with `code`\n\n## A heading with `code`\n")
