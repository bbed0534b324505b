"""Decisions one by one: which of them should have been flags, and which were.

A decision about a client should be a flag in the rounds in which its data are not those that it had before
the first scored round, or in some of these rounds. So a detector that keeps its flag up has many true
positives of one drift, and one that starts anew after a flag has as many false negatives.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from emulator.arrays import Bools, Ints
from experiments.results.reading.detection import DetectionSettings
from experiments.results.statistics.detection.columns import UNKNOWN, Decisions, Drifts, is_within, ratio


def confusion(decisions: Decisions, drifts: Drifts, settings: DetectionSettings) -> dict[str, float | None]:
    """Numbers of decisions, and ratios of them; None for one without a decision in the denominator.

    `tp` and `fp` are true and false positives, which are flags, `tn` and `fn` true and false negatives.

    Args:
        decisions: Those of scored rounds.
        drifts: All of the run.
        settings: Which decisions should be flags.
    """
    positive, flag = should_be_flags(decisions, drifts, settings), decisions.is_flag
    tp, tn = int((positive & flag).sum()), int((~positive & ~flag).sum())
    fp, fn = int((~positive & flag).sum()), int((positive & ~flag).sum())
    return {
        "tp": tp,
        "tn": tn,
        "fp": fp,
        "fn": fn,
        "accuracy": ratio(tp + tn, tp + tn + fp + fn),
        "precision": ratio(tp, tp + fp),
        "recall": ratio(tp, tp + fn),
        "f1": ratio(2 * tp, 2 * tp + fp + fn),
    }


def should_be_flags(decisions: Decisions, drifts: Drifts, settings: DetectionSettings) -> Bools:
    """(d,) whether each decision should be a flag.

    With spans by kind, it should if the client has had a drift of some kind since the first scored round, and
    the round is in the span of that kind.
    """
    base = max(settings.first_round - 1, 0)
    positive = settings.positive
    if not isinstance(positive, Mapping):
        changed = _has_changed(decisions, drifts, base)
        return changed if isinstance(positive, str) else changed & is_within(decisions.round, *positive)
    found = np.zeros(len(decisions), dtype=bool)
    for name, span in positive.items():
        of_kind = drifts.where(drifts.is_of(name) & (drifts.onset > base))
        has_had = of_kind.latest(decisions.client, decisions.round) >= 0
        found |= has_had & is_within(decisions.round, *span)
    return found


def _has_changed(decisions: Decisions, drifts: Drifts, base: int) -> Bools:
    """(d,) whether the client's data at the decision are others than in the round `base`.

    They are if its concept is another one, or if there was a drift in between that concepts do not show.
    """
    is_shown = drifts.after != UNKNOWN
    shown, hidden = drifts.where(is_shown), drifts.where(~is_shown & (drifts.onset > base))
    differs = _concepts(shown, decisions.client, decisions.round) != _concepts(shown, decisions.client, base)
    changed: Bools = differs | (hidden.latest(decisions.client, decisions.round) >= 0)
    return changed


def _concepts(drifts: Drifts, client: Ints, round_: Ints | int) -> Ints:
    """(m,) the concept of each client in the round; `UNKNOWN` for clients without any drift."""
    concepts = np.full(len(client), UNKNOWN)
    first = np.searchsorted(drifts.client, client)
    has_one = first < len(drifts)
    has_one[has_one] = drifts.client[first[has_one]] == client[has_one]
    concepts[has_one] = drifts.before[first[has_one]]
    latest = drifts.latest(client, round_)
    concepts[latest >= 0] = drifts.after[latest[latest >= 0]]
    return concepts
