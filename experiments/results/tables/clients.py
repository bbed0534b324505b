"""The clients of an arm at the last evaluation by the horizon: the worst tenth, and who is worse off.

Each client is paired with itself under the reference arm, seed by seed: shares are of the clients that both
arms have scored then, and None for the reference arm, as is `worst_tenth_gain_pp`. That gain is of one arm's
worst tenth over the other's, which may be of different clients. `mean_loss_pp` is the mean loss of the
clients that are worse off, in percentage points; its mean is None if some seed has none. All are None if the
accuracies of clients are not logged.
"""

from __future__ import annotations

from collections.abc import Callable

from experiments.results.reading.not_recorded import LOG_CLIENTS
from experiments.results.statistics.clients.accuracy import (
    WorseOff,
    gains_since_the_evaluation_before,
    worse_off,
)
from experiments.results.statistics.comparisons import Compared, Comparison, Run, once
from experiments.results.statistics.intervals import Estimate, amount_estimate, share_estimate
from experiments.results.statistics.scales import distance_scale, percent_scale
from experiments.results.statistics.summary import Summary
from experiments.results.tables.cells import show_estimate
from experiments.results.tables.notes import at_their_own_levels, dots_of_triggers
from experiments.results.tables.quantities import (
    IS_REFERENCE,
    POINTS,
    SHARE,
    UNLOGGED,
    Estimator,
    Measure,
    Quantity,
    any_measured,
    gain,
    quantity,
)
from experiments.results.tables.table import InTerminal, Place, Table

CLIENTS_AT_HORIZON = (
    "Accuracies of the scored clients at the last evaluation by the horizon, not smoothed. The worst tenth "
    "is the mean of the tenth of clients (rounded up) with the lowest accuracy: each arm has its own, so its "
    "gain does not say that the same clients gain."
)
PLACE = Place("for-whom", group="clients", needs=LOG_CLIENTS)
"""That of all tables of clients."""

BY_CHANCE = (
    "Worse off is a strictly lower accuracy; who has the same is neither worse nor better off. A client has "
    "few test samples, so some are worse off by chance: between two arms that are equally good for everyone, "
    "as many clients are better off as worse off, on average."
)


def are_logged(summary: Summary) -> bool:
    """Whether the accuracies of clients are known at the horizon in some run."""
    return any_measured([row["worst_tenth"] for row in summary.rows])


@once
def worse_off_of(compared: Compared) -> dict[Run, WorseOff | None]:
    """How clients of each run are worse or better off than in the reference arm's run of its seed.

    None if one of the two does not log their accuracies.
    """
    pairs = [pair for arm in compared.arms for pair in zip(arm.measured, arm.reference, strict=True)]
    return {
        run: None
        if run.clients is None or base.clients is None
        else worse_off(run.clients.gains_over(base.clients))
        for run, base in pairs
    }


def chance_of_worse(reference: Comparison) -> Estimate:
    """The share of clients that became worse between the last two evaluations within the reference arm."""
    by_seed = [
        gains_since_the_evaluation_before(run.log, run.horizon.horizon_s) for run in reference.measured
    ]
    found = [None if gains is None else worse_off(gains) for gains in by_seed]
    return reference.stated(share_estimate([None if seed is None else seed.worse for seed in found]))


@quantity(SHARE, "mean of clients", missing=UNLOGGED)
def mean_client_accuracy(run: Run) -> float | None:
    """Mean accuracy of the scored clients at the last evaluation by the horizon."""
    return None if run.clients is None else run.clients.mean


@quantity(SHARE, "worst tenth", missing=UNLOGGED)
def worst_tenth(run: Run) -> float | None:
    """Mean accuracy of the tenth of clients, rounded up, with the lowest accuracy then."""
    return None if run.clients is None else run.clients.worst_tenth


def _pairs(value: Callable[[WorseOff], float | None], estimate: Estimator = share_estimate) -> Measure:
    """Measures `estimate` over a value of the clients beside the reference arm's."""

    def measure(arm: Comparison, compared: Compared) -> Estimate | None:
        if arm.is_reference:
            return None
        found = [worse_off_of(compared)[run] for run in arm.measured]
        estimated = estimate([None if seed is None else value(seed) for seed in found])
        return arm.stated(estimated, is_beside_reference=True)

    return measure


def _loss_pp(found: WorseOff) -> float | None:
    return None if found.mean_loss is None else 100 * found.mean_loss


def _note(summary: Summary) -> str:
    """The note, with a yardstick of what is chance."""
    if len(summary.rows) < 2:
        return CLIENTS_AT_HORIZON
    reference = next(arm for arm in summary.rows if arm.is_reference)
    chance = chance_of_worse(reference)
    gains = [row["worst_tenth_gain_pp"] for row in summary.rows]
    intervals = at_their_own_levels(gain.ci95 for gain in gains if gain is not None)
    compared = (
        f" Each client is compared with itself under {reference.arm}, seed by seed. {BY_CHANCE}"
        f"{f' Gains of the worst tenth are paired by seed: {intervals}'.rstrip() if intervals else ''}"
        f"{f' {dots_of_triggers(summary.rows)}'.rstrip()}"
    )
    if chance.mean is None:
        return CLIENTS_AT_HORIZON + compared
    cell = show_estimate(chance, percent_scale(chance.mean))
    return (
        f"{CLIENTS_AT_HORIZON}{compared} Between the last two evaluations by the horizon of {reference.arm} "
        f"itself, {' '.join(cell.lines)} of its clients lost accuracy."
    )


_LOSSES = _pairs(_loss_pp, amount_estimate)
UNPAIRED = f"{IS_REFERENCE}, and {UNLOGGED}"
QUANTITIES = (
    mean_client_accuracy,
    worst_tenth,
    gain(worst_tenth, "worst_tenth_gain_pp", "gain of worst tenth").means(
        "that minus the one of the reference arm, whose worst tenth may be other clients", UNPAIRED
    ),
    Quantity("worse_off", _pairs(lambda found: found.worse), SHARE, "worse off").means(
        "share of clients with a lower accuracy than under the reference arm", UNPAIRED
    ),
    Quantity("better_off", _pairs(lambda found: found.better), SHARE, "better off").means(
        "share of clients with a higher accuracy than under the reference arm", UNPAIRED
    ),
    Quantity("unchanged", _pairs(lambda found: found.equal), SHARE, "unchanged", in_terminal=False).means(
        "share of clients with the same accuracy as under the reference arm", UNPAIRED
    ),
    Quantity("mean_loss_pp", _LOSSES, POINTS, "mean loss of those worse off", distance_scale).means(
        "mean loss of the clients that are worse off, above 0",
        f"{IS_REFERENCE}, if nobody is worse off, and {UNLOGGED}",
    ),
)

TABLE = Table(
    title="Who is worse off",
    place=PLACE,
    quantities=QUANTITIES,
    columns=QUANTITIES,
    says_something=are_logged,
    note=_note,
    in_terminal=InTerminal("clients at the horizon"),
)
