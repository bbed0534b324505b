"""The updates of an arm up to the horizon: whose they are, and how stale.

Quantities, of which a round with one server step has staleness 0:

* `absorbed_updates` is the number of updates that server steps absorbed, those of completed visits.
* `server_steps` is the number of server steps.
* `mean_staleness` is the mean over these updates of the server steps that their lane made between dispatch
  and absorption, and `largest_staleness` the largest; None without an update.

The table is there if the rounds of some arm may have several server steps. On a page it also has the shares
of the updates that come from each quarter of the fleet by device speed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from emulator.arrays import Floats, Ints
from emulator.errors import InputError
from experiments.results.statistics.absorbed import Absorbed, absorbed, absorbed_by_client, arms_of_steps
from experiments.results.statistics.client_groups import QUARTERS
from experiments.results.statistics.comparisons import MeasuredRun
from experiments.results.statistics.intervals import amount_estimate
from experiments.results.statistics.scales import count_scale, index_scale
from experiments.results.tables.by_arm import SHARE, table_by_arm, with_counts
from experiments.results.tables.clients_by_group import OF_FLEET, quarters_by_seed, why_no_quarters
from experiments.results.tables.notes import intervals_of_single_arms
from experiments.results.tables.report import Report
from experiments.results.tables.table import (
    Column,
    InManyRuns,
    InTerminal,
    NotedTable,
    OnPage,
    Place,
    Table,
    TextTable,
    over_seeds,
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


def _by_the_horizon(run: MeasuredRun) -> Absorbed:
    return run.once(absorbed).until(run.horizon.horizon_s)


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
        arm.arm: [quarter_shares(run, by_seed.get(run.seed)) for run in arm.measured]
        for arm in summary.compared
    }
    quarters = table_by_arm(report, dict.fromkeys(with_counts(QUARTERS, counts), SHARE), shares)
    rows = [
        (name, [*cells, *more]) for (name, cells), (_, more) in zip(table.rows, quarters.rows, strict=True)
    ]
    with_quarters = TextTable([*table.headings, *quarters.headings], rows)
    return OnPage([NotedTable("", with_quarters, [f"{intervals}{NOTE}", f"{BY_SPEED}{OF_FLEET}".rstrip()])])


def quarter_shares(run: MeasuredRun, fleet: Ints | None) -> Floats | None:
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


def _is_stale(found: Sequence[object]) -> bool:
    """Whether an update of some run was stale."""
    return any(any(getattr(estimate, "per_seed", ())) for estimate in found)


UPDATES = Column("absorbed_updates", "updates", count_scale)
MEAN_STALENESS = Column("mean_staleness", "mean staleness", index_scale)

TABLE = Table(
    title="Updates by speed and staleness",
    place=Place("why", id="updates-by-speed"),
    quantities={
        "absorbed_updates": over_seeds(
            lambda run: float(_by_the_horizon(run).updates.sum()), amount_estimate
        ),
        "server_steps": over_seeds(lambda run: float(_by_the_horizon(run).steps.sum()), amount_estimate),
        "mean_staleness": over_seeds(lambda run: _by_the_horizon(run).mean_staleness, amount_estimate),
        "largest_staleness": over_seeds(lambda run: _by_the_horizon(run).largest_staleness, amount_estimate),
    },
    columns=(
        UPDATES,
        Column("server_steps", "server steps", count_scale),
        MEAN_STALENESS,
        Column("largest_staleness", "largest", count_scale),
    ),
    says_something=lambda summary: bool(arms_of_steps(summary.compared)),
    note=lambda summary: NOTE,
    in_terminal=InTerminal("updates and their staleness"),
    in_many_runs=InManyRuns(
        keys=("absorbed_updates", "mean_staleness"),
        columns=(Column("mean_staleness", "mean staleness", index_scale, only_if=_is_stale),),
        reductions=(absorbed,),
        notes={"mean_staleness": STALENESS},
    ),
    on_page=_on_page,
)
