"""What the pages of the site, Markdown files, link to and contain; mistakes in them, each with file and line.

Owns the structure of a page: headings, anchors, links, pictures, its place in the navigation. What blocks of
code say is not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path

ROOT_PAGE = "docs/index.md"
NOT_PAGES = {"DECISIONS.md"}
"""Markdown of the root that docs/conf.py excludes; Sphinx warns of a link to it."""

_FENCE = re.compile(
    r"^([ \t>]*)(`{3,}|~{3,})([^`\n]*)\n(.*?)(?:^[ \t>]*\2[`~]*[ \t]*$|\Z)", re.DOTALL | re.MULTILINE
)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_CODE = re.compile(r"(?<!`)(`+)(?!`)(?:(?!\n[ \t>]*\n).)+?(?<!`)\1(?!`)", re.DOTALL)
_HEADING = re.compile(r"^(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*$", re.MULTILINE)
_LINK = re.compile(r"\]\(([^()\s]+)(?:\s+\"[^\"]*\")?\)")
_DRAWN = re.compile(r"<(?:img|source)\b[^>]*?\ssrc(?:set)?=\"([^\"]+)\"")
_PICTURE = re.compile(r"!\[([^\]]*)\]\(|<img\b([^>]*)>")
_ANCHOR = re.compile(r"<a id=\"([^\"]+)\">")
_EMPTY_HEADER = re.compile(
    r"^\|(?=[^\n]*\|[ \t]*\n\|[-:| ]+\|[ \t]*$)(?:[^\n|]*\|)*?[ \t]*\|[^\n]*$", re.MULTILINE
)
_TITLED = re.compile(r".* <(.*)>")
_FOREIGN = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)


@dataclass(frozen=True)
class Page:
    """A page of the site: its path below the root of the repository, and its text."""

    path: str
    text: str

    @cached_property
    def prose(self) -> str:
        """The text, in which blocks of code and comments are blank; each line keeps its number."""
        return _COMMENT.sub(_blank, _FENCE.sub(_blank, self.text))

    @cached_property
    def without_code(self) -> str:
        """The prose, in which code within a line is blank too."""
        return _CODE.sub(_blank, self.prose)

    @cached_property
    def headings(self) -> list[tuple[int, int, str]]:
        """(line, level, text) of each heading."""
        return [(self.line(match), len(match[1]), match[2]) for match in _HEADING.finditer(self.prose)]

    @cached_property
    def anchors(self) -> set[str]:
        """Anchors of the headings, as GitHub names them, and explicit ones."""
        anchors = set(_ANCHOR.findall(self.without_code))
        for _, _, text in self.headings:
            slug = anchor = slugified(text)
            number = 0
            while anchor in anchors:
                number += 1
                anchor = f"{slug}-{number}"
            anchors.add(anchor)
        return anchors

    @cached_property
    def links(self) -> list[tuple[int, str]]:
        """(line, target) of each link and picture that stays within the repository."""
        matches = [*_LINK.finditer(self.without_code), *_DRAWN.finditer(self.without_code)]
        found = [(self.line(match), match[1]) for match in matches]
        return [(line, target) for line, target in found if not _FOREIGN.match(target)]

    @cached_property
    def toctree(self) -> list[tuple[int, str]]:
        """(line, entry) of what the page takes into the navigation; an entry may be a pattern."""
        return [
            (self.text.count("\n", 0, block.start(4)) + number, _TITLED.sub(r"\1", line.strip()))
            for block in _FENCE.finditer(self.text)
            if block[3].strip() == "{toctree}"
            for number, line in enumerate(block[4].splitlines(), start=1)
            if line.strip() and not line.strip().startswith(":")
        ]

    def line(self, match: re.Match[str]) -> int:
        return self.text.count("\n", 0, match.start()) + 1


def read_pages(root: Path) -> dict[str, Page]:
    """The pages of the site below `root`, by path: Markdown of the root and below docs/."""
    files = [*root.glob("*.md"), *(root / "docs").rglob("*.md")]
    paths = sorted({file.relative_to(root).as_posix() for file in files} - NOT_PAGES)
    return {path: Page(path, (root / path).read_text(encoding="utf-8")) for path in paths}


def slugified(heading: str) -> str:
    """GitHub's anchor of a heading that occurs once."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


def mistakes(root: Path) -> list[str]:
    """`path:line: what is wrong` of each mistake in the pages below `root`."""
    pages = read_pages(root)
    found = [
        (page.path, line, text)
        for page in pages.values()
        for line, text in (
            *_of_headings(page),
            *_of_pictures(page),
            *_of_tables(page),
            *_of_links(page, pages, root),
        )
    ]
    found += [(path, line, text) for path, line, text in _of_navigation(pages)]
    return [f"{path}:{line}: {text}" for path, line, text in sorted(found)]


def _of_headings(page: Page) -> Iterator[tuple[int, str]]:
    if not page.prose.lstrip().startswith("# "):
        yield 1, "a page begins with its title, a heading of level 1"
    above = 1
    for line, level, text in page.headings[1:]:
        if level == 1:
            yield line, f"a page has one heading of level 1: {text}"
        elif level > above + 1:
            yield line, f"level {level} follows level {above}: {text}"
        above = level


def _of_pictures(page: Page) -> Iterator[tuple[int, str]]:
    for match in _PICTURE.finditer(page.without_code):
        alt = match[1] if match[2] is None else "".join(re.findall(r'\balt="([^"]*)"', match[2]))
        if not alt.strip():
            yield page.line(match), "a picture without a text (alt)"


def _of_tables(page: Page) -> Iterator[tuple[int, str]]:
    for match in _EMPTY_HEADER.finditer(page.prose):
        yield page.line(match), "a column without a name"


def _of_links(page: Page, pages: dict[str, Page], root: Path) -> Iterator[tuple[int, str]]:
    for line, target in page.links:
        file, _, anchor = target.partition("#")
        linked = _joined(page.path, file) if file else page.path
        if linked in pages:
            if anchor and anchor not in pages[linked].anchors:
                yield line, f"{linked} has no anchor #{anchor}"
        elif linked in NOT_PAGES:
            yield line, f"{linked} is not on the site: name it without a link"
        elif not (root / linked).is_file():
            yield line, f"a link leads to a page or a file, {target} is neither"
        elif anchor:
            yield line, f"{linked} is no page and has no anchor #{anchor}"


def _of_navigation(pages: dict[str, Page]) -> Iterator[tuple[str, int, str]]:
    unlisted = set(pages) - {ROOT_PAGE}
    for page in pages.values():
        for line, entry in page.toctree:
            pattern = _joined(page.path, f"{entry.removesuffix('.md')}.md")
            listed = {path for path in pages if _matches(path, pattern)}
            if not listed:
                yield page.path, line, f"no page {entry}"
            unlisted -= listed
    for path in unlisted:
        yield path, 1, "no {toctree} lists this page"


def _matches(path: str, pattern: str) -> bool:
    """Whether a page matches; as in Sphinx, a star does not cross folders."""
    return path.count("/") == pattern.count("/") and fnmatchcase(path, pattern)


def _joined(path: str, target: str) -> str:
    """The path below the root that `target` names in the page `path`."""
    parts: list[str] = []
    for part in (*path.split("/")[:-1], *target.split("/")):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])
