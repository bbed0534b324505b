"""Plot of cost against size as an SVG: a round and its selection by fleet size, training by cohort size.

The file depends on the figures only: it has no date and no random ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.figures import Figure
from emulator.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PANELS: Sequence[tuple[str, str, Sequence[tuple[str, str]]]] = (
    ("Cost of a round", "devices", (("round", "one emulated round"), ("selection", "selection alone"))),
    ("Cost of training", "clients a round", (("training", "one wave through the executor"),)),
)
"""For each panel: its title, the unit of its sizes, and its curves with their legends."""

DRAWN_BY = ("e1-size", "cohort-size")
"""The workloads whose figures are drawn."""

STYLE: dict[Any, Any] = {
    "svg.hashsalt": "driftscale",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def refuse_undrawable(names: Sequence[str], path: Path) -> None:
    """InputError unless the workloads `names` (empty: all) fill the plot, and the folder of `path` exists."""
    if not path.parent.is_dir():
        raise InputError(f"--plot {path}: no such folder: {path.parent}")
    missing = [name for name in DRAWN_BY if names and name not in names]
    if missing:
        raise InputError(
            f"--plot draws {' and '.join(DRAWN_BY)}; name {' and '.join(missing)} too, or no workload at all"
        )


def draw(figures: Sequence[Figure], path: Path) -> None:
    """Write the plot of the `figures` that have a curve; InputError if the file cannot be written."""
    import matplotlib as mpl
    from matplotlib.figure import Figure as Canvas

    with mpl.rc_context(STYLE):
        canvas = Canvas(figsize=(8.0, 3.4), layout="constrained")
        for axes, (title, sizes, curves) in zip(canvas.subplots(1, len(PANELS)), PANELS, strict=True):
            for curve, legend in curves:
                _draw_curve(axes, [item for item in figures if item.curve == curve], legend)
            axes.set(title=title, xlabel=sizes, ylabel="ms", xscale="log", yscale="log")
            axes.grid(alpha=0.3, which="major")
            axes.legend(frameon=False)
        try:
            canvas.savefig(path, format="svg", metadata={"Date": None})
        except OSError as error:
            raise InputError(f"--plot {path}: cannot be written ({error.strerror})") from error


def _draw_curve(axes: Axes, figures: Sequence[Figure], legend: str) -> None:
    """Draw a curve with its quartiles, and a dotted line: the cost of the smallest size, scaled linearly."""
    ordered = sorted(((item.size or 0, item.value, item.spread) for item in figures), key=lambda row: row[0])
    sizes = [size for size, _, _ in ordered]
    values = [value for _, value, _ in ordered]
    below = [max(value - spread.low, 0.0) for _, value, spread in ordered]
    above = [max(spread.high - value, 0.0) for _, value, spread in ordered]
    drawn = axes.errorbar(sizes, values, yerr=(below, above), marker="o", capsize=3, label=legend)
    linear = [values[0] * size / sizes[0] for size in sizes]
    axes.plot(sizes, linear, linestyle=":", linewidth=1, color=drawn.lines[0].get_color())
