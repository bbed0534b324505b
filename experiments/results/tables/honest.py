"""Accuracy of honest and of byzantine clients apart, where each client's accuracy is logged.

Byzantine clients are named in the header of a log; `round.log_client_accuracy` logs the accuracies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from emulator.arrays import NO_IDS, Bools, Floats
from emulator.errors import InputError
from experiments.results.reading.run_directory import FinishedRun
from experiments.results.statistics.horizon import Horizon
from experiments.results.statistics.intervals import Estimate, Gain, gain_estimate, share_estimate
from experiments.results.statistics.time_to_accuracy import AccuracyCurve
from experiments.results.tables.accuracy_tables import Comparison


@dataclass(frozen=True)
class HonestRow:
    """The mean accuracy of an arm's honest and byzantine clients, over virtual time as in `AccuracyRow`.

    `honest_gain_pp` is the gain of the honest clients over those of the reference arm, in percentage points,
    and None for the reference arm itself. A mean is None if no such client was ever scored, if the
    configuration has no byzantine clients, or if the accuracies of clients are not logged.
    """

    arm: str
    honest_accuracy: Estimate
    byzantine_accuracy: Estimate
    honest_gain_pp: Gain | None


@dataclass(frozen=True)
class ApartCurves:
    """The accuracy curves of the honest and of the byzantine clients of a run.

    None if none of them was ever scored, if the header names no byzantine kind, or without logged accuracies.
    """

    honest: AccuracyCurve | None = None
    byzantine: AccuracyCurve | None = None

    def mean_accuracies(self, start_s: float, horizon_s: float) -> tuple[float | None, float | None]:
        """The mean accuracies of both over virtual time, as `AccuracyCurve.mean_accuracy` has them."""
        honest, byzantine = (
            None if curve is None else curve.mean_accuracy(start_s, horizon_s)
            for curve in (self.honest, self.byzantine)
        )
        return honest, byzantine


NOT_APART = ApartCurves()
"""Those of a run that does not tell honest from byzantine clients."""


def honest_rows(compared: Sequence[Comparison], horizon: Horizon) -> list[HonestRow]:
    """A row for each comparison, in the same order; `compared` must include the reference arm.

    Raises InputError if the accuracies in a log are of different numbers of clients.
    """
    means = {
        (run.arm, run.seed): apart_curves(run).mean_accuracies(horizon.start_s, horizon.horizon_s)
        for arm in compared
        for run in arm.runs
    }
    num_gains = max(1, len(compared) - 1)
    rows = []
    for arm in compared:
        honest, byzantine = zip(*(means[run.arm, run.seed] for run in arm.runs), strict=True)
        reference = [means[item.run.arm, item.run.seed][0] for item in arm.reference]
        rows.append(
            HonestRow(
                arm=arm.arm,
                honest_accuracy=share_estimate(honest),
                byzantine_accuracy=share_estimate(byzantine),
                honest_gain_pp=None
                if arm.is_reference
                else gain_estimate(honest, reference, scale=100.0, comparisons=num_gains),
            )
        )
    return rows


def are_measured(rows: Sequence[HonestRow]) -> bool:
    """Whether the accuracy of honest or byzantine clients is known in some run."""
    figures = [figure for row in rows for figure in (row.honest_accuracy, row.byzantine_accuracy)]
    return any(value is not None for figure in figures for value in figure.per_seed)


def apart_curves(run: FinishedRun) -> ApartCurves:
    """The curves of a run, not smoothed; a mean is over those of the clients that were scored.

    An evaluation at which none of the clients of a curve was scored is left out of it. Raises InputError if
    the accuracies in the log are of different numbers of clients.
    """
    evaluated = [
        (record.closed_s, record.client_accuracy)
        for record in run.records
        if record.accuracy is not None and record.client_accuracy is not None
    ]
    if "byzantine" not in run.header or not evaluated:
        return NOT_APART
    is_byzantine = _byzantine(run, len(evaluated[0][1]))
    if any(len(accuracy) != len(is_byzantine) for _, accuracy in evaluated):
        raise InputError(
            f"arm {run.arm!r}, seed {run.seed}: its log is damaged, client_accuracy is of different numbers "
            "of clients"
        )
    times_s = np.array([closed_s for closed_s, _ in evaluated], dtype=np.float64)
    by_client = np.array([accuracy for _, accuracy in evaluated], dtype=np.float64)  # (n_evaluations, n)
    return ApartCurves(
        _curve(times_s, by_client[:, ~is_byzantine]), _curve(times_s, by_client[:, is_byzantine])
    )


def _curve(times_s: Floats, by_client: Floats) -> AccuracyCurve | None:
    """The mean over clients of `by_client` (n_evaluations, n) at `times_s`, both without unscored ones."""
    scored = np.isfinite(by_client)
    seen = scored.any(axis=1)
    if not seen.any():
        return None
    sums = np.where(scored, by_client, 0.0)[seen].sum(axis=1)
    mean = sums / scored[seen].sum(axis=1)
    return AccuracyCurve(times_s[seen], mean, mean)


def _byzantine(run: FinishedRun, num_scored: int) -> Bools:
    """(num_scored,) whether each of the scored clients is byzantine, of whatever kind."""
    scored = run.header.get("scored_clients")
    ids = np.arange(num_scored) if scored is None else np.asarray(scored)
    return np.isin(ids, np.concatenate([NO_IDS, *map(np.asarray, run.header["byzantine"].values())]))
