"""Halving over seeds: which settings are played on the other seeds, and which of them are chosen.

All runs have all rounds, as a drift may come half-way. Knows no files: a score is the mean accuracy of a run,
in [0, 1], and minus infinity if the run diverged: that is worse than all others. Of equal settings the first
in the order of the grid, the smaller, is better.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from experiments.tuning.rows import Row, Setting, Try

Scores = Mapping[str, Sequence[float]]
"""The scores of each arm that is played, by its name, on the same seeds in the same order."""

DIVERGED = -math.inf
"""The score of a run that diverged, and the mean of scores among which it is."""

NUM_FINALISTS = 3
"""Settings of a row that are played on the other seeds, too."""


@dataclass(frozen=True)
class Chosen:
    """What was chosen for a row: a setting, its best use, and the best try of each use in their order.

    `mean` is the mean score of `best`, and `ties` are other settings that have it, too.
    """

    setting: Setting
    best: Try
    uses: Sequence[Try]
    mean: float
    ties: Sequence[Setting]


def mean_score(scores: Scores, arm: str) -> float:
    """The mean score of an arm.

    >>> mean_score({"a": [0.5, 0.75], "b": [0.5, DIVERGED]}, "a")
    0.625
    >>> mean_score({"a": [0.5, 0.75], "b": [0.5, DIVERGED]}, "b")
    -inf
    """
    return math.fsum(scores[arm]) / len(scores[arm])


def setting_score(scores: Scores, setting: Setting) -> float:
    """The mean score of a setting in its best use."""
    return max(mean_score(scores, tried.name) for tried in setting.tries)


def finalists(row: Row, scores: Scores) -> list[Setting]:
    """The best settings of a row on the first seed, in the order of the grid; none that diverged."""
    finite = [setting for setting in row.settings if setting_score(scores, setting) > DIVERGED]
    best = sorted(finite, key=lambda setting: -setting_score(scores, setting))[:NUM_FINALISTS]
    return [setting for setting in finite if setting in best]


def choose(settings: Sequence[Setting], scores: Scores) -> Chosen | None:
    """The best of these settings over all seeds, and its best use; None if all diverged."""
    mean = max((setting_score(scores, setting) for setting in settings), default=DIVERGED)
    if mean == DIVERGED:
        return None
    setting, *ties = (setting for setting in settings if setting_score(scores, setting) == mean)
    uses: dict[str, Try] = {}
    for tried in sorted(setting.tries, key=lambda tried: -mean_score(scores, tried.name)):
        uses.setdefault(tried.use, tried)
    in_order = [uses[use] for use in dict.fromkeys(tried.use for tried in setting.tries)]
    best = next(tried for tried in in_order if mean_score(scores, tried.name) == mean)
    return Chosen(setting, best, in_order, mean, ties)


def rival_of(baselines: Sequence[Chosen | None]) -> str | None:
    """The best arm, a use of a row, among these; None if all diverged."""
    found = [choice for choice in baselines if choice is not None]
    return max(found, key=lambda choice: choice.mean).best.use if found else None
