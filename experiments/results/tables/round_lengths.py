"""Lengths of the rounds of an arm up to the horizon, and the shares of their causes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from emulator.errors import naming
from experiments.results.reading.run_directory import RunDirectory
from experiments.results.statistics.absorbed import arms_of_steps
from experiments.results.statistics.clients.visits import VisitColumns
from experiments.results.statistics.closers import Closer, closers, most_often
from experiments.results.statistics.comparisons import Comparison, once
from experiments.results.statistics.scales import time_scale
from experiments.results.statistics.waiting import BETWEEN, COMPONENTS, VISITS, Waiting, waiting
from experiments.results.tables.cells import Cell
from experiments.results.tables.chosen_rounds import TimelineRound, chosen_rounds
from experiments.results.tables.report import Report
from experiments.results.tables.table import NotedTable, OnPage, Place, Table, TextTable

MOST_NAMED_ARMS = 4
"""With more arms, the sentence names only those with the shortest and the longest rounds."""

MOST_CLOSERS = 30
"""Rows of the table of clients that closed rounds, as evenly as possible over the arms."""

NOTE = (
    "Means over seeds, of the rounds that closed by the horizon; percentages are shares of their "
    "length, from the opening to the end."
)


OF_STEPS = "visits outlast rounds, which wait for no cohort"
"""Why nothing is said on what the rounds of an arm waited for."""


@dataclass(frozen=True)
class ArmWaiting:
    """The time of the rounds of an arm by its causes, in virtual seconds, and the number of its rounds.

    `seconds` has the sums over rounds of each component, a mean over seeds. `closed_most` has the clients
    that closed most rounds, and `shown` rounds of the first run to be shown; there are none without recorded
    visits.
    """

    arm: str
    rounds: float  # mean over seeds
    seconds: dict[str, float]
    closed_most: Sequence[Closer] = ()
    shown: Sequence[TimelineRound] = ()

    @classmethod
    def of_runs(cls, arm: str, runs: Sequence[Waiting]) -> ArmWaiting:
        """The means over `runs`, one for each seed; at least one."""
        totals = [run.totals_s for run in runs]
        rounds = float(np.mean([len(run.round) for run in runs]))
        means = {name: float(np.mean([total[name] for total in totals])) for name in totals[0]}
        return cls(arm, rounds, means)

    @property
    def length_s(self) -> float:
        """The mean length of a round, from its opening to its end."""
        return sum(self.seconds[name] for name in COMPONENTS) / max(self.rounds, 1.0)

    def share(self, component: str) -> float:
        """The share of a component of the length of rounds."""
        total_s = sum(self.seconds[name] for name in COMPONENTS)
        return self.seconds[component] / total_s if total_s else 0.0


@once
def waits(report: Report) -> list[ArmWaiting]:
    """Those of all rounds that closed by the horizon, by arm; one pass over the visits of all runs.

    Without the arms that `omission` names.

    Raises:
        DataFileError: A file of a run is damaged.
        InputError: The visits of a run are not those of its log.
    """
    left_out = arms_of_steps(report.summary.rows)
    arms = [arm for arm in report.summary.rows if arm.arm not in left_out]
    return [_waiting_of(report, arm, len(arms)) for arm in arms]


def _waiting_of(report: Report, arm: Comparison, num_arms: int) -> ArmWaiting:
    waited: list[Waiting] = []
    found: list[Closer] = []
    shown: list[TimelineRound] = []
    is_fixed = arm.configured is not None and arm.configured.has_fixed_rounds
    for run in arm.measured:
        name, seed = arm.arm, run.seed
        visits = read_columns(report.directory, name, seed)
        clients = None if visits is None else report.directory.read_clients(name, seed)
        with naming(str(report.directory.run_file(name, seed, "visits.parquet"))):
            waited.append(waiting(run.records, visits, is_fixed=is_fixed))
            if visits is not None:
                found += closers(seed, waited[-1], visits, clients)
        if visits is not None and run is arm.measured[0]:
            shown = [
                TimelineRound(name, seed, record, visits.of_round(record.round), reason)
                for record, reason in chosen_rounds(run.records, num_arms)
            ]
    closed_most = most_often(found, max(2, MOST_CLOSERS // num_arms))
    return replace(ArmWaiting.of_runs(arm.arm, waited), closed_most=closed_most, shown=shown)


def omission(report: Report) -> str:
    """A sentence on the arms whose rounds may have several server steps, and so wait for no cohort.

    Empty if there are none.
    """
    left_out = arms_of_steps(report.summary.rows)
    return f"Left out: {', '.join(left_out)}; {OF_STEPS}." if left_out else ""


def read_columns(directory: RunDirectory, arm: str, seed: int) -> VisitColumns | None:
    """The visits of a run; None if they were not recorded."""
    table = directory.read_visits(arm, seed)
    return None if table is None else VisitColumns.from_table(table)


def lengths_sentence(arms: Sequence[ArmWaiting]) -> str:
    """How long rounds were and what they consisted of; of many arms, the shortest and the longest rounds.

    >>> seconds = dict.fromkeys((*COMPONENTS, BETWEEN), 0.0) | {"compute": 90.0, "upload": 10.0}
    >>> lengths_sentence([ArmWaiting("global", 10.0, seconds)])
    'Mean length of a round: global 10.0 s (compute 90 %, upload 10 %).'
    """
    if not arms:
        return ""
    shortest, longest = (pick(arms, key=lambda arm: arm.length_s) for pick in (min, max))
    is_of_all = len(arms) <= MOST_NAMED_ARMS
    named = arms if is_of_all else [shortest, longest]
    scale = time_scale(max(arm.length_s for arm in named))
    parts = []
    for arm in named:
        shares = sorted(((arm.share(name), name) for name in COMPONENTS), reverse=True)
        shown = [f"{name} {100 * share:.0f} %" for share, name in shares if share >= 0.005]
        parts.append(f"{arm.arm} {scale(arm.length_s)} ({', '.join(shown)})")
    of = "Mean length of a round" if is_of_all else f"Shortest and longest mean round of {len(arms)} arms"
    text = f"{of}: {'; '.join(parts)}."
    if longest.length_s > 1.1 * shortest.length_s:
        text += (
            f" Rounds of {longest.arm} are {longest.length_s / max(shortest.length_s, 1e-9):.2g} times as "
            "long as the shortest: in the same virtual time the arm makes fewer server steps, which counts "
            "in every time to accuracy."
        )
    return text


def lengths_table(arms: Sequence[ArmWaiting]) -> TextTable:
    """A row for each arm: its rounds, their mean length, and the share of each component that occurs."""
    shown = [name for name in shown_components(arms) if name != BETWEEN]
    scale = time_scale(max((arm.length_s for arm in arms), default=0.0))
    rows = []
    for arm in arms:
        shares = [f"{100 * arm.share(name):.1f} %" for name in shown]
        rows.append((arm.arm, list(map(Cell, [f"{arm.rounds:,.4g}", scale(arm.length_s), *shares]))))
    return TextTable(["rounds", "mean length", *shown], rows)


def shown_components(arms: Sequence[ArmWaiting]) -> list[str]:
    """The components that occur, in order of time; the phases always, unless visits were not recorded."""
    return [name for name in (*COMPONENTS, BETWEEN) if any(arm.seconds[name] > 0 for arm in arms)]


def are_unrecorded(arms: Sequence[ArmWaiting]) -> bool:
    """Whether visits of some arm were not recorded."""
    return any(arm.seconds[VISITS] > 0 for arm in arms)


def _on_page(report: Report) -> OnPage | None:
    found = waits(report)
    notes = [NOTE, *filter(None, [omission(report)])]
    table = NotedTable("Lengths of rounds", lengths_table(found), notes)
    return OnPage([table], lead=lengths_sentence(found)) if found else None


TABLE = Table(title="Lengths of rounds", place=Place("why", group="rounds"), on_page=_on_page)
