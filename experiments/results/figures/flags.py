"""Flags of detectors over rounds, beside who drifts when; and what they find at which false alarms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from emulator.arrays import Ints
from experiments.results.drawing.arms import Arm
from experiments.results.drawing.menus import add_choices, list_clause
from experiments.results.drawing.plain_figure import PlainFigure, Trace, trace
from experiments.results.drawing.plot import Plot
from experiments.results.drawing.style import CLUSTER_COLOURS, MAX_SEED_POINTS, blank_figure, verbatim
from experiments.results.figures.figure import Figure
from experiments.results.reading.detection import detection_settings
from experiments.results.reading.header_truth import clients_of
from experiments.results.reading.not_recorded import DETECTION, NotRecordedError
from experiments.results.reading.run_directory import ReportedRun
from experiments.results.statistics.detection.columns import drifts_of
from experiments.results.statistics.detection.curves import DELAY, FOUND, RATES, Curve, curves_of
from experiments.results.tables.report import Report

DRIFT_COLOUR = "#cbd2d9"

OPERATING = "A line joins the thresholds of a detector that were played, means over seeds, by false alarms."

UNSWEPT = "no detector was played at several thresholds"


def flags_figure(arms: Sequence[Arm]) -> PlainFigure:
    """A line for each detector, of the first seed of an arm, over bars of drifts; one arm is shown at a time.

    Each of `arms` has a detector. At most `MAX_SEED_POINTS` points are drawn, each of equally many rounds.
    """
    figure = blank_figure(420, x_title="round", y_title="flags (% of decisions)")
    figure.update_yaxes(rangemode="tozero")
    add_choices(figure, [(arm.label, _traces(arm.runs[0])) for arm in arms])
    return figure


def _traces(run: ReportedRun) -> Iterator[Trace]:
    """The bars of drifts, if they are known, and the lines of the detectors that made decisions."""
    rounds = len(run.records)
    size = -(-rounds // MAX_SEED_POINTS)
    first = np.arange(0, rounds, size)
    middle = (first + (np.minimum(first + size, rounds) - 1 - first) / 2).astype(np.float32)
    num_clients = clients_of(run.header)
    if num_clients is not None:
        yield trace(
            "bar",
            x=middle,
            y=(100 * np.add.reduceat(onsets_by_round(run), first) / num_clients).astype(np.float32),
            width=size,
            marker={"color": DRIFT_COLOUR},
            name="drifts (% of clients)",
            visible=False,
            hovertemplate="round %{x}: drifts of %{y:.3g} % of clients<extra></extra>",
        )
    for number, (name, watched) in enumerate(run.header["detectors"].items()):
        flags, decisions = (np.add.reduceat(counts, first) for counts in counts_by_round(run, name, watched))
        decided = decisions > 0
        if decided.any():
            yield trace(
                "scatter",
                x=middle[decided],
                y=(100 * flags[decided] / decisions[decided]).astype(np.float32),
                mode="lines+markers",
                marker={"size": 4},
                line={"color": CLUSTER_COLOURS[number % len(CLUSTER_COLOURS)], "width": 1.5},
                name=verbatim(name),
                visible=False,
                hovertemplate="round %{x}: %{y:.3g} % of decisions<extra></extra>",
            )


def counts_by_round(run: ReportedRun, name: str, watched: str) -> tuple[Ints, Ints]:
    """(rounds,) the flags of a detector, and its decisions."""
    flags = [len((record.flagged or {}).get(name, ())) for record in run.records]
    decisions = [len((record.decided or {}).get(watched, ())) for record in run.records]
    return np.array(flags, dtype=np.int64), np.array(decisions, dtype=np.int64)


def onsets_by_round(run: ReportedRun) -> Ints:
    """(rounds,) the clients of which a drift begins in each round."""
    steps = np.array([record.step for record in run.records], dtype=np.int64)
    drifts = drifts_of(run.header["drifts"], steps).one_for_each_onset()
    return np.bincount(drifts.onset, minlength=len(steps)).astype(np.int64)


def _refuse_without_detection(report: Report) -> None:
    if detection_settings(report.experiment) is None:
        raise NotRecordedError(str(report.directory.path), "decisions of detectors", DETECTION)


def _plots(report: Report) -> Iterator[Plot]:
    detection = report.summary.detection
    deciding = {
        arm
        for arm, detectors in ({} if detection is None else detection.arms).items()
        if any(found.decides for found in detectors.values())
    }
    arms = [arm for arm in report.arms if arm.name in deciding]
    if not arms:
        return
    rounds = max(len(arm.runs[0].records) for arm in arms)
    joined = (
        f" Points are of {-(-rounds // MAX_SEED_POINTS)} rounds each." if rounds > MAX_SEED_POINTS else ""
    )
    caption = (
        "Lines: of the decisions that a detector makes in a round, the share that are flags. Bars: drifts "
        "that begin in the round, as a share of all clients. A flag that stays up counts at each decision. "
        f"The first seed of an arm is drawn{list_clause(arms)}.{joined}"
    )
    yield Plot("flags", "Who is flagged, and who drifts", caption, flags_figure(arms))


def operating_figure(curves: Sequence[Curve]) -> PlainFigure:
    """A line for each curve against false alarms; what detectors find, or its mean delay, is shown at a time.

    At first it shows twice the largest of the `RATES`; thresholds may lie to the right of that.
    """
    titles = {FOUND: "drifts found (share)", DELAY: "their mean delay (rounds)"}
    y_title = " or ".join(titles.values())
    figure = blank_figure(460, x_title="false alarms per 1,000 decisions", y_title=y_title)
    figure.update_xaxes(range=[-0.02 * RATES[-1], 2 * RATES[-1]])
    add_choices(figure, [(title, _lines(curves, name)) for name, title in titles.items()])
    return figure


def _lines(curves: Sequence[Curve], name: str) -> Iterator[Trace]:
    """The line of each curve in the figure `name`, with a gap where a threshold has none."""
    for number, curve in enumerate(curves):
        yield trace(
            "scatter",
            x=[point.place[0] for point in curve.points],
            y=[point.figures[name].mean for point in curve.points],
            text=[f"{point.thresholds[0]:g}" for point in curve.points],
            mode="lines+markers",
            line={"color": CLUSTER_COLOURS[number % len(CLUSTER_COLOURS)], "width": 1.5},
            name=verbatim(f"{curve.name} ({curve.arm})"),
            visible=False,
            hovertemplate="threshold %{text}: %{y:.3g} at %{x:.3g}",
        )


def _operating_plots(report: Report) -> Iterator[Plot]:
    if curves := curves_of(report.summary.detection):
        yield Plot("operating_points", "Operating points", OPERATING, operating_figure(curves))


OPERATING_POINTS = Figure("why", _operating_plots, UNSWEPT, DETECTION, refuse=_refuse_without_detection)

FIGURE = Figure("why", _plots, "no detector made decisions", DETECTION, refuse=_refuse_without_detection)
