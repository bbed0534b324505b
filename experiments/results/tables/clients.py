"""The figures of an arm's clients at the horizon: deciles, the worst tenth, and who is worse off.

Clients are paired with themselves under the reference arm, seed by seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from experiments.results.statistics.client_accuracy import (
    DECILES,
    ClientAccuracy,
    at_the_horizon,
    gains_since_the_evaluation_before,
    worse_off,
)
from experiments.results.statistics.horizon import Horizon
from experiments.results.statistics.intervals import (
    Estimate,
    Gain,
    amount_estimate,
    gain_estimate,
    share_estimate,
)
from experiments.results.tables.accuracy_tables import Comparison


@dataclass(frozen=True)
class ClientRow:
    """An arm's clients at the last evaluation at or before the horizon, in each seed.

    Shares are of the clients that both the arm and the reference arm have scored then, and None for the
    reference arm, as is `worst_tenth_gain_pp`. That gain is of one arm's worst tenth over the other's, which
    may be of different clients. `mean_loss_pp` is the mean loss of the clients that are worse off, in
    percentage points; its mean is None if some seed has none. All figures are None if the accuracies of
    clients are not logged.
    """

    arm: str
    mean_client_accuracy: Estimate
    worst_tenth: Estimate
    worst_tenth_gain_pp: Gain | None
    worse_off: Estimate | None
    better_off: Estimate | None
    unchanged: Estimate | None
    mean_loss_pp: Estimate | None


def client_rows(compared: Sequence[Comparison], horizon: Horizon) -> list[ClientRow]:
    """A row for each comparison, in the same order; `compared` must include the reference arm.

    Raises InputError if the log of a run is damaged.
    """
    found = {
        (run.arm, run.seed): at_the_horizon(run, horizon.horizon_s) for arm in compared for run in arm.runs
    }
    num_gains = max(1, len(compared) - 1)
    return [
        _row(
            arm,
            [found[run.arm, run.seed] for run in arm.runs],
            [found[item.run.arm, item.run.seed] for item in arm.reference],
            num_gains,
        )
        for arm in compared
    ]


def are_logged(rows: Sequence[ClientRow]) -> bool:
    """Whether the accuracies of clients are known at the horizon in some run."""
    return any(value is not None for row in rows for value in row.worst_tenth.per_seed)


def decile_estimates(by_seed: Sequence[ClientAccuracy | None]) -> list[Estimate]:
    """The nine deciles of the accuracies of clients: those of each seed, and their means over seeds."""
    shares = np.array(DECILES)
    deciles = [None if seed is None else seed.quantiles(shares).tolist() for seed in by_seed]
    return [
        share_estimate([None if seed is None else seed[index] for seed in deciles])
        for index in range(len(DECILES))
    ]


def chance_of_worse(reference: Comparison, horizon: Horizon) -> Estimate:
    """The share of clients that became worse between the last two evaluations within the reference arm."""
    by_seed = [gains_since_the_evaluation_before(run, horizon.horizon_s) for run in reference.runs]
    found = [None if gains is None else worse_off(gains) for gains in by_seed]
    return share_estimate([None if seed is None else seed.worse for seed in found])


def _row(
    arm: Comparison,
    ours: Sequence[ClientAccuracy | None],
    theirs: Sequence[ClientAccuracy | None],
    num_gains: int,
) -> ClientRow:
    means = share_estimate([None if seed is None else seed.mean for seed in ours])
    tenths = [None if seed is None else seed.worst_tenth for seed in ours]
    if arm.is_reference:
        return ClientRow(arm.arm, means, share_estimate(tenths), None, None, None, None, None)
    found = [
        None if seed is None or base is None else worse_off(seed.gains_over(base))
        for seed, base in zip(ours, theirs, strict=True)
    ]
    return ClientRow(
        arm.arm,
        means,
        share_estimate(tenths),
        gain_estimate(
            tenths,
            [None if seed is None else seed.worst_tenth for seed in theirs],
            scale=100.0,
            comparisons=num_gains,
        ),
        worse_off=share_estimate([None if seed is None else seed.worse for seed in found]),
        better_off=share_estimate([None if seed is None else seed.better for seed in found]),
        unchanged=share_estimate([None if seed is None else seed.equal for seed in found]),
        mean_loss_pp=amount_estimate(
            [None if seed is None or seed.mean_loss is None else 100 * seed.mean_loss for seed in found]
        ),
    )
