"""A figure as a page shows it: with its title, its caption, and a text for readers who do not see it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

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
