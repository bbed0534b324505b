"""The scores of the detectors of a run, and the figures of an arm over its seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from experiments.results.reading.detection import DetectionSettings
from experiments.results.reading.run_directory import ReportedRun
from experiments.results.statistics.comparisons import Comparison
from experiments.results.statistics.detection.by_drift import DetectorScores, score_drifts
from experiments.results.statistics.detection.columns import decisions_of, drifts_of
from experiments.results.statistics.detection.confusion import confusion
from experiments.results.statistics.intervals import Estimate, amount_estimate, share_estimate

REPRESENTATION = "representation"
"""What detectors watch that decide as a round opens; others have decided by its close.

One that watches training decides at the close, where updates are absorbed. One that watches arrivals decides
at a dispatch in the round. The log has the instant of the first one, and a round may have many: the close is
the bound that flatters no detector, and overstates the time to a decision by less than a round.
"""

COUNT, SHARE, AMOUNT = "a whole number in a run, and always defined", "a share", "an amount"

FIGURES = {
    **dict.fromkeys(("drifts", "found", "never_asked"), COUNT),
    **dict.fromkeys(("recall_asked", "recall_all"), SHARE),
    **dict.fromkeys(("delay_rounds_mean", "delay_rounds_median", "delay_rounds_90"), AMOUNT),
    **dict.fromkeys(("delay_s_median", "delay_s_90"), AMOUNT),
    **dict.fromkeys(("asked_s_median", "found_s_median"), AMOUNT),
    **dict.fromkeys(("false_alarms", "repeats"), COUNT),
    "false_alarms_per_1000": AMOUNT,
    "undrifted_flagged": SHARE,
    **dict.fromkeys(("decisions", "tp", "tn", "fp", "fn"), COUNT),
    **dict.fromkeys(("accuracy", "precision", "recall", "f1"), SHARE),
    "clipped": COUNT,
}
"""What each figure is, by its name, in the order of `summary.json`."""


def is_recorded(run: ReportedRun) -> bool:
    """Whether the log of the run has decisions of detectors, or says that it has no detector."""
    return "detectors" in run.header and "drifts" in run.header


def score_run(run: ReportedRun, settings: DetectionSettings) -> dict[str, DetectorScores]:
    """The scores of each detector of a run whose decisions are recorded, by its name."""
    detectors: Mapping[str, str] = run.header["detectors"]
    records = run.records
    if not detectors or not records:
        return {}
    drifts = drifts_of(run.header["drifts"], np.array([record.step for record in records], dtype=np.int64))
    opened_s, closed_s = (
        np.array([getattr(record, name) for record in records], dtype=np.float64)
        for name in ("opened_s", "closed_s")
    )
    last = len(records) - 1 if settings.last_round is None else min(settings.last_round, len(records) - 1)
    scores = {}
    for name, watched in detectors.items():
        decisions = decisions_of(records, watched, name)
        found = score_drifts(
            decisions,
            drifts.one_for_each_onset(),
            settings,
            last_round=last,
            opened_s=opened_s,
            decided_s=opened_s if watched == REPRESENTATION else closed_s,
        )
        counts = confusion(decisions.within(settings.first_round, last), drifts, settings)
        figures = {**found.figures, **counts, "clipped": (records[-1].clipped or {}).get(name, 0)}
        scores[name] = replace(found, figures={figure: figures[figure] for figure in FIGURES})
    return scores


@dataclass(frozen=True)
class DetectorFigures:
    """The figures of a detector of an arm over its seeds.

    Attributes:
        watched: "representation", "arrivals" or "training".
        figures: Those of its scores.
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
            **_as_json(self.figures),
            "kinds": {kind: _as_json(found) for kind, found in self.kinds.items()},
        }


def _as_json(figures: Mapping[str, Estimate]) -> dict[str, object]:
    return {name: estimate.as_json() for name, estimate in figures.items()}


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

    @property
    def detectors(self) -> list[tuple[str, str, DetectorFigures]]:
        """(arm, name, figures) of each detector."""
        return [(arm, *of_one) for arm, of_arm in self.arms.items() for of_one in of_arm.items()]

    @property
    def decides(self) -> bool:
        """Whether some detector made a decision in the scored rounds."""
        return any(found.decides for _, _, found in self.detectors)

    def as_json(self) -> dict[str, object]:
        """The entry `detection` of `summary.json`."""
        arms = {
            arm: {name: found.as_json() for name, found in detectors.items()}
            for arm, detectors in self.arms.items()
        }
        return {**vars(self.settings), "arms": arms}


def detection_of(arms: Sequence[Comparison], settings: DetectionSettings) -> Detection | None:
    """The figures of the detectors of `arms`; None if no run recorded decisions of a detector."""
    scored = [arm for arm in arms if all(is_recorded(run) and run.header["detectors"] for run in arm.runs)]
    kinds = list(
        dict.fromkeys(
            str(kind) for arm in scored for run in arm.runs for kind in run.header["drifts"]["kinds"]
        )
    )
    by_arm = {arm.arm: _figures(arm, [score_run(run, settings) for run in arm.runs], kinds) for arm in scored}
    having = {arm: detectors for arm, detectors in by_arm.items() if detectors}
    return Detection(settings, having, kinds) if having else None


def _figures(
    arm: Comparison, by_seed: Sequence[Mapping[str, DetectorScores]], kinds: Sequence[str]
) -> dict[str, DetectorFigures]:
    """The figures of the detectors of an arm that have scores in each seed, by their names."""
    return {
        name: DetectorFigures(
            watched,
            _estimates(arm, [scores[name].figures for scores in by_seed]),
            {kind: _estimates(arm, [scores[name].of_kind(kind) for scores in by_seed]) for kind in kinds},
        )
        for name, watched in arm.runs[0].header["detectors"].items()
        if all(name in scores for scores in by_seed)
    }


def _estimates(arm: Comparison, by_seed: Sequence[Mapping[str, float | None]]) -> dict[str, Estimate]:
    return {
        name: arm.stated(
            (share_estimate if FIGURES[name] == SHARE else amount_estimate)(
                [found[name] for found in by_seed]
            )
        )
        for name in by_seed[0]
    }
