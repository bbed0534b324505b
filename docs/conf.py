"""Sphinx configuration of the site (`make docs`).

The source folder is the root of the repository: README.md and its neighbours are pages of the site too, and a
relative link means the same here as on GitHub. Nothing is loaded from another host.
"""

from __future__ import annotations

import re
from pathlib import Path

from docutils import nodes
from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

ROOT = Path(__file__).resolve().parents[1]

project = "driftscale"
language = "en"
extensions = ["myst_parser"]

root_doc = "docs/index"
include_patterns = ["*.md", "docs/**.md"]
# Sphinx walks through every folder that is not excluded.
exclude_patterns = [path.name for path in ROOT.iterdir() if path.is_dir() and path.name != "docs"]
exclude_patterns += ["DECISIONS.md"]  # for those who change the code, who read it beside the code

myst_enable_extensions = ["html_image"]
# Every heading has GitHub's anchor, and a link to an anchor that is missing is a warning.
myst_heading_anchors = 6

html_theme = "furo"
html_title = "driftscale"
html_theme_options = {"light_css_variables": {"color-code-background": "#f4f5f6"}}  # not the page's own white
templates_path = ["_templates"]
html_static_path = ["_static"]
html_extra_path = ["_extra"]  # the page at the root, which leads to docs/index.html
html_css_files = ["site.css"]
html_js_files = [("site.js", {"defer": "defer"})]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_use_index = False
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"


class HtmlOfGitHub(SphinxTransform):
    """Turns the HTML in Markdown that GitHub needs into nodes: comments, `<a id>` and `<picture>`."""

    default_priority = 100  # before images are collected and anchors are resolved

    def apply(self, **kwargs: object) -> None:
        """Replace the raw nodes of the document."""
        for raw in list(self.document.findall(nodes.raw)):
            html = raw.astext().strip()
            if html.startswith("<!--") and html.endswith("-->"):
                raw.parent.remove(raw)
            elif anchor := re.fullmatch(r'<a id="([^"]+)">', html):
                end = raw.next_node(nodes.raw, descend=False, siblings=True)
                if end is None or end.astext() != "</a>":
                    raise ValueError(f"{html} is not closed: it must be an anchor without a text")
                end.parent.remove(end)
                target = nodes.target("", "", ids=[anchor[1]], names=[anchor[1]])
                self.document.note_explicit_target(target, target)
                raw.replace_self(target)
            elif "<picture" in html:
                raw.replace_self(_images(html))


def _images(html: str) -> list[nodes.Node]:
    """The images of a `<picture>`; the theme shows the one that suits it, dark or light."""
    alt = _attribute(html, "alt")
    return [
        nodes.image("", uri=_attribute(html, name), alt=alt, classes=[shown])
        for name, shown in (("srcset", "only-dark"), ("src", "only-light"))
    ]


def _attribute(html: str, name: str) -> str:
    match = re.search(rf'\s{name}="([^"]*)"', html)
    if match is None:
        raise ValueError(f"a <picture> needs {name}: {html}")
    return match[1]


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_lexer("csv", TextLexer)  # Pygments has none
    app.add_transform(HtmlOfGitHub)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
