"""`make pictures`: plays what is not played yet, and draws it for light and for dark pages.

`docs/pictures/` has the accuracies of README and of each family of the gallery, and a report as it opens.
Lines are those of `Results.plot_accuracy`, means over seeds. Needs the extra `dev` (Matplotlib) and, for the
report, Chromium on the path.
"""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl

import driftscale
from docs.writing.families import FAMILIES
from docs.writing.pages import DOCS
from emulator.storage.checkpoints import naming_file
from experiments.results.drawing.style import thinned
from experiments.results.statistics.scales import TIME_UNITS

mpl.use("svg")
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "driftscale", "font.family": "sans-serif"})

PLAYED = DOCS.parent / "build" / "pictures"
DRAWN = DOCS / "pictures"

# Colours of text and of lines: each has a contrast of at least 4.5 to 1 against its page.
PAGES: Mapping[str, tuple[str, str, Sequence[str]]] = {
    "light": ("#24292f", "#d0d7de", ("#57606a", "#9a4a00", "#7a3e9d", "#005cc5", "#116329", "#a0206a")),
    "dark": ("#e6edf3", "#3d444d", ("#9da7b3", "#f0a35e", "#d2a8ff", "#79b8ff", "#7ee2a8", "#ff9bce")),
}
"""The colours of text, of the grid, and of up to six lines on each page."""

DASHES = ("-", "-.", "--", "-", ":", (0, (6, 2, 1, 2)))
MOST_POINTS = 120  # of a line
README = {
    "global": ("one model", (3.0, 53.0)),
    "static": ("clusters, made once", (8.3, 52.5)),
    "prior": ("one model, each client's own label counts", (11.5, 77.5)),
    "fielding": ("Fielding: clusters that follow", (9.2, 62.0)),
}
"""The arms of README's picture, each with its label, and where that begins: hours, and percent."""

SECONDS = {f"virtual time ({unit})": seconds for seconds, unit in TIME_UNITS}
"""Seconds in the unit of an axis, by its title."""

REPORT = "report"
WINDOW = 1280, 1440
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
SCHEMES = {"dark": 0, "light": 1}
"""Chromium's numbers of what a reader prefers."""


def played(configuration: str, options: Sequence[str]) -> Path:
    """The run directory of a shipped configuration, played or resumed if it is not finished."""
    directory = PLAYED / configuration.replace("/", "-")
    program = str(Path(sys.executable).with_name("driftscale"))
    command = [program, "run", configuration, *options, "--jobs", "auto", "--out", str(directory)]
    subprocess.run(command, check=True)
    return directory


def draw(
    directory: Path,
    name: str,
    arms: Sequence[str],
    labels: Mapping[str, tuple[str, tuple[float, float]]] | None = None,
    *,
    is_personal: bool = False,
) -> None:
    """Write the accuracies of these arms as `name`; those without a label at their lines are in a legend.

    With `is_personal` they are of what clients use: of their personal models, in arms that have some.
    """
    results = driftscale.load(directory)
    plotted = results.plot_personal() if is_personal else results.plot_accuracy()
    by_name = {line.name: line for line in plotted.data}
    used = {arm: [by_name.get(f"{arm}{which}") for which in (", personal", ", served", "")] for arm in arms}
    lines = {arm: next(filter(None, of_arm)) for arm, of_arm in used.items() if any(of_arm)}
    if missing := [arm for arm in arms if arm not in lines]:
        raise SystemExit(f"{directory}: has no finished arm {', '.join(missing)}")
    horizon_s = results.config["report"].get("horizon_s", math.inf)
    title = plotted.layout.xaxis.title.text
    until = min(horizon_s / SECONDS[title], *(float(line.x[-1]) for line in lines.values()))
    for page, (text, grid, colours) in PAGES.items():
        figure, axes = plt.subplots(figsize=(7.6, 3.6))
        for arm, colour, dash in zip(arms, colours, DASHES, strict=False):
            shown = thinned(len(lines[arm].x), MOST_POINTS)
            x, y = lines[arm].x[shown], lines[arm].y[shown]
            axes.plot(x, y, linestyle=dash, color=colour, linewidth=2, label=arm)
            if labels is not None:
                label, at = labels[arm]
                axes.text(*at, label, color=colour, fontsize=10)
        axes.set_xlim(0, until)
        axes.set_xlabel(title, color=text)
        axes.set_ylabel(plotted.layout.yaxis.title.text, color=text)
        if labels is not None:
            axes.set_ylim(20, 85)
        else:
            axes.legend(frameon=False, labelcolor="linecolor", loc="center left", bbox_to_anchor=(1, 0.5))
        axes.grid(color=grid, linewidth=0.6)
        axes.tick_params(colors=text, length=0)
        axes.spines[:].set_visible(False)
        figure.tight_layout()
        save(figure, name, page)


def save(figure: Figure, name: str, page: str) -> None:
    """Write a picture for light or for dark pages, and close it."""
    path = DRAWN / f"{name}-{page}.svg"
    with naming_file(path):
        figure.savefig(path, transparent=True, metadata={"Date": None})
    plt.close(figure)


def photograph(directory: Path) -> None:
    """Write a picture of the report as it opens."""
    chromium = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if chromium is None:
        raise SystemExit(f"the picture of a report needs a browser on the path: {', '.join(CHROMIUM)}")
    size, page = f"--window-size={WINDOW[0]},{WINDOW[1]}", (directory / "report.html").as_uri()
    for scheme, number in SCHEMES.items():
        flags = (
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--virtual-time-budget=10000",
        )
        prefers = f"--blink-settings=preferredColorScheme={number}"
        saved = f"--screenshot={DRAWN / f'{REPORT}-{scheme}.png'}"
        subprocess.run([chromium, *flags, size, prefers, saved, page], check=True, capture_output=True)


if __name__ == "__main__":
    DRAWN.mkdir(exist_ok=True)
    digits = played("digits", ())
    draw(digits, "accuracy", list(README), README)
    photograph(digits)
    for family in FAMILIES.values():
        directory = played(family.configuration, family.options)
        draw(directory, family.name, family.arms, is_personal=family.is_personal)
