"""Several figures of a page as one object, which a notebook draws below each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from experiments.results.drawing.plain_figure import PlainFigure
from experiments.results.drawing.plot import PLOT_CONFIG, Plot
from experiments.results.drawing.text_alternative import text_alternative

if TYPE_CHECKING:
    import plotly.graph_objects as go


WHITE = "#ffffff"


def on_white(figure: PlainFigure) -> go.Figure:
    """The figure as plotly's own, on a white ground, so that it can be read in a dark notebook too."""
    drawn = figure.validated()
    drawn.update_layout(paper_bgcolor=WHITE)
    return drawn


class Figures(tuple["go.Figure", ...]):
    """Plotly figures, which a notebook draws below each other, each with its title and its caption.

    Otherwise they are a tuple: `figures[0]` is the first one, and is drawn as it was changed. What the
    notebook stores contains plotly.js once, and fetches nothing.

    Args:
        plots: The figures as a page has them.
        least_px: The width below which they are scrolled sideways, in pixels; 0 if they fit anywhere.
    """

    _plots: Sequence[Plot]
    _least_px: int

    def __new__(cls, plots: Sequence[Plot], least_px: int = 0) -> Figures:
        """The figures of these plots, as plotly's own objects."""
        return cls._of([on_white(plot.figure) for plot in plots], plots, least_px)

    @classmethod
    def _of(cls, drawn: Sequence[go.Figure], plots: Sequence[Plot], least_px: int) -> Figures:
        figures = super().__new__(cls, drawn)
        figures._plots, figures._least_px = plots, least_px
        return figures

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy has the figures as they were changed."""
        return type(self)._of, (tuple(self), self._plots, self._least_px)

    def __repr__(self) -> str:
        """The titles."""
        count = f"{len(self)} figure{'' if len(self) == 1 else 's'}"
        return f"{count}: {'; '.join(plot.title for plot in self._plots)}"

    def _repr_html_(self) -> str:
        """The figures, for a notebook."""
        return "".join(
            str(self._drawn(figure, plot, has_plotly=index > 0))
            for index, (figure, plot) in enumerate(zip(self, self._plots, strict=True))
        )

    def _drawn(self, figure: go.Figure, plot: Plot, *, has_plotly: bool) -> Markup:
        html = figure.to_html(
            config=PLOT_CONFIG, full_html=False, include_plotlyjs=not has_plotly, default_width="100%"
        )
        alternative = plot.alternative or text_alternative(plot.title, plot.figure)
        scrolled = Markup(
            '<div style="overflow-x: auto"><div role="img" aria-label="{}" style="min-width: {}px">{}</div>'
            "</div>"
        ).format(alternative, self._least_px, Markup(html))
        title, caption = Markup("<div><b>{}</b></div>"), Markup("<div><small>{}</small></div>")
        return title.format(plot.title) + scrolled + caption.format(plot.caption)
