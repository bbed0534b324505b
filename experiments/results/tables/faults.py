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
INJECTED = {
    "crash": "In {share:.3g} % of the visits the client crashes, at any instant of the visit, and sends "
    "nothing back.",
    "corrupt": "{share:.3g} % of the updates arrive corrupted: {corruption}.",
    "loss": "Links lose {share:.3g} % of their packets, which are sent again and cost their bytes and time "
    "again.",
}
"""A sentence on each fault whose probability is configured."""

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
    has_byzantine = any(len(ids) for run in runs for ids in run.header.get("byzantine", {}).values())
    is_logged = any(record.client_accuracy is not None for run in runs for record in run.records)
    if has_byzantine and not is_logged:
        injected.append(HOW_TO_TELL_APART)
    return injected or ["No faults were injected: what was dropped was not finite by itself."]


def _injected(faults: Mapping[str, Any], runs: Sequence[ReportedRun]) -> list[str]:
    sentences = []
    num_clients = runs[0].header.get("num_clients") if runs else None
    for table in (table for table in faults.get("byzantine", ()) if table["share"] > 0):
        clients = "the clients" if num_clients is None else f"the {num_clients:,} clients"
        behaviour = BEHAVIOURS[table["kind"]].format(scale=table.get("scale", 1.0))
        sentences.append(f"{100 * table['share']:.3g} % of {clients} {behaviour}.")
    corruption = CORRUPTIONS[faults.get("corruption", "nan")]
    return sentences + [
        text.format(share=100 * faults[key], corruption=corruption)
        for key, text in INJECTED.items()
        if faults.get(key)
    ]


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
