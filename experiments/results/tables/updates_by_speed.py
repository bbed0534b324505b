"""The updates of an arm up to the horizon: whose they are, and how stale.

A round with one server step has staleness 0. The table is there if the rounds of some arm may have several
server steps. On a page it also has the shares of the updates that come from each quarter of the fleet by
device speed.
"""

from __future__ import annotations

import math

import numpy as np

from emulator.arrays import Floats, Ints
from emulator.errors import InputError
from experiments.results.statistics.absorbed import absorbed, absorbed_by_client, arms_of_steps
from experiments.results.statistics.clients.groups import QUARTERS
from experiments.results.statistics.comparisons import Run
from experiments.results.statistics.scales import index_scale
from experiments.results.tables.by_arm import SHARE, table_by_arm, with_counts
from experiments.results.tables.clients_by_group import OF_FLEET, quarters_by_seed, why_no_quarters
from experiments.results.tables.notes import intervals_of_single_arms
from experiments.results.tables.quantities import is_ever_above_0, means, quantity
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

STALENESS = (
    "The staleness of an update is the number of server steps that its lane made between its dispatch and "
    "the step that absorbed it; it is 0 where a round has one dispatch and one server step."
)
NOTE = (
    "Per run of one seed, up to the horizon. Updates are those of completed visits, which a server step "
    f"absorbed. {STALENESS} Largest is the largest staleness in a run."
)
BY_SPEED = (
    "Quarters are by the time that a device takes for one sample; n is their mean number of clients per "
    "seed. "
)
NO_UPDATE = "if no update was absorbed"


def _on_page(report: Report) -> OnPage:
    summary = report.summary
    table = text_table(TABLE.columns, summary.rows)
    by_seed = quarters_by_seed(report, ["seconds_per_sample"])
    intervals = intervals_of_single_arms(report.arms)
    if why := why_no_quarters(by_seed):
        remarks = [f"Shares by device speed: {why}"]
        return OnPage([NotedTable("", table, [f"{intervals}{NOTE}"])], remarks=remarks)
    counts = np.mean([_counts(groups) for groups in by_seed.values()], axis=0)
    shares = {
        arm.arm: [quarter_shares(run, by_seed.get(run.seed)) for run in arm.measured] for arm in summary.rows
    }
    quarters = table_by_arm(report, dict.fromkeys(with_counts(QUARTERS, counts), SHARE), shares)
    rows = [
        (name, [*cells, *more]) for (name, cells), (_, more) in zip(table.rows, quarters.rows, strict=True)
    ]
    with_quarters = TextTable([*table.headings, *quarters.headings], rows)
    return OnPage([NotedTable("", with_quarters, [f"{intervals}{NOTE}", f"{BY_SPEED}{OF_FLEET}".rstrip()])])


def quarter_shares(run: Run, fleet: Ints | None) -> Floats | None:
    """(4,) the share of the updates of a run, up to the horizon, from each quarter of the fleet.

    Args:
        run: The run.
        fleet: (N,) the quarter of each client; None if it is not known.

    Returns:
        The shares; None without the quarters, or without an update.

    Raises:
        InputError: An update is of a client that is not in the fleet.
    """
    clients = absorbed_by_client(run.records)
    if fleet is None or not len(clients):
        return None
    if clients.min() < 0 or clients.max() >= len(fleet):
        unknown = clients.min() if clients.min() < 0 else clients.max()
        raise InputError(
            f"arm {run.arm!r}, seed {run.seed}: clients.parquet has {len(fleet)} clients, and the log has an "
            f"update of client {unknown}"
        )
    shares: Floats = _counts(fleet[clients]) / len(clients)
    return shares


def _counts(groups: Ints) -> Ints:
    return np.bincount(groups, minlength=len(QUARTERS)).astype(np.int64)


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


QUANTITIES = (absorbed_updates, server_steps, mean_staleness, largest_staleness)

TABLE = Table(
    title="Updates by speed and staleness",
    place=Place("why", id="updates-by-speed"),
    quantities=QUANTITIES,
    columns=QUANTITIES,
    says_something=lambda summary: bool(arms_of_steps(summary.rows)),
    note=lambda summary: NOTE,
    in_terminal=InTerminal("updates and their staleness"),
    in_many_runs=(absorbed_updates.headed(""), mean_staleness.noted(STALENESS, only_if=is_ever_above_0)),
    on_page=_on_page,
)
