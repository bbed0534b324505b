"""Accuracies of clients at the horizon, sorted, and gains over themselves under the reference arm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from emulator.arrays import Floats
from experiments.results.drawing.arms import Arm, add_spread
from experiments.results.drawing.plain_figure import PlainFigure
from experiments.results.drawing.plot import Plot
from experiments.results.drawing.style import INK, blank_figure
from experiments.results.figures.figure import Figure
from experiments.results.reading.not_recorded import LOG_CLIENTS, NotRecordedError
from experiments.results.statistics.clients.accuracy import ClientAccuracy
from experiments.results.tables.clients import are_logged
from experiments.results.tables.report import Report
from experiments.results.wording import told

PERCENT: Floats = np.linspace(0, 100, 101)
MOST_BANDS = 8
"""Most arms whose range of seeds is drawn: with more, bands and bars hide the means."""

Evaluations = Mapping[str, Sequence[ClientAccuracy | None]]
"""By arm, the last evaluation of each seed by the horizon; None where none is logged."""


def client_accuracy_figure(arms: Sequence[Arm], found: Evaluations) -> PlainFigure:
    """The accuracy (%) that a share of clients stays at or below: quantiles, means over seeds."""
    figure = _blank("accuracy at or below (%)")
    for arm in arms:
        seeds = [100 * seed.quantiles(PERCENT / 100) for seed in found[arm.name] if seed is not None]
        _add_quantiles(figure, arm, seeds, has_band=len(arms) <= MOST_BANDS)
    return figure


def client_gain_figure(arms: Sequence[Arm], found: Evaluations) -> PlainFigure:
    """Gains (pp) of clients over themselves under the first of `arms`, sorted: quantiles, means over seeds.

    Seeds are paired by their position in the runs of an arm, which must all be runs of the first arm too.
    """
    figure = _blank("gain at or below (pp)")
    reference = {run.seed: seed for run, seed in zip(arms[0].runs, found[arms[0].name], strict=True)}
    for arm in arms[1:]:
        pairs = [(ours, reference.get(run.seed)) for run, ours in zip(arm.runs, found[arm.name], strict=True)]
        gains = [ours.gains_over(base) for ours, base in pairs if ours is not None and base is not None]
        seeds = [100 * np.quantile(seed, PERCENT / 100) for seed in gains if len(seed)]
        _add_quantiles(figure, arm, seeds, has_band=len(arms) <= MOST_BANDS)
    figure.add_hline(y=0, line={"color": INK, "width": 1.2, "dash": "dash"})
    return figure


def _blank(y_title: str) -> PlainFigure:
    """A figure against the share of clients, without its lines."""
    figure = blank_figure(440, x_title="share of clients (%)", y_title=y_title)
    figure.update_xaxes(range=[0, 100], dtick=10)
    return figure


def _add_quantiles(figure: PlainFigure, arm: Arm, seeds: Sequence[Floats], *, has_band: bool) -> None:
    """Draw the mean over seeds of quantiles at `PERCENT`, in a band from the lowest seed to the highest."""
    text = f"{arm.label}: %{{x:.0f}} % of clients, up to %{{y:.1f}}<extra></extra>"
    if seeds:
        curves = [(PERCENT, quantiles) for quantiles in seeds]
        add_spread(figure, arm, curves, has_band=has_band, hovertemplate=text)


def refuse_unlogged(report: Report) -> None:
    """Raise NotRecordedError if no run has logged the accuracies of clients by the horizon."""
    if not are_logged(report.summary):
        what = told(report.summary.words, "accuracy of clients")
        raise NotRecordedError(str(report.directory.path), what, LOG_CLIENTS)


def bands(arms: Sequence[Arm]) -> str:
    has_bands = len(arms) <= MOST_BANDS and any(len(arm.runs) > 1 for arm in arms)
    return ", bands are the range of the seeds" if has_bands else ""


def _lines(arms: Sequence[Arm]) -> str:
    """A sentence on the lines of a figure."""
    if max(len(arm.runs) for arm in arms) == 1:
        return "Lines are of a single seed."
    return f"Lines are means over seeds{bands(arms)}."


def _accuracy_plots(report: Report) -> Iterator[Plot]:
    if are_logged(report.summary):
        yield Plot(
            "client-accuracy",
            "Accuracy of clients, from the worst to the best",
            "The share of clients whose accuracy at the horizon is at or below a value: at 10 % is the first "
            f"decile, at 50 % the median client. {_lines(report.arms)}",
            client_accuracy_figure(report.arms, report.clients),
        )


def _gain_plots(report: Report) -> Iterator[Plot]:
    arms = report.arms
    if are_logged(report.summary) and len(arms) > 1:
        yield Plot(
            "client-gain",
            f"Gain of each client over {arms[0].name}",
            "Gains of clients over themselves under the reference arm, from the largest loss to the "
            "largest gain: the clients left of where a line reaches 0 are worse off. "
            f"{_lines(arms)} Two arms that are equally good for everyone differ client by "
            "client, by chance: their curve is on average as far below 0 on the left as it is above 0 on "
            "the right.",
            client_gain_figure(arms, report.clients),
        )


CLIENT_ACCURACY = Figure("for-whom", _accuracy_plots, needs=LOG_CLIENTS, refuse=refuse_unlogged)
CLIENT_GAIN = Figure(
    "for-whom",
    _gain_plots,
    "no figure client-gain: the runs do not say which client is in which group",
    needs=LOG_CLIENTS,
    refuse=refuse_unlogged,
)
