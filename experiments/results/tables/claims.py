"""Which accuracy the sentences and the short table of a comparison are about.

That is the accuracy of the models that serve clients, unless some arm makes personal parameters: then it is
the accuracy of what clients use, the personal one (see tables/personal.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from experiments.results.statistics.comparisons import Comparison
from experiments.results.statistics.intervals import Gain
from experiments.results.statistics.summary import Summary
from experiments.results.tables.baselines import IN_ACCURACY, Beside, Choice
from experiments.results.tables.personal import IN_PERSONAL_ACCURACY


@dataclass(frozen=True)
class Claims:
    """The name of an accuracy, and the quantities that are of it; `after_drift` is None if there is none."""

    name: str
    mean: str
    gain: str
    over_best: str
    final: str
    final_gain: str
    after_drift: str | None
    beside: Beside

    def after(self, row: Comparison) -> Gain | None:
        """The gain of an arm after the drift; None if it is not known."""
        found: Gain | None = None if self.after_drift is None else row[self.after_drift]
        return found

    def best_without_clusters(self, summary: Summary) -> Choice:
        """The choice of the best arm without clusters."""
        return self.beside.best(summary.comparison)


OF_SERVED = Claims(
    name="mean accuracy",
    mean="mean_accuracy",
    gain="gain_pp",
    over_best="gain_over_best_pp",
    final="final_accuracy",
    final_gain="final_gain_pp",
    after_drift="gain_after_drift_pp",
    beside=IN_ACCURACY,
)

OF_USED = Claims(
    name="mean personal accuracy",
    mean="mean_personal_accuracy",
    gain="personal_gain_pp",
    over_best="personal_gain_over_best_pp",
    final="final_personal_accuracy",
    final_gain="final_personal_gain_pp",
    after_drift=None,
    beside=IN_PERSONAL_ACCURACY,
)


def claims(summary: Summary) -> Claims:
    """What the sentences on a comparison are about."""
    return OF_USED if summary.comparison.has_personal else OF_SERVED
