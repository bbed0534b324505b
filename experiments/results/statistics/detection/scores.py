"""The scores of the detectors of a run, and the figures of an arm over its seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from emulator.arrays import Bools, Floats
from experiments.results.reading.detection import DetectionSettings
from experiments.results.reading.run_directory import ReportedRun
from experiments.results.statistics.comparisons import Comparison
from experiments.results.statistics.detection.by_drift import NEVER, DriftScores, score_drifts
from experiments.results.statistics.detection.columns import decisions_of, drifts_of
from experiments.results.statistics.detection.confusion import Confusion, confusion, ratio
from experiments.results.statistics.intervals import Estimate, amount_estimate, share_estimate

REPRESENTATION = "representation"
"""What detectors watch that decide as a round opens; others have decided by its close.

One that watches training decides at the close, where updates are absorbed. One that watches arrivals decides
at a dispatch in the round. The log has the instant of the first one, and a round may have many: the close is
the bound that flatters no detector, and overstates the time to a decision by less than a round.
"""

SHARES = ("recall_asked", "recall_all", "undrifted_flagged", "accuracy", "precision", "recall", "f1")
"""The figures that are shares; all others are amounts."""

COUNTS = (
    *("drifts", "found", "never_asked", "false_alarms", "repeats", "decisions"),
    *("tp", "tn", "fp", "fn", "clipped"),
)
"""The figures that are whole numbers in a run, and always defined."""

FIGURES = (
    *("drifts", "found", "never_asked", "recall_asked", "recall_all", "delay_rounds_median"),
    *("delay_rounds_90", "delay_s_median", "delay_s_90", "asked_s_median", "found_s_median"),
    *("false_alarms", "repeats", "false_alarms_per_1000", "undrifted_flagged"),
    *("decisions", "tp", "tn", "fp", "fn"),
    *("accuracy", "precision", "recall", "f1", "clipped"),
)
"""The names of all figures, in the order of `summary.json`."""


@dataclass(frozen=True, eq=False)
class DetectorScores:
    """The scores of a detector in one run.

    Attributes:
        watched: "representation", "arrivals" or "training".
        by_drift: Drifts found, and false alarms.
        confusion: Its decisions in scored rounds, one by one.
        clipped: The numbers outside its domain in the whole run.
        kinds: The names of all kinds of drifts of the run.
    """

    watched: str
    by_drift: DriftScores
    confusion: Confusion
    clipped: int
    kinds: Sequence[str]

    def figures(self) -> dict[str, float | None]:
        """The figures by their names in `summary.json`; None where they are not defined."""
        scores, count = self.by_drift, self.confusion
        is_found, num_asked = scores.found != NEVER, int((scores.asked != NEVER).sum())
        drifts, found = len(scores.drifts), int(is_found.sum())
        rest_s = scores.delay_s - scores.asked_s
        alarms = ratio(scores.false_alarms, scores.decisions)
        return {
            "drifts": drifts,
            "found": found,
            "never_asked": drifts - num_asked,
            "recall_asked": ratio(found, num_asked),
            "recall_all": ratio(found, drifts),
            "delay_rounds_median": _median(scores.delays[is_found].astype(np.float64)),
            "delay_rounds_90": _ninety(scores.delays[is_found].astype(np.float64)),
            "delay_s_median": _median(scores.delay_s[is_found]),
            "delay_s_90": _ninety(scores.delay_s[is_found]),
            "asked_s_median": _median(scores.asked_s[is_found]),
            "found_s_median": _median(rest_s[is_found]),
            "false_alarms": scores.false_alarms,
            "repeats": scores.repeats,
            "false_alarms_per_1000": None if alarms is None else 1000 * alarms,
            "undrifted_flagged": ratio(scores.undrifted_flagged, scores.undrifted),
            "decisions": scores.decisions,
            "tp": count.tp,
            "tn": count.tn,
            "fp": count.fp,
            "fn": count.fn,
            "accuracy": count.accuracy,
            "precision": count.precision,
            "recall": count.recall,
            "f1": count.f1,
            "clipped": self.clipped,
        }

    def of_kind(self, kind: str) -> dict[str, float | None]:
        """Of the drifts of one kind, their number, how many were found, and that share."""
        if kind not in self.kinds:
            return {"drifts": 0, "found": 0, "recall_all": None}
        is_one: Bools = self.by_drift.drifts.kind == self.kinds.index(kind)
        drifts, found = int(is_one.sum()), int((is_one & (self.by_drift.found != NEVER)).sum())
        return {"drifts": drifts, "found": found, "recall_all": ratio(found, drifts)}


def is_recorded(run: ReportedRun) -> bool:
    """Whether the log of the run has decisions of detectors, or says that it has no detector."""
    return "detectors" in run.header and "drifts" in run.header


def score_run(run: ReportedRun, settings: DetectionSettings) -> dict[str, DetectorScores]:
    """The scores of each detector of a run whose decisions are recorded, by its name."""
    detectors: Mapping[str, str] = run.header["detectors"]
    table: Mapping[str, Any] = run.header["drifts"]
    records = run.records
    if not detectors or not records:
        return {}
    drifts = drifts_of(table, np.array([record.step for record in records], dtype=np.int64))
    told_apart = drifts.one_for_each_onset()
    opened_s, closed_s = (
        np.array([getattr(record, name) for record in records], dtype=np.float64)
        for name in ("opened_s", "closed_s")
    )
    last = len(records) - 1 if settings.last_round is None else min(settings.last_round, len(records) - 1)
    kinds = [str(name) for name in table["kinds"]]
    scores = {}
    for name, watched in detectors.items():
        decisions = decisions_of(records, watched, name)
        by_drift = score_drifts(
            decisions,
            told_apart,
            first_round=settings.first_round,
            last_round=last,
            tolerance=settings.tolerance,
            opened_s=opened_s,
            decided_s=opened_s if watched == REPRESENTATION else closed_s,
        )
        scored = decisions.within(settings.first_round, last)
        clipped = (records[-1].clipped or {}).get(name, 0)
        counts = confusion(scored, drifts, kinds, settings)
        scores[name] = DetectorScores(watched, by_drift, counts, clipped, kinds)
    return scores


@dataclass(frozen=True)
class DetectorFigures:
    """The figures of a detector of an arm over its seeds.

    Attributes:
        watched: "representation", "arrivals" or "training".
        figures: Those of `DetectorScores.figures`.
        kinds: By kind of drift, those of `DetectorScores.of_kind`.
    """

    watched: str
    figures: Mapping[str, Estimate]
    kinds: Mapping[str, Mapping[str, Estimate]]

    @property
    def decides(self) -> bool:
        """Whether it made a decision in the scored rounds of some seed."""
        return any(self.figures["decisions"].per_seed)

    def as_json(self) -> dict[str, object]:
        """The entry in `summary.json`."""
        return {
            "watched": self.watched,
            **{name: estimate.as_json() for name, estimate in self.figures.items()},
            "kinds": {
                kind: {name: estimate.as_json() for name, estimate in found.items()}
                for kind, found in self.kinds.items()
            },
        }


@dataclass(frozen=True)
class Detection:
    """The figures of the detectors of each arm that has some, in the order of the arms.

    Attributes:
        settings: How decisions are scored.
        arms: By arm and name of the detector.
        kinds: The names of all kinds of drifts.
    """

    settings: DetectionSettings
    arms: Mapping[str, Mapping[str, DetectorFigures]]
    kinds: Sequence[str]

    def as_json(self) -> dict[str, object]:
        """The entry `detection` of `summary.json`."""
        return {
            "positive": self.settings.positive_as_json(),
            "first_round": self.settings.first_round,
            "last_round": self.settings.last_round,
            "tolerance": self.settings.tolerance,
            "arms": {
                arm: {name: found.as_json() for name, found in detectors.items()}
                for arm, detectors in self.arms.items()
            },
        }


def detection_of(arms: Sequence[Comparison], settings: DetectionSettings) -> Detection | None:
    """The figures of the detectors of `arms`; None if no run recorded decisions of a detector."""
    scored = [
        arm
        for arm in arms
        if all(is_recorded(run) for run in arm.runs) and all(run.header["detectors"] for run in arm.runs)
    ]
    found = {arm.arm: [score_run(run, settings) for run in arm.runs] for arm in scored}
    kinds = dict.fromkeys(
        str(kind) for arm in scored for run in arm.runs for kind in run.header["drifts"]["kinds"]
    )
    of_arm = {arm.arm: arm for arm in scored}
    figures = {
        arm: {
            name: _over_seeds(of_arm[arm], [of_seed[name] for of_seed in by_seed], list(kinds))
            for name in by_seed[0]
            if all(name in of_seed for of_seed in by_seed)
        }
        for arm, by_seed in found.items()
    }
    figures = {arm: detectors for arm, detectors in figures.items() if detectors}
    return Detection(settings, figures, list(kinds)) if figures else None


def _over_seeds(arm: Comparison, scores: Sequence[DetectorScores], kinds: Sequence[str]) -> DetectorFigures:
    return DetectorFigures(
        scores[0].watched,
        _estimates(arm, [of_seed.figures() for of_seed in scores]),
        {kind: _estimates(arm, [of_seed.of_kind(kind) for of_seed in scores]) for kind in kinds},
    )


def _estimates(arm: Comparison, by_seed: Sequence[Mapping[str, float | None]]) -> dict[str, Estimate]:
    return {
        name: arm.stated(
            (share_estimate if name in SHARES else amount_estimate)([values[name] for values in by_seed])
        )
        for name in by_seed[0]
    }


def _median(values: Floats) -> float | None:
    return float(np.median(values)) if len(values) else None


def _ninety(values: Floats) -> float | None:
    """The least of the values that 90 % of them do not exceed."""
    return float(np.quantile(values, 0.9, method="inverted_cdf")) if len(values) else None
