"""The part of the report under "Why?": its figures, tables and sentences, from a run directory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from experiments.results.figures.clustering import (
    MOST_CLUSTERINGS,
    has_silhouettes,
    has_trigger,
    silhouettes_figure,
    trigger_figure,
)
from experiments.results.figures.figures import Arm
from experiments.results.figures.timeline import (
    MOST_OTHERS,
    MOST_SLOWEST,
    TimelineRound,
    chosen_rounds,
    timeline_figure,
    timeline_text,
)
from experiments.results.figures.waiting import (
    ArmWaiting,
    are_unrecorded,
    closers_table,
    lengths_sentence,
    lengths_table,
    waiting_figure,
)
from experiments.results.pages.scripted_page import Plot
from experiments.results.reading.recorded import squared_distances
from experiments.results.reading.run_directory import RunDirectory
from experiments.results.statistics.visit_columns import VisitColumns
from experiments.results.statistics.waiting import Waiting, waiting
from experiments.results.tables.closers import Closer, closers, most_often
from experiments.results.tables.columns import NotedTable
from experiments.results.tables.summary import Summary

MOST_CLOSERS = 30
"""Rows of the table of clients that closed rounds, as evenly as possible over the arms."""

HOW_TO_RECORD = "round.log_visits = true"


@dataclass(frozen=True)
class Why:
    """What the report shows under "Why?"; `sentence` says how long rounds were, and may be empty."""

    sentence: str
    tables: list[NotedTable]
    plots: list[Plot]


def why_plots(directory: RunDirectory, arms: Sequence[Arm], summary: Summary) -> list[Plot]:
    """The figures of `why`."""
    return why(directory, arms, summary).plots


def why(directory: RunDirectory, arms: Sequence[Arm], summary: Summary) -> Why:
    """The figures, tables and the sentence under "Why?", of all rounds that closed by the horizon.

    Raises:
        DataFileError: A file of a run is damaged.
        InputError: The visits of a run are not those of its log.
    """
    by_arm: list[ArmWaiting] = []
    closed_most: list[tuple[str, Closer]] = []
    rounds: list[TimelineRound] = []
    fixed = fixed_durations(directory.experiment())
    most = max(2, MOST_CLOSERS // max(1, len(arms)))
    for arm in arms:
        waited: list[Waiting] = []
        found: list[Closer] = []
        for run in arm.runs:
            records = summary.horizon.records(run)
            visits = read_columns(directory, arm.name, run.seed)
            waited.append(waiting(records, visits, is_fixed=fixed[arm.name]))
            if visits is not None:
                clients = directory.read_clients(arm.name, run.seed)
                found += closers(run.seed, waited[-1], visits, clients)
                if run is arm.runs[0]:
                    rounds += [
                        TimelineRound(arm.name, run.seed, record, visits.of_round(record.round), reason)
                        for record, reason in chosen_rounds(records, len(arms))
                    ]
        by_arm.append(ArmWaiting.of_runs(arm.name, waited))
        closed_most += [(arm.name, closer) for closer in most_often(found, most)]
    sentence = lengths_sentence(by_arm)
    plots = [
        *_trigger_plots(directory, [arm for arm in arms if any(map(has_trigger, arm.runs))]),
        *_silhouette_plots([arm for arm in arms if has_silhouettes(arm.runs[0])]),
        Plot(
            "waiting", "What closed rounds were waiting for", _waiting_caption(by_arm), waiting_figure(by_arm)
        ),
        *_timeline_plots(rounds, len(arms)),
    ]
    return Why(sentence, _tables(by_arm, closed_most), plots)


def read_columns(directory: RunDirectory, arm: str, seed: int) -> VisitColumns | None:
    """The visits of a run; None if they were not recorded."""
    table = directory.read_visits(arm, seed)
    return None if table is None else VisitColumns.from_table(table)


def fixed_durations(experiment: dict[str, Any]) -> dict[str, bool]:
    """Whether the rounds of an arm have a fixed duration, by the arm's name.

    >>> fixed_durations({"arm": [{"name": "global"}, {"name": "timed", "pacing": {"kind": "fixed"}}]})
    {'global': False, 'timed': True}
    """
    return {
        str(arm["name"]): isinstance(arm.get("pacing"), dict) and arm["pacing"].get("kind") == "fixed"
        for arm in experiment["arm"]
    }


def _trigger_plots(directory: RunDirectory, arms: Sequence[Arm]) -> list[Plot]:
    if not arms:
        return []
    caption = (
        "What decided whether all clients were re-clustered, at each opening of a round at which a client "
        "was found drifted: the distance that was measured (of the centre that moved farthest, or the "
        "largest between two clients of a cluster), and the limit from which the trigger fires: the "
        "threshold times "
        "the mean distance between centres, or delta. Both are in the clusterer's distance. Triangles are "
        'rounds in which it fired. With a single cluster or the threshold "never" there is no limit. Lines '
        f"are single seeds{_list_clause(arms)}."
    )
    figure = trigger_figure(arms, squared=squared_distances(directory.experiment()))
    return [Plot("trigger", "When all clients were re-clustered: shift against threshold", caption, figure)]


def _silhouette_plots(arms: Sequence[Arm]) -> list[Plot]:
    if not arms:
        return []
    caption = (
        "Below: the number of clusters over rounds. Above: as diamonds, the mean silhouette of the number "
        "that each global clustering chose, and, as small dots, of every number that it tried, for at most "
        f"{MOST_CLUSTERINGS} clusterings of the first seed, evenly spread. A silhouette near 1 means that "
        "clusters are far apart, near 0 that they overlap. Lines are single seeds"
        f"{_list_clause(arms)}."
    )
    return [
        Plot("silhouettes", "How many clusters, and how well they fit", caption, silhouettes_figure(arms))
    ]


def _waiting_caption(arms: Sequence[ArmWaiting]) -> str:
    caption = (
        f"{lengths_sentence(arms)} Bars are means over seeds, of rounds that closed by the horizon. "
        "Before dispatch, a round waits for reports, for responses to requests, and until enough clients are "
        "online. Between rounds, responses to requests on updates arrive. "
    )
    if are_unrecorded(arms):
        return caption + (
            "Visits: from dispatch to the end of the round. What this time consists of was not recorded in "
            f"every run: {HOW_TO_RECORD} records it, with a timeline of rounds."
        )
    return caption + (
        "From dispatch on, a round waits for the visit that closes it, the last that completed before its "
        "quota was full: its time is split into requests, download, compute and upload. Drop-out: the round "
        "ended when the last client that was out dropped out. Deadline: it ended at a time set by its pacing."
    )


def _timeline_plots(rounds: Sequence[TimelineRound], num_arms: int) -> list[Plot]:
    if not rounds:
        return []
    seed = f"seed {rounds[0].seed}" if len({item.seed for item in rounds}) == 1 else "each arm's own"
    caption = (
        "A row per visit, sorted by its end: what it spent on requests, download, compute and upload until "
        "it ended. Its symbol says how: completed, abandoned, dropped out, or crashed. The dotted lines "
        "are the "
        "opening of the round, the dispatch, and its end; times are since the dispatch. The slider chooses a "
        f"round of {seed}: the slowest, the median, and others spread evenly"
        f"{'; the list chooses the arm' if num_arms > 1 else ''}. Of a round with more than "
        f"{MOST_SLOWEST + MOST_OTHERS} visits, the {MOST_SLOWEST} that ended last are drawn, and "
        f"{MOST_OTHERS} evenly spread over the others."
    )
    title = "Who is slow: the visits of a round"
    text = f"{title}. {timeline_text(rounds)}"
    return [Plot("timeline", title, caption, timeline_figure(rounds), text)]


def _tables(arms: Sequence[ArmWaiting], closed_most: Sequence[tuple[str, Closer]]) -> list[NotedTable]:
    tables = [
        NotedTable(
            "Lengths of rounds",
            lengths_table(arms),
            "Means over seeds, of the rounds that closed by the horizon; percentages are shares of their "
            "length, from the opening to the end.",
        )
    ]
    if closed_most:
        tables.append(
            NotedTable(
                "Who closed rounds",
                closers_table(closed_most),
                "The clients of each arm that rounds waited for most often: in how many rounds of their "
                "seed they were the last to complete or to drop out, and how long those rounds waited from "
                "dispatch to their end. Compute, download and upload say how many times slower their "
                "device is than that of the median client of the seed. Clients that closed a single "
                "round are left out.",
            )
        )
    return tables


def _list_clause(arms: Sequence[Arm]) -> str:
    return "; the list below the plot chooses the arm" if len(arms) > 1 else ""
