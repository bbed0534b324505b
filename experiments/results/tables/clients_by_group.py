"""The accuracy of groups of clients at the horizon: quarters of the fleet by speed, and main labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from emulator.arrays import Ints
from emulator.errors import InputError
from experiments.results.reading.clusters_in_force import num_clients
from experiments.results.statistics.clients.groups import (
    MOST_LABELS,
    QUARTERS,
    GroupMeans,
    group_means,
    label_groups,
    quarters,
    shown_labels,
)
from experiments.results.statistics.comparisons import once
from experiments.results.tables.by_arm import SHARE, table_by_arm, with_counts
from experiments.results.tables.clients import PLACE, are_logged
from experiments.results.tables.notes import intervals_of_single_arms
from experiments.results.tables.report import Report
from experiments.results.tables.table import NotedTable, OnPage, Table

BY_CHANCE = (
    "The mean of a group of few clients is noisy; n is the mean number of its scored clients per seed in the "
    "reference arm. "
)
OF_FLEET = (
    "Quarters are those of all clients of a seed, the same for all arms; clients of one speed are in one "
    "quarter, so that quarters may differ in size. "
)
NOT_RECORDED = "not recorded by the version that made these runs."

Groups = dict[str, list[GroupMeans | None]]
"""By arm, the groups of each seed; None where they are not known."""


@dataclass(frozen=True)
class Grouping:
    """A way to group clients.

    Attributes:
        id: The last part of the id of its figure.
        what: What the groups are of, such as "device speed".
        names: The names of the groups; none if clients are not in groups.
        groups: The groups.
        note: What is particular to its table; without groups, why there are none.
    """

    id: str
    what: str
    names: Sequence[str]
    groups: Groups
    note: str


@once
def groupings(report: Report) -> list[Grouping]:
    """The groupings, in the order of the page.

    Raises InputError if a table of clients is damaged, or is not of the clients in the log.
    """
    of_device = "By the time that a device takes for one sample. "
    of_network = "By the time that a byte takes to the device and back; the latency does not count. "
    rates = ["download_bytes_per_s", "upload_bytes_per_s"]
    return [
        _by_quarter(report, "device", "device speed", ["seconds_per_sample"], of_device),
        _by_quarter(report, "network", "network speed", rates, of_network),
        _by_label(report),
    ]


def _by_quarter(report: Report, id_: str, what: str, columns: Sequence[str], note: str) -> Grouping:
    """Quarters of the fleet by the sum of these columns of a client's device, per sample or per byte."""
    by_seed = quarters_by_seed(report, columns)
    if why := why_no_quarters(by_seed):
        return Grouping(id_, what, [], {}, why)
    groups = {
        arm.name: [
            None
            if seed is None or run.seed not in by_seed
            else group_means(seed.accuracy, by_seed[run.seed][seed.clients], len(QUARTERS))
            for run, seed in zip(arm.runs, report.clients[arm.name], strict=True)
        ]
        for arm in report.arms
    }
    return Grouping(id_, what, QUARTERS, groups, f"{note}{OF_FLEET}{BY_CHANCE}")


def quarters_by_seed(report: Report, columns: Sequence[str]) -> dict[int, Ints]:
    """By seed, the quarter of each client of the fleet, by the sum of its seconds per sample or per byte.

    Arms of a seed share the fleet: the first arm with a table of clients gives it. Seeds without one are left
    out. Raises InputError if the log of a run is of another number of clients.
    """
    found: dict[int, Ints] = {}
    for run in (run for arm in report.arms for run in arm.runs):
        if run.seed not in found and (table := report.directory.read_clients(run.arm, run.seed)) is not None:
            values = {name: np.asarray(table[name].to_numpy(), dtype=np.float64) for name in columns}
            costs = [1 / value if name.endswith("_per_s") else value for name, value in values.items()]
            found[run.seed] = quarters(np.sum(costs, axis=0))
        if run.seed in found and (count := len(found[run.seed])) != num_clients(run):
            raise InputError(
                f"arm {run.arm!r}, seed {run.seed}: clients.parquet has {count} clients, and the log "
                f"{num_clients(run)}"
            )
    return found


def why_no_quarters(by_seed: Mapping[int, Ints]) -> str:
    """Why there is nothing to tell of these quarters; empty if there is."""
    if any(groups.max(initial=0) > 0 for groups in by_seed.values()):
        return ""
    return "all clients are alike." if by_seed else NOT_RECORDED


def _by_label(report: Report) -> Grouping:
    """Groups by the main label of each client."""
    seeds = [seed for of_arm in report.clients.values() for seed in of_arm if seed is not None]
    shown = shown_labels(seeds)
    if not shown:
        return Grouping("label", "label mix", [], {}, NOT_RECORDED)
    labels = [seed.labels for seed in seeds if seed.labels is not None]
    folds = any((label_groups(found, shown) == len(shown)).any() for found in labels)
    names = [*(f"label {label}" for label in shown), *(["other labels"] if folds else [])]
    groups: Groups = {
        name: [
            None
            if seed is None or seed.labels is None
            else group_means(seed.accuracy, label_groups(seed.labels, shown), len(names))
            for seed in of_arm
        ]
        for name, of_arm in report.clients.items()
    }
    folded = f"The {MOST_LABELS} labels of most clients are shown by themselves. " if folds else ""
    note = (
        "By the label of which a client held most training samples when it was scored, the lowest of ties. "
        f"{folded}Clients may have other labels in arms that reach other data by the horizon. {BY_CHANCE}"
        "A mean over seeds needs clients of that label in every seed."
    )
    return Grouping("label", "label mix", names, groups, note)


def _table(report: Report, grouping: Grouping) -> NotedTable:
    """The mean accuracy of each group by arm."""
    reference = [seed.counts for seed in grouping.groups[report.arms[0].name] if seed is not None]
    counts = np.mean(reference, axis=0) if reference else np.zeros(len(grouping.names))
    found = {
        arm: [None if seed is None else seed.accuracy for seed in seeds]
        for arm, seeds in grouping.groups.items()
    }
    table = table_by_arm(report, dict.fromkeys(with_counts(grouping.names, counts), SHARE), found)
    note = f"{intervals_of_single_arms(report.arms)}{grouping.note}".strip()
    return NotedTable(f"By {grouping.what}", table, [note])


def _on_page(report: Report) -> OnPage:
    found = groupings(report)
    return OnPage(
        [_table(report, grouping) for grouping in found if grouping.names],
        remarks=[f"By {grouping.what}: {grouping.note}" for grouping in found if not grouping.names],
    )


TABLE = Table(title="By group", place=PLACE, says_something=are_logged, on_page=_on_page)
