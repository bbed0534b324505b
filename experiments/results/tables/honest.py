"""Accuracy of honest and of byzantine clients apart, where each client's accuracy is logged.

Byzantine clients are named in the header of a log; `round.log_client_accuracy` logs the accuracies.
Accuracies are means over virtual time, as `mean_accuracy` is, and `honest_gain_pp` is the gain of the honest
clients over those of the reference arm, in percentage points. A mean is None if no such client was ever
scored, if the configuration has no byzantine clients, or if the accuracies of clients are not logged.
"""

from __future__ import annotations

import numpy as np

from emulator.arrays import NO_IDS, Bools, Floats
from emulator.errors import InputError
from experiments.results.reading.run_directory import ReportedRun
from experiments.results.statistics.comparisons import Run, once
from experiments.results.statistics.summary import Summary
from experiments.results.statistics.time_to_accuracy import AccuracyCurve
from experiments.results.tables.quantities import IS_REFERENCE, SHARE, UNLOGGED, any_measured, gain, quantity
from experiments.results.tables.table import InTerminal, Place, Table

NOTE = (
    "Honest clients and byzantine clients: the mean accuracy over virtual time, as that of all clients, of "
    "the scored clients that are honest, or byzantine. All arms of a seed have the same byzantine clients, "
    "and the labels that they are tested on are never flipped."
)

NO_BYZANTINE = f"without byzantine clients, and {UNLOGGED}"


@once
def apart_curves(run: ReportedRun) -> tuple[AccuracyCurve | None, AccuracyCurve | None]:
    """The accuracy curves of honest and of byzantine clients, not smoothed, over those that were scored.

    One is None if none of them was ever scored, if the header names no byzantine kind, or without logged
    accuracies. An evaluation at which none of the clients of a curve was scored is left out of it. Raises
    InputError if the accuracies in the log are of different numbers of clients.
    """
    evaluated = [
        (record.closed_s, record.client_accuracy)
        for record in run.records
        if record.accuracy is not None and record.client_accuracy is not None
    ]
    if "byzantine" not in run.header or not evaluated:
        return None, None
    is_byzantine = _byzantine(run, len(evaluated[0][1]))
    if any(len(accuracy) != len(is_byzantine) for _, accuracy in evaluated):
        raise InputError(
            f"arm {run.arm!r}, seed {run.seed}: its log is damaged, client_accuracy is of different numbers "
            "of clients"
        )
    times_s = np.array([closed_s for closed_s, _ in evaluated], dtype=np.float64)
    by_client = np.array([accuracy for _, accuracy in evaluated], dtype=np.float64)  # (n_evaluations, n)
    return _curve(times_s, by_client[:, ~is_byzantine]), _curve(times_s, by_client[:, is_byzantine])


def _curve(times_s: Floats, by_client: Floats) -> AccuracyCurve | None:
    """The mean over clients of `by_client` (n_evaluations, n) at `times_s`, both without unscored ones."""
    scored = np.isfinite(by_client)
    seen = scored.any(axis=1)
    if not seen.any():
        return None
    sums = np.where(scored, by_client, 0.0)[seen].sum(axis=1)
    mean = sums / scored[seen].sum(axis=1)
    return AccuracyCurve(times_s[seen], mean, mean)


def _byzantine(run: ReportedRun, num_scored: int) -> Bools:
    """(num_scored,) whether each of the scored clients is byzantine, of whatever kind."""
    scored = run.header.get("scored_clients")
    ids = np.arange(num_scored) if scored is None else np.asarray(scored)
    return np.isin(ids, np.concatenate([NO_IDS, *map(np.asarray, run.header["byzantine"].values())]))


@quantity(SHARE, "honest clients", missing=NO_BYZANTINE, note=NOTE)
def honest_accuracy(run: Run) -> float | None:
    """Mean accuracy of the honest clients."""
    return run.mean_of(apart_curves(run.log)[0])


@quantity(SHARE, "byzantine clients", missing=NO_BYZANTINE, note=NOTE)
def byzantine_accuracy(run: Run) -> float | None:
    """Mean accuracy of the byzantine clients."""
    return run.mean_of(apart_curves(run.log)[1])


def _note(summary: Summary) -> str:
    of_gain = f" Gain of honest clients is over those of {summary.reference_arm}, paired by seed."
    return f"{NOTE}{of_gain if len(summary.rows) > 1 else ''}"


HONEST_GAIN = gain(honest_accuracy, "honest_gain_pp", "gain of honest clients").means(
    "accuracy of the honest clients minus that under the reference arm", f"{IS_REFERENCE}, {NO_BYZANTINE}"
)

TABLE = Table(
    title="Honest and byzantine clients",
    place=Place("for-whom", id="honest-clients"),
    quantities=(honest_accuracy, byzantine_accuracy, HONEST_GAIN),
    columns=(honest_accuracy, HONEST_GAIN, byzantine_accuracy),
    says_something=lambda summary: any_measured(
        [row[of.key] for row in summary.rows for of in (honest_accuracy, byzantine_accuracy)]
    ),
    note=_note,
    in_terminal=InTerminal("honest and byzantine clients"),
    in_many_runs=(honest_accuracy, byzantine_accuracy, HONEST_GAIN.headed("")),
)
