"""How well detectors find drifts: by drift, and decision by decision.

`detection` of `summary.json` has for each detector of an arm, over the scored rounds:

    drifts                 drifts that begin in them; those of a client that begin in one round are one
    found, never_asked     those with a true flag, and those without a decision within the tolerance
    recall_asked           found / (drifts - never_asked)
    recall_all             found / drifts
    delay_rounds_mean, delay_rounds_median, delay_rounds_90
                           rounds from a found drift to its flag: the mean, the median, and what 90 % do not
                           exceed
    delay_s_median, delay_s_90
                           the same in virtual seconds, from the opening of the round in which it begins
    asked_s_median, found_s_median
                           of that delay, and so of found drifts only, the part until the first decision about
                           the client, and the rest
    false_alarms, repeats  flags that are false, and flags that are neither true nor false
    false_alarms_per_1000  false alarms per 1,000 decisions
    undrifted_flagged      of the clients without a drift about which it decided, those that were flagged
    decisions              decisions about a client in a round; of these
    tp, tn, fp, fn         true and false positives and negatives, and their
    accuracy, precision, recall, f1
    clipped                numbers outside the domain of the detector, in the whole run

A ratio without a denominator is null, and so is a delay without a drift that was found. Which flags are true
is said by statistics/detection/by_drift.py, which decisions should be flags by confusion.py beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from experiments.results.reading.detection import CHANGED, DetectionSettings
from experiments.results.reading.not_recorded import DETECTION
from experiments.results.statistics.comparisons import Comparison
from experiments.results.statistics.detection.curves import DELAY, FOUND, RATES, Curve, curves_of
from experiments.results.statistics.summary import Summary
from experiments.results.tables.cells import NOTHING, Cell
from experiments.results.tables.quantities import SECONDS, SHARE, Quantity, any_measured, is_ever_above_0
from experiments.results.tables.report import Report
from experiments.results.tables.table import (
    InTerminal,
    NotedTable,
    OnPage,
    Place,
    Table,
    TextTable,
    text_table,
)

if TYPE_CHECKING:
    from experiments.results.statistics.detection.scores import Detection


BY_DRIFT = (
    Quantity("drifts", None, "", "drifts"),
    Quantity("found", None, "", "found"),
    Quantity("never_asked", None, "", "never asked"),
    Quantity("recall_asked", None, SHARE, "found of those asked"),
    Quantity("recall_all", None, SHARE, "found of all"),
    Quantity("delay_rounds_median", None, "", "of those found: rounds, median"),
    Quantity("delay_rounds_90", None, "", "rounds, 90 %", in_terminal=False),
    Quantity("delay_s_median", None, SECONDS, "time, median"),
    Quantity("delay_s_90", None, SECONDS, "time, 90 %", in_terminal=False),
    Quantity("asked_s_median", None, SECONDS, "until asked", in_terminal=False),
    Quantity("found_s_median", None, SECONDS, "from asked to found", in_terminal=False),
    Quantity("false_alarms_per_1000", None, "", "false alarms per 1,000 decisions"),
    Quantity("undrifted_flagged", None, SHARE, "clients without drift flagged", only_if=any_measured),
    Quantity("clipped", None, "", "numbers clipped", only_if=is_ever_above_0),
)

BY_DECISION = (
    Quantity("decisions", None, "", "decisions"),
    Quantity("tp", None, "", "true positives"),
    Quantity("tn", None, "", "true negatives"),
    Quantity("fp", None, "", "false positives"),
    Quantity("fn", None, "", "false negatives"),
    Quantity("accuracy", None, SHARE, "accuracy"),
    Quantity("precision", None, SHARE, "precision"),
    Quantity("recall", None, SHARE, "recall"),
    Quantity("f1", None, SHARE, "F1"),
)

AT_RATE = (
    Quantity(FOUND, None, SHARE, "found"),
    Quantity(DELAY, None, "", "of those: mean delay, rounds"),
)
"""The columns of detectors at a rate of false alarms."""

BY_LOT = (
    "Figures are those of a detector whose clients draw one of the two thresholds by lot, so that its false "
    "alarms are in the mean what is compared; intervals count that these differ by seed. Delays compare only "
    "where as much is found. A dash: no two played thresholds enclose the rate; what they reached is in "
    "brackets."
)

LATCHES = (
    "These figures flatter latches, detectors that keep a flag up: a drift that such a detector finds once "
    "makes every later decision about the client a true positive, and as many false negatives of a detector "
    "that starts anew after its flag. The table by drift counts both as one."
)

CLIPPED = "Numbers clipped were outside the domain of the detector, in whole runs."

RANGES = (
    "A flag that stays up after these rounds is as many false positives; the table by drift counts it once, "
    "as found, and then as repeats."
)


class OfDetectors(TextTable):
    """A table in which accuracy is that of decisions, whatever the objective of models."""

    def with_texts(self, tell: object) -> TextTable:
        return self


def detector_tables(detection: Detection, *, in_terminal: bool) -> tuple[TextTable, TextTable]:
    """The table by drift and the one by decision, each with a row for each detector that made decisions."""
    kinds = detection.kinds if len(detection.kinds) > 1 else []
    by_kind = [
        Quantity(f"found of {kind}", None, SHARE, f"found, {kind}", only_if=any_measured) for kind in kinds
    ]
    by_drift = _with_names(detection, [*BY_DRIFT, *by_kind], in_terminal)
    return by_drift, _with_names(detection, BY_DECISION, in_terminal)


def _with_names(detection: Detection, columns: Sequence[Quantity], in_terminal: bool) -> TextTable:
    """A row for each detector, whose name is in the first column."""
    deciding = [(arm, name, found) for arm, name, found in detection.detectors if found.decides]
    rows = []
    for arm, _, found in deciding:
        by_kind = {f"found of {kind}": of_kind["recall_all"] for kind, of_kind in found.kinds.items()}
        figures = {**by_kind, **found.figures}
        rows.append(Comparison(arm, [], [], is_reference=False, figures=figures))
    shown = text_table(columns, rows, in_terminal=in_terminal)
    cells = [cells for _, cells in shown.rows]
    named = [(arm, [Cell(name), *of_one]) for (arm, name, _), of_one in zip(deciding, cells, strict=True)]
    return OfDetectors(["detector", *shown.headings], named, num_keys=1)


def at_rates(curves: Sequence[Curve]) -> NotedTable:
    """A row for each detector at each of the `RATES`, with dashes if no two thresholds enclose it."""
    points = [(rate, curve, curve.at(rate)) for rate in RATES for curve in curves]
    figures = [dict(point.figures) for _, _, point in points if point is not None]
    known = text_table(AT_RATE, [Comparison("", [], [], is_reference=False, figures=of) for of in figures])
    cells, rows = iter(known.rows), []
    for rate, curve, point in points:
        played = f"({curve.points[0].place[0]:.3g} to {curve.points[-1].place[0]:.3g})"
        between = played if point is None else "{:g} to {:g}".format(*point.thresholds)
        shown = [Cell(NOTHING)] * len(AT_RATE) if point is None else next(cells)[1]
        rows.append((curve.arm, [Cell(f"{rate:g}"), Cell(curve.name), Cell(between), *shown]))
    headings = ["at", "detector", "thresholds", *(column.heading for column in AT_RATE)]
    return NotedTable("At the same false alarms per 1,000 decisions", TextTable(headings, rows, 2), [BY_LOT])


def _of(summary: Summary) -> Detection:
    assert summary.detection is not None, "the table says something"
    return summary.detection


def _captioned(summary: Summary, as_printed: bool) -> list[tuple[str, TextTable]]:
    detection = _of(summary)
    captions = ("drifts found by detectors", "decisions of detectors, one by one")
    tables = detector_tables(detection, in_terminal=as_printed)
    return list(zip(captions, tables, strict=True)) if detection.decides else []


def _on_page(report: Report) -> OnPage:
    detection = _of(report.summary)
    if not detection.decides:
        return OnPage(remarks=[_without_decisions(detection)])
    by_drift, by_decision = detector_tables(detection, in_terminal=False)
    curves = curves_of(detection)
    return OnPage(
        [
            *([at_rates(curves)] if curves else []),
            NotedTable("By drift", by_drift, [_on_drifts(detection)]),
            NotedTable("By decision", by_decision, [_on_decisions(detection)]),
        ]
    )


def _note(summary: Summary) -> str:
    detection = _of(summary)
    notes = [_on_drifts, _on_decisions] if detection.decides else [_without_decisions]
    return " ".join(note(detection) for note in notes)


def _on_drifts(detection: Detection) -> str:
    settings = detection.settings
    last = "the last" if settings.last_round is None else settings.last_round
    within = f"{settings.tolerance} round{'' if settings.tolerance == 1 else 's'}"
    sentences = [
        f"Scored are the rounds from {settings.first_round} to {last}.",
        "A flag is true, and finds a drift, if it is the first one of its client since the client's newest "
        f"drift, and at most {within} after it. Further flags up to the client's next drift are repeats, "
        "neither true nor false. All other flags are false alarms: of clients without a drift so far, and of "
        "drifts that were not found in time.",
        f"Never asked are drifts after which no decision was made about the client for {within}, or up to "
        "its next drift.",
        "Times are virtual, from the opening of the round in which a drift begins to the decision, which a "
        "detector of representations makes as its round opens, one of training at its close, and one of "
        "arrivals by then. They are the time until the first decision about the client, and the time from it "
        "to the flag; of these, medians do not add up. All are of drifts that were found: a detector "
        "that finds only the easy ones has short delays. They are empty if some seed has none. A flag that "
        "was up before a drift counts as finding it at the first decision after.",
        "Clients without drift are those about which it decided and that have no drift up to the last scored "
        "round; an interval of width 0 says that the seeds agree, not that a figure is exact.",
        "A drift near the last scored round has fewer rounds to be found in, and counts all the same.",
        CLIPPED if is_ever_above_0([found.figures["clipped"] for _, _, found in detection.detectors]) else "",
        _without_decisions(detection),
    ]
    return " ".join(filter(None, sentences))


def _on_decisions(detection: Detection) -> str:
    sentence = f"A decision about a client should be a flag {_positive(detection.settings)}."
    after = LATCHES if detection.settings.positive == CHANGED else RANGES
    return " ".join(filter(None, [sentence, _on_unknown_kinds(detection), after]))


def _on_unknown_kinds(detection: Detection) -> str:
    """A sentence on kinds that no run has: settings may have changed since the runs were checked."""
    positive = detection.settings.positive
    unknown = sorted(set(positive) - set(detection.kinds)) if isinstance(positive, Mapping) else []
    return f"No run has a drift of the kind {', '.join(unknown)}." if unknown else ""


def _positive(settings: DetectionSettings) -> str:
    before, positive = f"round {max(settings.first_round - 1, 0)}", settings.positive
    if isinstance(positive, Mapping):
        spans = [f"{kind}: {first} to {last}" for kind, (first, last) in positive.items()]
        return (
            f"if the client has had a drift after {before}, in the rounds of its kind ({', '.join(spans)}); "
            "of other kinds it never should"
        )
    changed = f"if the client's data are of another distribution than in {before}"
    return changed if isinstance(positive, str) else f"{changed}, in rounds {positive[0]} to {positive[1]}"


def _without_decisions(detection: Detection) -> str:
    """A sentence on detectors that made no decision; empty if all made some."""
    quiet = [f"{name} of {arm}" for arm, name, found in detection.detectors if not found.decides]
    return f"No decision in the scored rounds was made by {', '.join(quiet)}." if quiet else ""


TABLE = Table(
    title="Detection of drift",
    place=Place("why", id="detection", needs=DETECTION),
    says_something=lambda summary: summary.detection is not None,
    note=_note,
    in_terminal=InTerminal("", in_notebook=True),
    captioned=_captioned,
    on_page=_on_page,
)
