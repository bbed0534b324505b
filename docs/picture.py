"""Draws README's picture from a run directory: accuracy over virtual time, for light and for dark pages.

    python docs/picture.py runs/digits docs

The lines are those of `Results.plot_accuracy`, means over seeds. Needs the extra `dev` (Matplotlib).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import matplotlib as mpl

import driftscale
from emulator.storage.checkpoints import naming_file
from experiments.results.drawing.style import thinned

mpl.use("svg")
from matplotlib import pyplot as plt

# Colours of text and of lines: each has a contrast of at least 4.5 to 1 against its page.
PAGES: Mapping[str, Mapping[str, str]] = {
    "light": {
        "text": "#24292f",
        "grid": "#d0d7de",
        "global": "#57606a",
        "static": "#9a4a00",
        "prior": "#7a3e9d",
        "fielding": "#005cc5",
    },
    "dark": {
        "text": "#e6edf3",
        "grid": "#3d444d",
        "global": "#9da7b3",
        "static": "#f0a35e",
        "prior": "#d2a8ff",
        "fielding": "#79b8ff",
    },
}
MOST_POINTS = 120  # of a line
LABELS = {
    "global": "one model",
    "static": "clusters, made once",
    "prior": "one model, each client's own label counts",
    "fielding": "Fielding: clusters that follow",
}
DASHES = {"global": "-", "static": "-.", "prior": "--", "fielding": "-"}
LABEL_AT = {"global": (3.0, 53.0), "static": (8.3, 52.5), "prior": (11.5, 77.5), "fielding": (9.2, 62.0)}
"""Where each label begins: hours, and percent."""


def draw(run_directory: Path, folder: Path) -> list[Path]:
    """Write `accuracy-light.svg` and `accuracy-dark.svg` into `folder`; returns their paths."""
    results = driftscale.load(run_directory)
    lines = {line.name: line for line in results.plot_accuracy().data if line.name in LABELS}
    if missing := LABELS.keys() - lines.keys():
        raise SystemExit(f"{run_directory}: has no finished arm {', '.join(sorted(missing))}")
    horizon_h = results.config["report"]["horizon_s"] / 3600
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "driftscale", "font.family": "sans-serif"})
    written = []
    for page, colours in PAGES.items():
        figure, axes = plt.subplots(figsize=(7.6, 3.6))
        for name in LABELS:
            drawn = thinned(len(lines[name].x), MOST_POINTS)
            hours, percent = lines[name].x[drawn], lines[name].y[drawn]
            axes.plot(hours, percent, DASHES[name], color=colours[name], linewidth=2)
            x, y = LABEL_AT[name]
            axes.text(x, y, LABELS[name], color=colours[name], fontsize=10)
        axes.set(xlim=(0, horizon_h), ylim=(20, 85), xticks=range(0, int(horizon_h) + 1, 3))
        axes.set_xlabel("virtual time (h)", color=colours["text"])
        axes.set_ylabel("mean accuracy of clients (%)", color=colours["text"])
        axes.grid(color=colours["grid"], linewidth=0.6)
        axes.tick_params(colors=colours["text"], length=0)
        axes.spines[:].set_visible(False)
        figure.tight_layout()
        path = folder / f"accuracy-{page}.svg"
        with naming_file(path):
            figure.savefig(path, transparent=True, metadata={"Date": None})
        plt.close(figure)
        written.append(path)
    return written


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("picture.py RUN_DIRECTORY FOLDER")
    for path in draw(Path(sys.argv[1]), Path(sys.argv[2])):
        print(path)
