"""The rounds of a run whose visits a page shows one by one, with these visits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from emulator.storage.runlog import RoundRecord
from experiments.results.drawing.style import thinned
from experiments.results.statistics.clients.visits import VisitColumns

MOST_CHOICES, FEWEST_PER_ARM, MOST_PER_ARM = 72, 3, 9
"""Rounds to choose from, over all arms and for each of them."""


@dataclass(frozen=True)
class TimelineRound:
    """A round to draw: its record, its visits, and a word on why it was chosen, which may be empty."""

    arm: str
    seed: int
    record: RoundRecord
    visits: VisitColumns
    reason: str = ""


def chosen_rounds(records: Sequence[RoundRecord], num_arms: int) -> list[tuple[RoundRecord, str]]:
    """The rounds of a run that a page lets its reader choose from, in order, each with the reason.

    These are the slowest and the median round and, as far as `MOST_CHOICES` allows, rounds that are evenly
    spread over the run.
    """
    if not records:
        return []
    lengths_s = np.array([record.closed_s - record.opened_s for record in records])
    order = np.argsort(lengths_s, kind="stable")
    reasons = {int(order[(len(order) - 1) // 2]): "median", int(np.argmax(lengths_s)): "slowest"}
    count = min(MOST_PER_ARM, max(FEWEST_PER_ARM, MOST_CHOICES // num_arms))
    for index in thinned(len(records), max(1, count - len(reasons))).tolist():
        reasons.setdefault(index, "")
    return [(records[index], reasons[index]) for index in sorted(reasons)]
