"""The accuracies of arms before and after the drift, of which drift/levels.py says when it is.

For each of the `ACCURACIES`, by its name in a round, there are five quantities (`drift_quantities`), and
`<accuracy>_recovery`: for each seed when, after the drift, the mean of five consecutive evaluations is first
no lower than the level before minus 2 percentage points. It has `rounds`, `delay_s` (virtual seconds),
`bytes` (download, upload and control) and `trained_samples_per_client` (null if not known), all counted from
the drift on. A seed is null if that is never so by the horizon, or if no level before is known. It is mostly
noise, and therefore in no table.

All of these are None unless every run has a drift before the horizon. Then there is a table for each accuracy
that some arm has; but none, so that reports stay small, if `accuracy` is the only one and the configuration
has no mass event, so that the log alone tells the drift.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from experiments.results.statistics.comparisons import Compared, Comparison, Run
from experiments.results.statistics.drift.levels import (
    EVALUATIONS_BEFORE,
    ROUNDS_AFTER,
    SECONDS_PER_HOUR,
    DriftLevels,
    Recovery,
    find_drift,
)
from experiments.results.statistics.intervals import (
    Estimate,
    amount_estimate,
    gain_estimate,
    mean_estimate,
    share_estimate,
)
from experiments.results.statistics.scales import Scale, time_scale, time_unit
from experiments.results.statistics.summary import Summary
from experiments.results.statistics.time_to_accuracy import ACCURACIES
from experiments.results.tables.costs import TRAINED_IF_KNOWN, samples_per_client, trained
from experiments.results.tables.notes import dots_of_triggers
from experiments.results.tables.personal import has_accuracy, trained_note, which_is_which
from experiments.results.tables.quantities import (
    IS_REFERENCE,
    NO_EVENT,
    POINTS,
    SHARE,
    Estimator,
    Measure,
    Quantity,
    any_measured,
)
from experiments.results.tables.report import Report
from experiments.results.tables.table import (
    InTerminal,
    NotedTable,
    OnPage,
    Place,
    Table,
    TextTable,
    text_table,
)

NO_DRIFT_BEFORE = (
    f"{NO_EVENT}, of the configuration or the log, and if `<accuracy>` was not evaluated before it"
)

OfLevels = Callable[[DriftLevels], float | None]


def _of_runs(
    runs: Sequence[Run], compared: Compared, name: str, number: OfLevels
) -> list[float | None] | None:
    """A number of the levels of one of the accuracies of each run; None if a drift is not known."""
    drift = find_drift(compared)
    if drift is None:
        return None
    levels = [drift.of(run, name) for run in runs]
    return [None if found is None else number(found) for found in levels]


def _level(name: str, number: OfLevels, estimate: Estimator) -> Measure:
    def measure(arm: Comparison, compared: Compared) -> Estimate | None:
        found = _of_runs(arm.measured, compared, name, number)
        return None if found is None else estimate(found)

    return measure


def _gain_after(name: str) -> Measure:
    def measure(arm: Comparison, compared: Compared) -> Estimate | None:
        values = _of_runs(arm.measured, compared, name, lambda found: found.after)
        reference = _of_runs(arm.reference, compared, name, lambda found: found.after)
        if arm.is_reference or values is None or reference is None:
            return None
        return gain_estimate(values, reference, scale=100.0, comparisons=compared.num_gains)

    return measure


def _recovery(name: str) -> Measure:
    def measure(arm: Comparison, compared: Compared) -> list[dict[str, float | None] | None] | None:
        drift = find_drift(compared)
        if drift is None:
            return None
        per_visit = None if arm.configured is None else arm.configured.samples_per_visit
        levels = [(run, drift.of(run, name)) for run in arm.measured]
        return [
            None if found is None or found.recovery is None else _as_json(run, found.recovery, per_visit)
            for run, found in levels
        ]

    return measure


def _as_json(run: Run, recovery: Recovery, per_visit: float | None) -> dict[str, float | None]:
    before, after = (
        samples_per_client(trained(run.log), rounds, per_visit)
        for rounds in (recovery.first_round, recovery.end_round)
    )
    return {
        "rounds": recovery.end_round - recovery.first_round,
        "delay_s": recovery.delay_s,
        "bytes": recovery.num_bytes,
        "trained_samples_per_client": None if before is None or after is None else after - before,
    }


def area_scale(area_pp_h: float) -> Scale:
    """The scale of areas up to this many percentage points times hours.

    >>> area_scale(5.25)(5.25), area_scale(0.1)(0.1)
    ('5.25 pp h', '6.00 pp min')
    """
    seconds, name = time_unit(area_pp_h * SECONDS_PER_HOUR)
    return Scale(seconds / SECONDS_PER_HOUR, f" pp {name}", None)


def drift_quantities(name: str, missing: str = NO_DRIFT_BEFORE) -> list[Quantity]:
    """The quantities of one of the `ACCURACIES` that have a column; `missing` is when they are not known."""
    missing = missing.replace("<accuracy>", name)
    before, after = f"{name}_before_drift", f"{name}_after_drift"
    difference, area = (f"{name}_drift_{what}" for what in ("difference_pp", "area_pp_h"))
    area_lost = _level(name, lambda found: found.area_lost_pp_h, amount_estimate)
    return [
        Quantity(before, _level(name, lambda found: found.before, share_estimate), SHARE, "before").means(
            f"`{name}`, mean of the last ten evaluations before the drift, which is the first mass event",
            missing,
        ),
        Quantity(after, _level(name, lambda found: found.after, share_estimate), SHARE, "after").means(
            f"`{name}`, averaged over the virtual time after the drift that 100 rounds take in the reference "
            "arm, or over less if the horizon is nearer",
            missing,
        ),
        Quantity(
            difference, _level(name, lambda found: found.difference_pp, mean_estimate), POINTS, "difference"
        ).means(f"`{after}` minus `{before}`", missing),
        Quantity(area, area_lost, "percentage points x virtual hours", "area lost", area_scale).means(
            f"how far `{name}` is below `{before}`, integrated over the same time", missing
        ),
        Quantity(f"{after}_gain_pp", _gain_after(name), POINTS, "gain after", only_if=any_measured).means(
            f"`{after}` minus that of the reference arm", ", ".join(filter(None, [IS_REFERENCE, missing]))
        ),
    ]


def _tables(summary: Summary, *, in_terminal: bool) -> list[tuple[str, TextTable]]:
    """(name, table) of each accuracy that some run has."""
    return [
        (
            heading,
            text_table([*drift_quantities(name), TRAINED_IF_KNOWN], summary.rows, in_terminal=in_terminal),
        )
        for name, heading in ACCURACIES.items()
        if has_accuracy(summary, name)
    ]


def _says_something(summary: Summary) -> bool:
    compared = summary.comparison
    others = any(has_accuracy(summary, name) for name in ACCURACIES if name != "accuracy")
    return find_drift(compared) is not None and (compared.has_event or others)


def _on_page(report: Report) -> OnPage:
    summary = report.summary
    tables = _tables(summary, in_terminal=False)
    noted = [NotedTable(heading.capitalize() if len(tables) > 1 else "", table) for heading, table in tables]
    return OnPage(noted, remarks=[_note(summary)])


def _note(summary: Summary) -> str:
    drift = find_drift(summary.comparison)
    assert drift is not None, "the table says something"
    stretch = time_scale(drift.stretch_s)(drift.stretch_s)
    levels = (
        f"Before is the mean of the last {EVALUATIONS_BEFORE} evaluations before the first mass event of a "
        f"run, after the mean over the {stretch} after it, which {ROUNDS_AFTER} rounds of "
        f"{summary.reference_arm} take if the horizon is not earlier. Area lost is how far the accuracy is "
        "below the level before, times how long."
    )
    dots = dots_of_triggers(summary.rows).rstrip()
    return " ".join(filter(None, [levels, which_is_which(summary), trained_note(summary), dots]))


def _captioned(summary: Summary, as_printed: bool) -> list[tuple[str, TextTable]]:
    return [
        (f"{heading} before and after the drift", table)
        for heading, table in _tables(summary, in_terminal=as_printed)
    ]


TABLE = Table(
    title="Before and after the drift",
    place=Place("pays"),
    quantities=tuple(
        quantity
        for name in ACCURACIES
        for quantity in (*drift_quantities(name), Quantity(f"{name}_recovery", _recovery(name)))
    ),
    says_something=_says_something,
    note=_note,
    in_terminal=InTerminal("", is_against_reference=True, in_notebook=True),
    captioned=_captioned,
    on_page=_on_page,
)
