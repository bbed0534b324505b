"""Decisions one by one: which of them should have been flags, and which were.

A decision about a client should be a flag in the rounds in which its data are not those that it had before
the first scored round, or in some of these rounds. So a detector that keeps its flag up has many true
positives of one drift, and one that starts anew after a flag has as many false negatives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from emulator.arrays import Bools, Ints
from experiments.results.reading.detection import CHANGED, DetectionSettings
from experiments.results.statistics.detection.columns import UNKNOWN, Decisions, Drifts


@dataclass(frozen=True)
class Confusion:
    """Numbers of decisions: true and false positives (flags), true and false negatives.

    Ratios without a single decision in the denominator are None.
    """

    tp: int
    tn: int
    fp: int
    fn: int

    @property
    def accuracy(self) -> float | None:
        return ratio(self.tp + self.tn, self.tp + self.tn + self.fp + self.fn)

    @property
    def precision(self) -> float | None:
        return ratio(self.tp, self.tp + self.fp)

    @property
    def recall(self) -> float | None:
        return ratio(self.tp, self.tp + self.fn)

    @property
    def f1(self) -> float | None:
        return ratio(2 * self.tp, 2 * self.tp + self.fp + self.fn)


def ratio(part: int, of: int) -> float | None:
    """`part` / `of`; None if `of` is 0."""
    return part / of if of else None


def confusion(
    decisions: Decisions, drifts: Drifts, kinds: Sequence[str], settings: DetectionSettings
) -> Confusion:
    """Count the `decisions`, all of scored rounds, by whether they are flags and whether they should be.

    `drifts` are all of the run, `kinds` the names of their kinds.
    """
    positive, flag = should_be_flags(decisions, drifts, kinds, settings), decisions.is_flag
    return Confusion(
        tp=int((positive & flag).sum()),
        tn=int((~positive & ~flag).sum()),
        fp=int((~positive & flag).sum()),
        fn=int((positive & ~flag).sum()),
    )


def should_be_flags(
    decisions: Decisions, drifts: Drifts, kinds: Sequence[str], settings: DetectionSettings
) -> Bools:
    """(d,) whether each decision should be a flag.

    With spans by kind, it should if the client has had a drift of some kind since the first scored round, and
    the round is in the span of that kind.
    """
    base = max(settings.first_round - 1, 0)
    positive = settings.positive
    if not isinstance(positive, Mapping):
        changed = _has_changed(decisions, drifts, base)
        return changed if positive == CHANGED else changed & _is_within(decisions.round, positive)
    found = np.zeros(len(decisions), dtype=bool)
    for name, span in positive.items():
        if name in kinds:
            of_kind = drifts.where((drifts.kind == kinds.index(name)) & (drifts.onset > base))
            has_had = of_kind.latest(decisions.client, decisions.round) >= 0
            found |= has_had & _is_within(decisions.round, span)
    return found


def _is_within(rounds: Ints, span: object) -> Bools:
    assert isinstance(span, tuple)
    first, last = span
    within: Bools = (rounds >= first) & (rounds <= last)
    return within


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
