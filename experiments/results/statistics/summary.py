"""`summary.json`: the figures of every arm, and their comparison with the reference arm.

    version, name, reference_arm, window
    horizon        the stretch of virtual time that counts: `start_s`, `horizon_s`, `asked_s`
                   (report.horizon_s), `set_by` {arm, seed} (the run that ended first; null if the horizon is
                   `asked_s`), `longest_s`, `event_rounds`, `steps` by arm, `widest_gap_s`,
                   `seconds_per_round` (if it is set), `warnings`
    arms.<arm>     seeds (their number), seed_ids (in the order of every `per_seed`), and the quantities of
                   all tables, in their order, each {mean, ci95, per_seed};
                   `reclustering_rounds` is a list of rounds for each seed, and `<accuracy>_recovery` one of
                   what it took to recover from the drift, null if a seed never has (drift.py)
    targets        a list of {target, accuracy, counted_from, arms}, where arms.<arm> has the quantities of
                   targets.py, each {median, interval, level, per_seed}; `held` and `seeds` are numbers of
                   seeds; `counted_from` is "event" if `held_from_s` and `speedup` are counted from the first
                   mass event of each run, and else "start"
    offline_clients_heard
                   the arms whose clients reported although they were offline (round.hear = "everyone")
    marked_seeds   a list of {seed, arms, distance}: seeds on which every arm is off (marked_seeds.py), by the
                   accuracy omitting drift where concepts are known, by `mean_accuracy` elsewhere
    finished       figures of every finished run, see concept_drift.py
    detection      only if runs recorded decisions of detectors: `positive`, `first_round`, `last_round` and
                   `tolerance` of the configuration, and arms.<arm>.<detector> of arms with detectors:
                   `watched` ("representation", "arrivals" or "training"), the figures of detection.py, each
                   {mean, ci95, per_seed}, and kinds.<kind> with `drifts`, `found` and `recall_all` of a kind
                   of drifts

The `ci95` of a mean is Student's t over seeds; a gain also has `ci95_joint`, which holds for all arms at
once. Both are null for arms with a trigger, which may re-cluster globally in some seeds and not in others,
and for comparisons with one; their `reclustered_seeds`, which is null for other arms, is the share of seeds
in which it did by the horizon, with its exact interval. A median, and each of its seeds, is
{low, high, status}: a number that is known has status "=" and low = high; a time after the horizon has no
upper bound (null, ">="), a time up to the first evaluation has only an upper one ("<="). `level` is the true
level of `interval`. With under three seeds there are no intervals, but those of shares of seeds. A comparison
with the reference arm is null for that arm itself, and one with another arm, whose name is in `over`, as
baselines.py describes it (so is `not_above`); `gain_after_drift_pp` and `below_after_drift` are null unless a
mass event is before the horizon in every run; the mean of a figure that was not measured in every seed is
null.

Figures are in the units of their names; accuracies, shares and distances have none, `_pp` is percentage
points. Nothing after the horizon counts, except in `virtual_time_s`, `wall_s` and `clustering_wall_s`, which
are of whole runs, in `finished`, which is by data step, and in `detection`, which has its own rounds.
`crashed_visits` are among the `dropouts`; `rejected_updates` counts the visits with an update that was not
finite, `nonfinite_reports` such reports.

An arm is measured on the seeds that the reference arm has also finished, so that all comparisons are paired.
Arms that share no seed with the reference arm are left out; these are all arms until it has finished a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.results.statistics.comparisons import Compared, Comparison, start_clauses
from experiments.results.statistics.detection.scores import Detection
from experiments.results.statistics.horizon import Horizon
from experiments.results.statistics.marked_seeds import (
    MarkedSeed,
    marked_by_drift,
    marked_clause,
    marked_seeds,
)
from experiments.results.statistics.targets import TargetTable
from experiments.results.statistics.whole_runs import Finished
from experiments.results.wording import Words, told

SUMMARY_VERSION = 6
"""Version of the layout of `summary.json`."""


@dataclass(frozen=True)
class Summary:
    """The figures of an experiment.

    Each arm of `comparison` has what all tables measure of it. The rows of each target are in the order of
    these arms, of which there are none if the reference arm has no finished run.
    """

    name: str
    reference_arm: str
    window: int
    comparison: Compared
    targets: list[TargetTable]
    finished: Finished
    headline: str | None = None
    """The arm of the report's headline; None for a headline on all arms."""
    detection: Detection | None = None
    """The figures of detectors; None if no run recorded decisions of one."""

    @property
    def words(self) -> Words:
        """The words of its texts, with the names of arms and its own."""
        names = [self.name, self.reference_arm, *self.comparison.configured, *self.finished.arms]
        return Words(self.finished.word, names)

    @property
    def rows(self) -> Sequence[Comparison]:
        """The arms that are compared, with their figures, in the order of their first runs."""
        return self.comparison.arms

    @property
    def horizon(self) -> Horizon:
        """The stretch of virtual time over which they are compared."""
        return self.comparison.horizon

    @property
    def marked_seeds(self) -> list[MarkedSeed]:
        """The seeds on which every arm is off, ascending (marked_seeds.py)."""
        if self.finished.scored_steps is not None:
            return marked_by_drift(self.finished)
        return marked_seeds(
            {
                arm.arm: {
                    seed: value
                    for seed, value in zip(arm.seed_ids, arm["mean_accuracy"].per_seed, strict=True)
                    if value is not None
                }
                for arm in self.rows
            }
        )

    @property
    def offline_clients_heard(self) -> list[str]:
        """The arms in which offline clients could report, in the order of `rows`."""
        return [arm.arm for arm in self.rows if any(run.offline_clients_heard for run in arm.runs)]

    def warnings(self) -> list[str]:
        """Warnings for readers of the figures, as clauses without a full stop."""
        marked = marked_clause(self._marked_json())
        starts = start_clauses(self.rows)
        return told(self.words, [*self.horizon.warnings(), *starts, *([marked] if marked else [])])

    def _marked_json(self) -> list[dict[str, object]]:
        return [marked.as_json() for marked in self.marked_seeds]

    def as_json(self) -> dict[str, object]:
        """The content of `summary.json`."""
        detection = {} if self.detection is None else {"detection": self.detection.as_json()}
        return {
            "version": SUMMARY_VERSION,
            "name": self.name,
            "reference_arm": self.reference_arm,
            "window": self.window,
            "horizon": self.horizon.as_json(),
            "arms": {
                arm.arm: {"seeds": len(arm.measured), "seed_ids": arm.seed_ids, **arm.as_json()}
                for arm in self.rows
            },
            "targets": [table.as_json() for table in self.targets],
            "offline_clients_heard": self.offline_clients_heard,
            "marked_seeds": self._marked_json(),
            "finished": self.finished.as_json(),
            **detection,
        }
