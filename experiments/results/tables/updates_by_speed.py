"""The updates of an arm up to the horizon: whose they are, and how stale.

A round with one server step has staleness 0. The table is there if the rounds of some arm may have several
server steps. On a page it also has the shares of the updates that come from each quarter of the fleet by
device speed.
"""

from __future__ import annotations

import numpy as np

from emulator.arrays import Floats, Ints
from emulator.errors import InputError
from experiments.results.statistics.absorbed import Absorbed, absorbed, absorbed_by_client, arms_of_steps
from experiments.results.statistics.client_groups import QUARTERS
from experiments.results.statistics.comparisons import Comparison, Run
from experiments.results.statistics.intervals import share_estimate
from experiments.results.statistics.scales import index_scale, percent_scale
from experiments.results.tables.cells import NOT_MEASURED, Cell, show_estimate
from experiments.results.tables.clients_by_group import NOT_RECORDED, OF_FLEET, quarters_by_seed
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
ALIKE = "Shares by device speed: all clients are alike."


def _by_the_horizon(run: Run) -> Absorbed:
    return absorbed(run.log).until(run.horizon.horizon_s)


def _on_page(report: Report) -> OnPage:
    summary = report.summary
    table = text_table(TABLE.columns, summary.rows)
    by_seed = quarters_by_seed(report, ["seconds_per_sample"])
    intervals = intervals_of_single_arms(report.arms)
    if not by_seed or all(groups.max(initial=0) == 0 for groups in by_seed.values()):
        remark = ALIKE if by_seed else f"Shares by device speed: {NOT_RECORDED}"
        return OnPage([NotedTable("", table, [f"{intervals}{NOTE}"])], remarks=[remark])
    counts = np.mean([_counts(groups) for groups in by_seed.values()], axis=0)
    headings = [f"{name} (n {count:,.0f})" for name, count in zip(QUARTERS, counts.tolist(), strict=True)]
    rows = [
        (name, [*cells, *_quarter_cells(arm, by_seed)])
        for (name, cells), arm in zip(table.rows, summary.rows, strict=True)
    ]
    with_quarters = TextTable([*table.headings, *headings], rows)
    return OnPage([NotedTable("", with_quarters, [f"{intervals}{NOTE}", f"{BY_SPEED}{OF_FLEET}".rstrip()])])


def _quarter_cells(arm: Comparison, by_seed: dict[int, Ints]) -> list[Cell]:
    """A cell for each quarter: the share of the arm's updates that come from it, a mean over seeds."""
    shares = [quarter_shares(run, by_seed.get(run.seed)) for run in arm.measured]
    if any(seed is None for seed in shares):
        return [Cell(NOT_MEASURED)] * len(QUARTERS)
    scale = percent_scale(0.0)
    by_quarter = np.transpose([seed for seed in shares if seed is not None]).tolist()
    return [show_estimate(arm.stated(share_estimate(of_seeds)), scale) for of_seeds in by_quarter]


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
    return float(_by_the_horizon(run).updates.sum())


@quantity("server steps", "server steps")
def server_steps(run: Run) -> float:
    """Server steps; one a round, unless the log says how many."""
    return float(_by_the_horizon(run).steps.sum())


@means(
    "server steps that a lane made between the dispatch of an update and its absorption, averaged over "
    "updates; 0 in whole rounds",
    NO_UPDATE,
)
@quantity("server steps", "mean staleness", index_scale)
def mean_staleness(run: Run) -> float | None:
    """The mean staleness of the updates."""
    return _by_the_horizon(run).mean_staleness


@quantity("server steps", "largest", missing=NO_UPDATE)
def largest_staleness(run: Run) -> float | None:
    """The largest of these numbers."""
    return _by_the_horizon(run).largest_staleness


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
