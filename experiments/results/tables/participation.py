"""Who takes part in an arm up to the horizon: the visits of each client, and how stale their updates are.

A round with one server step has staleness 0: columns of steps and staleness are there if the rounds of some
arm may have several. A page also has the shares of the updates that come from each quarter of the fleet by
device speed, which the log alone does not tell.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from emulator.arrays import Floats, Ints
from experiments.results.statistics.absorbed import absorbed, arms_of_steps
from experiments.results.statistics.clients.groups import QUARTERS, group_means
from experiments.results.statistics.clients.participation import (
    effective_number,
    share_of_busiest_tenth,
    share_without,
    visits_by_client,
)
from experiments.results.statistics.comparisons import Run
from experiments.results.statistics.intervals import Estimate
from experiments.results.statistics.scales import index_scale
from experiments.results.statistics.summary import Summary
from experiments.results.tables.by_arm import SHARE as AS_SHARE
from experiments.results.tables.by_arm import table_by_arm, with_counts
from experiments.results.tables.clients_by_group import OF_FLEET, quarters_by_seed, why_no_quarters
from experiments.results.tables.notes import intervals_of_single_arms
from experiments.results.tables.quantities import (
    SHARE,
    UNLOGGED,
    Quantity,
    any_measured,
    is_ever_above_0,
    means,
    quantity,
)
from experiments.results.tables.report import Report
from experiments.results.tables.table import (
    InTerminal,
    NotedTable,
    OnPage,
    Place,
    Table,
    text_table,
)

STALENESS = (
    "The staleness of an update is the number of server steps that its lane made between its dispatch and "
    "the step that absorbed it; it is 0 where a round has one dispatch and one server step."
)
IN_A_RUN = f"{STALENESS} Largest is the largest staleness in a run."
WITHOUT_VISITS = (
    "Without a visit is the share of all clients of the run, also of those that were never online or never "
    "held samples, that completed none."
)
EFFECTIVE = (
    "The effective number of participants is 1 / sum p², with the share p of each client in the completed "
    "visits: k if k clients have equally many."
)
NOTE = (
    "Per run of one seed, up to the horizon. Updates are those of completed visits, which a server step "
    f"absorbed. {WITHOUT_VISITS} The busiest tenth is the tenth of these clients (rounded up) with most "
    f"completed visits. {EFFECTIVE} Where every visit is of one of N clients drawn by lot, v for each on "
    "average, it is about N v / (v + 1)."
)
ACCURACIES = (
    " Accuracies are means over the scored clients with and without a completed visit, at the last "
    "evaluation by the horizon: who completes one is not drawn by lot, so that their difference need not be "
    "due to the visits."
)
BY_SPEED = (
    "Shares of the updates, by the time that a device takes for one sample; n is the mean number of clients "
    "of a quarter per seed. "
)
NO_UPDATE = "if no update was absorbed"
NO_CLIENTS = "if the log does not tell the number of clients"
NO_SUCH_CLIENT = f"{UNLOGGED}, and if no such client was scored"

FEWER = 0.8
"""Tables of many runs show how many take part where some row has below so much of what another has."""


@quantity("updates", "updates")
def absorbed_updates(run: Run) -> float:
    """Updates that server steps absorbed, those of completed visits."""
    return float(run.rounds(absorbed)["updates"].sum())


@quantity("server steps", "server steps")
def server_steps(run: Run) -> float:
    """Server steps; one a round, unless the log says how many."""
    return float(run.rounds(absorbed)["steps"].sum())


@means(
    "server steps that a lane made between the dispatch of an update and its absorption, averaged over "
    "updates; 0 in whole rounds",
    NO_UPDATE,
)
@quantity("server steps", "mean staleness", index_scale)
def mean_staleness(run: Run) -> float | None:
    """The mean staleness of the updates."""
    rounds = run.rounds(absorbed)
    known = ~np.isnan(rounds["staleness"])
    total = int(rounds["updates"][known].sum())
    return math.fsum((rounds["updates"] * rounds["staleness"])[known]) / total if total else None


@quantity("server steps", "largest", missing=NO_UPDATE)
def largest_staleness(run: Run) -> float | None:
    """The largest of these numbers."""
    largest = run.rounds(absorbed)["largest"]
    return None if np.isnan(largest).all() else float(np.nanmax(largest))


@quantity(SHARE, "without a visit", missing=NO_CLIENTS, only_if=any_measured)
def without_visits(run: Run) -> float | None:
    """Share of all clients, also of those never online or without samples, that completed no visit."""
    return share_without(visits_by_client(run))


@quantity(SHARE, "busiest tenth", missing=NO_UPDATE, only_if=any_measured)
def busiest_tenth(run: Run) -> float | None:
    """Share of the completed visits that are of the tenth of all clients, rounded up, with most."""
    return share_of_busiest_tenth(visits_by_client(run))


@quantity("clients", "effective participants", missing=NO_UPDATE, only_if=any_measured)
def effective_participants(run: Run) -> float | None:
    """Inverse Simpson index 1 / sum p^2, with the share p of each client in the completed visits."""
    return effective_number(visits_by_client(run))


@quantity(SHARE, "accuracy with a visit", missing=NO_SUCH_CLIENT, only_if=any_measured)
def accuracy_with_visits(run: Run) -> float | None:
    """Mean accuracy at the horizon of the scored clients that completed a visit."""
    return _accuracy(run, 1)


@quantity(SHARE, "accuracy without one", missing=NO_SUCH_CLIENT, only_if=any_measured)
def accuracy_without_visits(run: Run) -> float | None:
    """Mean accuracy at the horizon of the scored clients that completed no visit."""
    return _accuracy(run, 0)


def _accuracy(run: Run, group: int) -> float | None:
    """The mean accuracy of the clients without a visit (0), or with some (1); None without such a client."""
    visits = visits_by_client(run)
    if run.clients is None or not len(visits):
        return None
    found = group_means(run.clients.accuracy, np.minimum(visits[run.clients.clients], 1), 2)
    return float(found.accuracy[group]) if found.counts[group] else None


def quarter_shares(run: Run, fleet: Ints | None) -> Floats | None:
    """(4,) the share of the updates of a run, up to the horizon, from each quarter of the fleet.

    Args:
        run: The run.
        fleet: (N,) the quarter of each client; None if it is not known.

    Returns:
        The shares; None without the quarters, or without an update.
    """
    visits = visits_by_client(run)
    if fleet is None or not visits.any():
        return None
    shares: Floats = np.bincount(fleet, weights=visits, minlength=len(QUARTERS)) / visits.sum()
    return shares


def _on_page(report: Report) -> OnPage:
    rows, intervals = report.summary.rows, intervals_of_single_arms(report.arms)
    who = text_table((absorbed_updates, *OF_CLIENTS), rows)
    tables = [NotedTable("", who, [f"{intervals}{_note_on_clients(report.summary)}"])]
    if arms_of_steps(rows):
        tables.append(NotedTable("Staleness of updates", text_table(OF_STEPS, rows), [IN_A_RUN]))
    by_seed = quarters_by_seed(report, ["seconds_per_sample"])
    if why := why_no_quarters(by_seed):
        return OnPage(tables, remarks=[f"Updates by device speed: {why}"])
    counts = np.mean([np.bincount(fleet, minlength=len(QUARTERS)) for fleet in by_seed.values()], axis=0)
    shares = {arm.arm: [quarter_shares(run, by_seed.get(run.seed)) for run in arm.measured] for arm in rows}
    quarters = table_by_arm(report, dict.fromkeys(with_counts(QUARTERS, counts), AS_SHARE), shares)
    return OnPage(
        [*tables, NotedTable("Updates by device speed", quarters, [f"{BY_SPEED}{OF_FLEET}".rstrip()])]
    )


def _note_on_clients(summary: Summary) -> str:
    has_accuracies = any_measured([row[accuracy_with_visits.key] for row in summary.rows])
    return f"{NOTE}{ACCURACIES if has_accuracies else ''}"


def _columns(summary: Summary) -> Sequence[Quantity]:
    return (absorbed_updates, *OF_CLIENTS, *(OF_STEPS if arms_of_steps(summary.rows) else ()))


def _note(summary: Summary) -> str:
    return f"{_note_on_clients(summary)} {IN_A_RUN if arms_of_steps(summary.rows) else ''}".rstrip()


def _differ(figures: Sequence[Estimate]) -> bool:
    """Whether some row has below `FEWER` times as many as another: an `only_if` of columns."""
    found = [figure.mean for figure in figures if figure.mean is not None]
    return min(found, default=0.0) < FEWER * max(found, default=0.0)


def _others_differ(figures: Sequence[Estimate]) -> bool:
    """The same of those that are not counted by a share."""
    return _differ([replace(one, mean=None if one.mean is None else 1 - one.mean) for one in figures])


OF_STEPS = (server_steps, mean_staleness, largest_staleness)
OF_CLIENTS = (
    *(without_visits, busiest_tenth, effective_participants),
    *(accuracy_with_visits, accuracy_without_visits),
)

TABLE = Table(
    title="Who takes part",
    place=Place("why", id="who-takes-part"),
    quantities=(absorbed_updates, *OF_STEPS, *OF_CLIENTS),
    columns_for=_columns,
    note=_note,
    in_terminal=InTerminal("who takes part"),
    in_many_runs=(
        absorbed_updates.headed(""),
        without_visits.noted(WITHOUT_VISITS, only_if=_others_differ),
        busiest_tenth.headed(""),
        effective_participants.noted(EFFECTIVE, only_if=_differ),
        mean_staleness.noted(STALENESS, only_if=is_ever_above_0),
    ),
    on_page=_on_page,
)
