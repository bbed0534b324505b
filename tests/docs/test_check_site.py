"""What `make docs` checks in the built pages: each mistake is found, and an ordinary page has none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.check_site import mistakes

PAGE = '<!doctype html><html lang="en"><title>t</title><body><h1 id="a">A</h1>{}</body></html>'


@pytest.mark.parametrize(
    ("content", "mistake"),
    [
        ('<script src="https://a.test/x.js"></script>', "<script> contacts a host: src=https://a.test/x.js"),
        ('<link rel="stylesheet" href="//a.test/x.css">', "<link> contacts a host: href=//a.test/x.css"),
        ('<img alt="x" src="http://a.test/x.png">', "<img> contacts a host: src=http://a.test/x.png"),
        ("<style>@import 'https://a.test/x.css'</style>", "<style> contacts a host: https://a.test/x.css"),
        ('<p style="background: url(https://a.test/x)">', "<p> contacts a host: https://a.test/x"),
        ('<script>fetch("https://a.test/x")</script>', "<script> contacts a host: https://a.test"),
        ('<img src="x.png">', "a picture without a text: x.png"),
        ("<h3>C</h3>", "a heading of level 3 follows level 1"),
        ('<p id="a">', "two elements have the id a"),
        ('<a href="other.html">x</a>', "a link leads nowhere: other.html"),
        ('<a href="page.html#b">x</a>', "a link leads to no anchor: page.html#b"),
    ],
)
def test_a_mistake_of_a_page_is_found(tmp_path: Path, content: str, mistake: str) -> None:
    (tmp_path / "page.html").write_text(PAGE.format(content))
    assert mistakes(tmp_path) == [f"page.html: {mistake}"]


def test_a_page_may_link_to_a_paper_and_draw_by_itself(tmp_path: Path) -> None:
    content = (
        '<a href="https://a.test/paper">x</a><a href="#a">x</a><img alt="x" src="data:image/png,//a.b">'
        '<svg xmlns="http://www.w3.org/2000/svg"></svg><script>/* https://a.test */ let x = 1 // 2.0</script>'
    )
    (tmp_path / "page.html").write_text(PAGE.format(content))
    assert mistakes(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("site.css", "@font-face { src: url(https://a.test/font) }"),
        ("site.js", "import('https://a.test/x.js')"),
        ("picture.svg", "<svg><style>@import url(https://a.test/x)</style></svg>"),
    ],
)
def test_files_beside_the_pages_are_read_too(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    (found,) = mistakes(tmp_path)
    assert found.startswith(f"{name}: contacts a host: https://a.test")
