"""Halving over seeds: which settings are played on the other seeds, and which of them are chosen.

All runs have all rounds, as a drift may come half-way. Knows no files: a score is the mean accuracy of a run,
in [0, 1], and None if the run diverged. A diverged one is worse than all others; of equal ones the first in
the order of the grid, the smaller, is better.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from experiments.tuning.rows import NUM_FINALISTS, Row, Setting, Try

Scores = Mapping[str, Mapping[int, float | None]]
"""The score of each run, by the name of its arm and by its seed."""

WORST = -math.inf
"""The mean of scores of which one diverged."""


@dataclass(frozen=True)
class Chosen:
    """What was chosen for a row.

    Attributes:
        setting: Its best setting.
        best: The best use of it.
        uses: The best try of each use of it, in their order.
        mean: The mean score of `best`.
        ties: Other settings with that mean.
    """

    setting: Setting
    best: Try
    uses: Sequence[Try]
    mean: float
    ties: Sequence[Setting]


def mean_score(scores: Scores, arm: str, seeds: Sequence[int]) -> float:
    """The mean score of an arm over these seeds; `WORST` if one of its runs diverged.

    >>> mean_score({"a": {1: 0.5, 2: 0.75}, "b": {1: 0.5, 2: None}}, "a", [1, 2])
    0.625
    """
    found = [scores[arm][seed] for seed in seeds]
    values = [score for score in found if score is not None]
    return math.fsum(values) / len(values) if len(values) == len(found) else WORST


def setting_score(scores: Scores, setting: Setting, seeds: Sequence[int]) -> float:
    """The mean score of a setting in its best use."""
    return max(mean_score(scores, arm, seeds) for arm in setting.names)


def finalists(row: Row, scores: Scores, first: int) -> list[Setting]:
    """The best settings of a row on the `first` seed, in the order of the grid; none that diverged."""
    by_score = sorted(row.settings, key=lambda setting: -setting_score(scores, setting, [first]))
    best = [item for item in by_score if setting_score(scores, item, [first]) > WORST][:NUM_FINALISTS]
    return [setting for setting in row.settings if setting in best]


def choose(settings: Sequence[Setting], scores: Scores, seeds: Sequence[int]) -> Chosen | None:
    """The best of these settings over all `seeds`, and its best use; None if all diverged."""
    means = [setting_score(scores, setting, seeds) for setting in settings]
    mean = max(means, default=WORST)
    if mean == WORST:
        return None
    setting, *ties = (item for item, its in zip(settings, means, strict=True) if its == mean)
    uses: dict[str, Try] = {}
    for tried in setting.tries:
        known = uses.setdefault(tried.use, tried)
        if mean_score(scores, tried.name, seeds) > mean_score(scores, known.name, seeds):
            uses[tried.use] = tried
    best = max(uses.values(), key=lambda tried: mean_score(scores, tried.name, seeds))
    return Chosen(setting, best, list(uses.values()), mean, ties)


def rival_of(chosen: Mapping[str, Chosen | None], baselines: Sequence[str]) -> str | None:
    """The best arm, a use of a row, among these rows; None if all diverged."""
    found = [choice for row in baselines if (choice := chosen[row]) is not None]
    return max(found, key=lambda choice: choice.mean).best.use if found else None
