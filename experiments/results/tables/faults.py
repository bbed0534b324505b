"""Faults: sentences that describe those that were injected, and counts of what they did.

What is counted is among the costs of an arm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.results.reading.run_directory import ReportedRun
from experiments.results.statistics.comparisons import Comparison
from experiments.results.tables.costs import ABANDONED, CRASHED, DROPOUTS, NONFINITE, REJECTED
from experiments.results.tables.report import Report
from experiments.results.tables.table import NotedTable, OnPage, Place, Table, text_table

BEHAVIOURS = {
    "sign_flip": "send -{scale:g} times their update",
    "noise": "add noise to their update, with {scale:g} times its norm",
    "label_flip": "train on flipped labels",
    "misreport": "permute their reports",
}
CORRUPTIONS = {
    "nan": "some of their numbers are NaN, and the updates are dropped",
    "bits": "a bit is flipped in some of their numbers",
}

NOTE = (
    "Per run of one seed. All arms of a seed share the same faults: which clients are byzantine, and whose "
    "device crashes in which round. The updates dropped had a number that is not finite, and were not "
    "used. Crashed visits are among the drop-outs."
)
HOW_TO_TELL_APART = (
    "The accuracy of byzantine clients counts in every mean: with round.log_client_accuracy = true, runs log "
    "that of each client, and a table has honest and byzantine clients apart."
)


def fault_sentences(
    faults: Mapping[str, Any], runs: Sequence[ReportedRun], rows: Sequence[Comparison]
) -> list[str] | None:
    """Sentences about the configured faults, the table `faults`; None if there is nothing to report.

    `runs` are of one arm; where they have byzantine clients and no accuracies of clients, a sentence names
    the key that logs them.

    That is so if no faults are configured and, by the `rows` of the summary, no visit crashed, no update was
    rejected, and all reports were finite. Updates and reports may be dropped without injected faults; then a
    sentence states that.
    """
    injected = _injected(faults, runs)
    counted = ("crashed_visits", "rejected_updates", "nonfinite_reports")
    happened = any(row[key].mean for row in rows for key in counted)
    if not injected and not happened:
        return None
    if any(_has_byzantine(run) for run in runs) and not _logs_clients(runs):
        injected.append(HOW_TO_TELL_APART)
    return injected or ["No faults were injected: what was dropped was not finite by itself."]


def _has_byzantine(run: ReportedRun) -> bool:
    """Whether some client of the run is byzantine."""
    return any(len(clients) > 0 for clients in run.header.get("byzantine", {}).values())


def _logs_clients(runs: Sequence[ReportedRun]) -> bool:
    """Whether some run has the accuracy of each client."""
    return any(record.client_accuracy is not None for run in runs for record in run.records)


def _injected(faults: Mapping[str, Any], runs: Sequence[ReportedRun]) -> list[str]:
    sentences = []
    num_clients = runs[0].header.get("num_clients") if runs else None
    for table in (table for table in faults.get("byzantine", ()) if table["share"] > 0):
        clients = "the clients" if num_clients is None else f"the {num_clients:,} clients"
        behaviour = BEHAVIOURS[table["kind"]].format(scale=table.get("scale", 1.0))
        sentences.append(f"{_percent(table['share'])} of {clients} {behaviour}.")
    if faults.get("crash"):
        sentences.append(
            f"In {_percent(faults['crash'])} of the visits the client crashes, at any instant of the visit, "
            f"and sends nothing back."
        )
    if faults.get("corrupt"):
        corruption = CORRUPTIONS[faults.get("corruption", "nan")]
        sentences.append(f"{_percent(faults['corrupt'])} of the updates arrive corrupted: {corruption}.")
    if faults.get("loss"):
        sentences.append(
            f"Links lose {_percent(faults['loss'])} of their packets, which are sent again and cost their "
            f"bytes and time again."
        )
    return sentences


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _on_page(report: Report) -> OnPage | None:
    sentences = fault_sentences(report.experiment.get("faults", {}), report.arms[0].runs, report.summary.rows)
    if sentences is None:
        return None
    table = text_table(TABLE.columns, report.summary.rows)
    return OnPage([NotedTable("", table, [NOTE])], sentences=sentences)


TABLE = Table(
    title="Faults",
    place=Place("why", after_figures=True, id="faults"),
    columns=(
        CRASHED.headed("crashed visits"),
        REJECTED.headed("updates dropped"),
        NONFINITE.headed("reports dropped"),
        DROPOUTS.headed("drop-outs in all"),
        ABANDONED.headed("abandoned"),
    ),
    on_page=_on_page,
)
