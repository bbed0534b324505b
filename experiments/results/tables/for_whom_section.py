"""Builds the section "For whom?" of a report: its tables, notes and plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from emulator.arrays import Floats, Ints
from emulator.errors import InputError
from experiments.results.figures.client_figures import (
    MOST_BANDS,
    Evaluations,
    client_accuracy_figure,
    client_gain_figure,
    cluster_figure,
    evaluations,
    group_figure,
)
from experiments.results.figures.figures import Arm
from experiments.results.pages.scripted_page import Plot
from experiments.results.reading.run_directory import RunDirectory
from experiments.results.statistics.client_accuracy import DECILES
from experiments.results.statistics.client_groups import (
    MOST_LABELS,
    QUARTERS,
    GroupMeans,
    cluster_means,
    group_means,
    label_groups,
    quarters,
    shown_labels,
)
from experiments.results.statistics.intervals import (
    FEWEST_SEEDS,
    amount_estimate,
    mean_estimate,
    share_estimate,
)
from experiments.results.tables.clients import decile_estimates
from experiments.results.tables.columns import CLIENTS, NotedTable, TextTable, text_table
from experiments.results.tables.formats import (
    Cell,
    count_scale,
    distance_scale,
    percent_scale,
    show_estimate,
)
from experiments.results.tables.notes import client_note
from experiments.results.tables.summary import Summary

HOW_TO_LOG_CLIENTS = (
    "Not recorded: round.log_client_accuracy = true, in the configuration or by --set, logs the accuracy of "
    "each client, and this section then shows deciles, the worst tenth, and who is worse off."
)
FEWEST_IN_CLUSTER = 10
"""Fewest scored clients of a cluster that counts as the lowest or the highest: smaller ones are chance."""

BY_CHANCE = (
    "The mean of a group of few clients is noisy; n is the mean number of its scored clients per seed in the "
    "reference arm. "
)


@dataclass(frozen=True)
class ForWhom:
    """The section: its tables, remarks on what is missing, and its plots."""

    tables: list[NotedTable]
    remarks: list[str]
    plots: list[Plot]


Groups = dict[str, list[GroupMeans | None]]


def for_whom(directory: RunDirectory, arms: Sequence[Arm], summary: Summary) -> ForWhom | None:
    """The section of the report; None if no run has logged the accuracies of clients by the horizon.

    Args:
        directory: The run directory, which has the devices of clients.
        arms: The arms of the summary, the reference arm first.
        summary: The summary of the runs.

    Raises:
        InputError: The log or the table of clients of a run is damaged.
    """
    if not summary.shows_clients:
        return None
    found = evaluations(arms, summary.horizon.horizon_s)
    tables = [
        NotedTable("Who is worse off", text_table(CLIENTS, summary.clients), client_note(summary)),
        _decile_table(arms, found),
    ]
    plots = [
        Plot(
            "client-accuracy",
            "Accuracy of clients, from the worst to the best",
            "The share of clients whose accuracy at the horizon is at or below a value: at 10 % is the first "
            f"decile, at 50 % the median client. {_lines(arms)}",
            client_accuracy_figure(arms, found),
        )
    ]
    if len(arms) > 1:
        plots.append(
            Plot(
                "client-gain",
                f"Gain of each client over {arms[0].name}",
                "Gains of clients over themselves under the reference arm, from the largest loss to the "
                "largest gain: the clients left of where a line reaches 0 are worse off. "
                f"{_lines(arms)} Two arms that are equally good for everyone differ client by "
                "client, by chance: their curve is on average as far below 0 on the left as it is above 0 on "
                "the right.",
                client_gain_figure(arms, found),
            )
        )
    remarks = []
    for name, column_names, what in (
        ("device", ("seconds_per_sample",), "device speed"),
        ("network", ("download_bytes_per_s", "upload_bytes_per_s"), "network speed"),
    ):
        by_seed = _quarters_by_seed(directory, arms, column_names)
        if not by_seed:
            remarks.append(f"By {what}: not recorded by the version that made these runs.")
        elif all(groups.max(initial=0) == 0 for groups in by_seed.values()):
            remarks.append(f"By {what}: all clients are alike.")
        else:
            groups = _grouped_by_quarter(arms, found, by_seed)
            table, plot = _by_group(name, what, QUARTERS, arms, groups, _QUARTER_NOTES[name])
            tables.append(table)
            plots.append(plot)
    if (labels := _by_label(arms, found)) is not None:
        tables.append(labels[0])
        plots.append(labels[1])
    else:
        remarks.append("By label mix: not recorded by the version that made these runs.")
    if (clusters := _by_cluster(arms, found)) is not None:
        tables.append(clusters[0])
        plots.append(clusters[1])
    else:
        remarks.append("By cluster: no arm has more than one cluster at the horizon.")
    return ForWhom(tables, remarks, plots)


_OF_FLEET = (
    "Quarters are those of all clients of a seed, the same for all arms; clients of one speed are in one "
    "quarter, so that quarters may differ in size. "
)
_QUARTER_NOTES = {
    "device": f"By the time that a device takes for one sample. {_OF_FLEET}{BY_CHANCE}",
    "network": (
        "By the time that a byte takes to the device and back; the latency does not count. "
        f"{_OF_FLEET}{BY_CHANCE}"
    ),
}


def _bands(arms: Sequence[Arm]) -> str:
    has_bands = len(arms) <= MOST_BANDS and any(len(arm.runs) > 1 for arm in arms)
    return ", bands are the range of the seeds" if has_bands else ""


def _lines(arms: Sequence[Arm]) -> str:
    """What the lines of a figure are."""
    if max(len(arm.runs) for arm in arms) == 1:
        return "Lines are of a single seed."
    return f"Lines are means over seeds{_bands(arms)}."


def _dots(arms: Sequence[Arm]) -> str:
    """What the dots of a figure of groups are."""
    if max(len(arm.runs) for arm in arms) == 1:
        return "Dots are of a single seed."
    return f"Dots are means over the seeds that have such clients{_bands(arms).replace('bands', 'bars')}."


def _intervals(arms: Sequence[Arm]) -> str:
    """What is below the figures of a table of single arms; empty for a single seed."""
    most = max(len(arm.runs) for arm in arms)
    if most == 1:
        return ""
    if most < FEWEST_SEEDS:
        return "Means over seeds; dots are single seeds. "
    return (
        "Means and 95 % intervals over seeds (Student's t), each by itself. They are not intervals of "
        "differences: arms share their seeds, so two arms may differ although their intervals overlap. "
    )


def _decile_table(arms: Sequence[Arm], found: Evaluations) -> NotedTable:
    scale = percent_scale(0.0)
    rows = [
        (arm.name, [show_estimate(estimate, scale) for estimate in decile_estimates(found[arm.name])])
        for arm in arms
    ]
    scored = [seed for arm in arms for seed in found[arm.name] if seed is not None]
    fewest, most = min(len(seed.clients) for seed in scored), max(len(seed.clients) for seed in scored)
    count = f"{fewest:,}" if fewest == most else f"between {fewest:,} and {most:,}"
    left_out = max(seed.left_out for seed in scored)
    without = (
        f"Up to {left_out:,} clients of a run had no test samples or no model then, and are left out. "
        if left_out
        else ""
    )
    few = "With so few, deciles are interpolated between clients." if fewest < 20 else ""
    return NotedTable(
        "Deciles",
        TextTable([f"{100 * share:.0f} %" for share in DECILES], rows),
        f"Of the accuracies of {count} clients per run, at the last evaluation by the horizon: the share of "
        "clients in the heading has that accuracy or a lower one; 50 % is the median client. "
        f"{_intervals(arms)}{_coarse(rows)}{without}{few}".strip(),
    )


def _coarse(rows: Sequence[tuple[str, list[Cell]]]) -> str:
    """A warning if an interval has no width, as seeds may agree on a decile; otherwise empty."""
    intervals = [cell.interval.strip("[]").split(", ") for _, cells in rows for cell in cells]
    if not any(len(ends) == 2 and ends[0] == ends[1] for ends in intervals):
        return ""
    return (
        "Accuracies of clients are multiples of one test sample, so seeds may have the very same decile: an "
        "interval of no width is no certainty. "
    )


def _quarters_by_seed(
    directory: RunDirectory, arms: Sequence[Arm], columns: Sequence[str]
) -> dict[int, Ints]:
    """By seed, the quarter of each client of the fleet, by the sum of its seconds per sample or per byte.

    Arms of a seed share the fleet: the first arm with a table of clients gives it. Seeds without one are left
    out.
    """
    found: dict[int, Ints] = {}
    for arm in arms:
        for run in arm.runs:
            if run.seed in found or (table := directory.read_clients(arm.name, run.seed)) is None:
                continue
            values = [np.asarray(table[name].to_numpy(), dtype=np.float64) for name in columns]
            found[run.seed] = quarters(_cost(values, columns))
    return found


def _cost(values: Sequence[Floats], columns: Sequence[str]) -> Floats:
    cost: Floats = np.zeros(len(values[0]))
    for column, name in zip(values, columns, strict=True):
        if name.endswith("_per_s"):
            with np.errstate(divide="ignore"):
                cost = cost + 1 / column
        else:
            cost = cost + column
    return cost


def _grouped_by_quarter(arms: Sequence[Arm], found: Evaluations, by_seed: Mapping[int, Ints]) -> Groups:
    groups: Groups = {}
    for arm in arms:
        groups[arm.name] = []
        for run, seed in zip(arm.runs, found[arm.name], strict=True):
            fleet = by_seed.get(run.seed)
            if seed is None or fleet is None:
                groups[arm.name].append(None)
                continue
            if seed.clients.max() >= len(fleet):
                raise InputError(
                    f"arm {arm.name!r}, seed {run.seed}: clients.parquet has {len(fleet)} clients, and "
                    f"the log scores client {seed.clients.max()}"
                )
            groups[arm.name].append(group_means(seed.accuracy, fleet[seed.clients], len(QUARTERS)))
    return groups


def _by_label(arms: Sequence[Arm], found: Evaluations) -> tuple[NotedTable, Plot] | None:
    """The table and the plot by main label; None if no label is logged."""
    shown = shown_labels([seed for seeds in found.values() for seed in seeds if seed is not None])
    if not shown:
        return None
    names = [*(f"label {label}" for label in shown), "other labels"]
    groups: Groups = {
        arm.name: [
            None
            if seed is None or seed.labels is None
            else group_means(seed.accuracy, label_groups(seed.labels, shown), len(names))
            for seed in found[arm.name]
        ]
        for arm in arms
    }
    if not any(seed.counts[-1] for seeds in groups.values() for seed in seeds if seed is not None):
        names = names[:-1]
        groups = {
            name: [
                None if seed is None else GroupMeans(seed.accuracy[:-1], seed.counts[:-1]) for seed in seeds
            ]
            for name, seeds in groups.items()
        }
    folded = (
        f"The {MOST_LABELS} labels of most clients are shown by themselves. "
        if len(names) > len(shown)
        else ""
    )
    note = (
        "By the label of which a client held most training samples when it was scored, the lowest of ties. "
        f"{folded}Clients may have other labels in arms that reach other data by the horizon. {BY_CHANCE}"
        "A mean over seeds needs clients of that label in every seed."
    )
    return _by_group("label", "label mix", names, arms, groups, note)


def _by_group(
    id_: str, what: str, names: Sequence[str], arms: Sequence[Arm], groups: Groups, note: str
) -> tuple[NotedTable, Plot]:
    """The table of the mean accuracy of each group by arm, and the plot of the same."""
    scale = percent_scale(0.0)
    reference = [seed.counts for seed in groups[arms[0].name] if seed is not None]
    counts = np.mean(reference, axis=0) if reference else np.zeros(len(names))
    headings = [f"{name} (n {count:,.0f})" for name, count in zip(names, counts.tolist(), strict=True)]
    rows: list[tuple[str, list[Cell]]] = []
    for arm in arms:
        seeds = [None if seed is None else seed.accuracy.tolist() for seed in groups[arm.name]]
        rows.append(
            (
                arm.name,
                [
                    show_estimate(
                        share_estimate(
                            [None if seed is None or np.isnan(seed[index]) else seed[index] for seed in seeds]
                        ),
                        scale,
                    )
                    for index in range(len(names))
                ],
            )
        )
    plot = Plot(
        f"clients-by-{id_}",
        f"Accuracy of clients by {what}",
        f"Mean accuracy at the horizon of the clients of each group, of each arm. {_dots(arms)}",
        group_figure(arms, names, groups, what),
    )
    return NotedTable(f"By {what}", TextTable(headings, rows), f"{_intervals(arms)}{note}".strip()), plot


def _by_cluster(arms: Sequence[Arm], found: Evaluations) -> tuple[NotedTable, Plot] | None:
    """The table and the plot of the clusters; None unless some arm has several."""
    rows: list[tuple[str, list[Cell]]] = []
    is_clustered = False
    for arm in arms:
        numbers: list[float | None] = []
        lowest: list[float | None] = []
        highest: list[float | None] = []
        for seed in found[arm.name]:
            clusters = None if seed is None else cluster_means(seed)
            if clusters is None:
                numbers.append(None)
                lowest.append(None)
                highest.append(None)
                continue
            means = clusters[1]
            is_clustered |= len(means.counts) > 1
            large = means.accuracy[means.counts >= FEWEST_IN_CLUSTER]
            numbers.append(float(len(means.counts)))
            lowest.append(float(large.min()) if len(large) else None)
            highest.append(float(large.max()) if len(large) else None)
        between = [
            None if low is None or high is None else 100 * (high - low)
            for low, high in zip(lowest, highest, strict=True)
        ]
        rows.append(
            (
                arm.name,
                [
                    show_estimate(mean_estimate(numbers), count_scale(0.0)),
                    show_estimate(share_estimate(lowest), percent_scale(0.0)),
                    show_estimate(share_estimate(highest), percent_scale(0.0)),
                    show_estimate(amount_estimate(between), distance_scale(0.0)),
                ],
            )
        )
    if not is_clustered:
        return None
    table = NotedTable(
        "By cluster",
        TextTable(["clusters", "lowest cluster", "highest cluster", "between them"], rows),
        "Clusters with scored clients at the horizon. A cluster of one seed is no cluster of another, so the "
        "table has the lowest and the highest mean accuracy of a cluster in each seed, averaged over seeds, "
        f"of clusters with at least {FEWEST_IN_CLUSTER} scored clients. They are picked by their accuracy: "
        "the more clusters an arm has and the smaller they are, the further they lie apart by chance alone. "
        "n/a: some seed has no cluster of that size.",
    )
    plot = Plot(
        "clients-by-cluster",
        "Accuracy of clients by cluster",
        "Mean accuracy at the horizon of the clients of each cluster, of each seed; a larger dot is of more "
        "scored clients. Small dots are noisy.",
        cluster_figure(arms, found),
        "Accuracy of clients by cluster: a dot for each cluster of each seed, in a row for each arm. The "
        "table by cluster has the lowest and the highest of them.",
    )
    return table, plot
