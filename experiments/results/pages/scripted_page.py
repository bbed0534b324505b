"""Pages of this package: their templates, their plots, and the nonce that only their own scripts carry."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from experiments.results.drawing.plain_figure import PlainFigure
from experiments.results.drawing.text_alternative import text_alternative

PLOT_CONFIG = {"displaylogo": False, "showSendToCloud": False, "responsive": True}


@dataclass(frozen=True)
class Plot:
    """A figure of a page with its caption; `id` is the id of its HTML element, unique in the page.

    `alternative` is its text for readers who do not see it; if empty, it is made from the figure.
    """

    id: str
    title: str
    caption: str
    figure: PlainFigure
    alternative: str = ""

    def drawing(self, nonce: str) -> Markup:
        """The HTML element, with the script that draws the figure in it; the page runs it for its `nonce`.

        Plotly escapes `<` in the data that it embeds, so there is no other script in the element.
        """
        drawn = re.sub(r"<script\b", f'<script nonce="{nonce}"', self._html)
        label = escape(self.alternative or text_alternative(self.title, self.figure))
        return Markup(f'<div role="img" aria-label="{label}">{drawn}</div>')

    @cached_property
    def _html(self) -> str:
        return self.figure.to_html(self.id, PLOT_CONFIG)


def template(name: str) -> Template:
    """The Jinja template in the file `name` of this package; values are escaped, missing ones are errors."""
    return _environment().get_template(name)


@cache
def _environment() -> Environment:
    """One for all pages, since it keeps the templates that it has compiled."""
    return Environment(
        loader=PackageLoader("experiments.results", "pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )


def page_with_nonce(file: str, /, **values: Any) -> str:
    """The page of the template `file` with these values, which runs no scripts but those with its nonce.

    The nonce is a hash of the page without it: no text in the page can contain it.
    """
    page = template(file)
    nonce = hashlib.sha256(page.render(nonce="", **values).encode()).hexdigest()
    return page.render(nonce=nonce, **values)
