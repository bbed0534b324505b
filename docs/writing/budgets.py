"""`make budgets`: draws accuracy against the samples that a client trained, of `docs/evidence/budgets.json`.

A point is an arm with a number of local steps, a mean over seeds; the steps of an arm are joined.
"""

from __future__ import annotations

from typing import Any

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullLocator

from docs.writing.evidence import stored
from docs.writing.pictures import DASHES, PAGES, save

RUNS = {"online": "20 clients, all in each round", "fifth": "20 of 100 clients", "phones": "100 phones"}
FIGURES = {
    "mean_personal_accuracy": "over the run (%)",
    "personal_accuracy_after_drift": "after the drift (%)",
}
ARMS = ("alone", "tuned", "tuned-data", "fedper", "apfl", "ditto")
STEPS = (7, 14, 28)
MARKERS = "os^Dvp"


def draw(figures: dict[str, Any]) -> None:
    """Write the picture from the figures of each run, by arm and name."""
    for page, (text, grid, colours) in PAGES.items():
        canvas, panels = plt.subplots(len(FIGURES), len(RUNS), figsize=(9.6, 6.0), sharex="col")
        for row, (figure, title) in zip(panels, FIGURES.items(), strict=True):
            row[0].set_ylabel(title, color=text)
            for axes, run in zip(row, RUNS, strict=True):
                _panel(axes, figures[run], figure, colours)
                axes.grid(color=grid, linewidth=0.6)
                axes.tick_params(which="both", colors=text, length=0)
                axes.spines[:].set_visible(False)
        for top, bottom, where in zip(panels[0], panels[-1], RUNS.values(), strict=True):
            top.set_title(where, color=text, fontsize=10)
            bottom.set_xlabel("samples per client", color=text)
        lines = panels[0][0].get_lines()
        canvas.legend(
            handles=lines, frameon=False, labelcolor="linecolor", ncols=len(lines), loc="upper center"
        )
        canvas.tight_layout(rect=(0, 0, 1, 0.95))
        save(canvas, "personal-budgets", page)


def _panel(axes: Axes, figures: dict[str, Any], figure: str, colours: Any) -> None:
    for arm, colour, dash, marker in zip(ARMS, colours, DASHES, MARKERS, strict=True):
        cells = [figures[f"{arm}-{steps}"] for steps in STEPS]
        x = [cell["trained_samples_per_client"]["mean"] for cell in cells]
        y = [100 * cell[figure]["mean"] for cell in cells]
        axes.plot(x, y, linestyle=dash, marker=marker, color=colour, label=arm)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.xaxis.set_minor_locator(NullLocator())


if __name__ == "__main__":
    draw(stored()["budgets"]["figures"])
