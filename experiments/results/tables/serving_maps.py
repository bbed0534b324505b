"""Serving maps: which model served each client at each data step, over the true concepts; one per arm.

The text of a cell is the number of the model that served the client at the last evaluation of the step.
Models are numbered in the order in which they first appear, row by row. The colour of a cell is the concept
of the data that the client trained on.
"""

from __future__ import annotations

from experiments.results.reading.header_truth import concepts_of_tests
from experiments.results.reading.run_directory import ReportedRun
from experiments.results.statistics.drift.accuracy import last_evaluations
from experiments.results.tables.report import Report
from experiments.results.tables.table import OnPage, Place, Table

MOST_CLIENTS = 60
MOST_STEPS = 60
# Light enough for dark text, and distinguishable for colour-blind readers.
CONCEPT_COLOURS = ("#a6cee3", "#fdbf6f", "#b2dfb0", "#f3b6cf", "#fff2a8", "#cab2d6", "#d0d5da", "#e0c3a0")
NO_MODEL = "-"


Rows = list[tuple[int, list[tuple[str, int, bool]]]]
"""The serving map of a run: (data step, cells) for each step with an evaluation, with a cell for each client.

A cell has the number of the model, or `NO_MODEL`, the concept, and whether it is a drift cell: the samples on
which it is scored are of another concept.
"""


def serving_map(run: ReportedRun) -> Rows:
    """The serving map of `run`; empty if its log lacks the concepts, or the models that served clients."""
    concepts = run.header.get("concepts")
    if concepts is None:
        return []
    tested = concepts_of_tests(run.header)
    numbers: dict[int, str] = {}
    rows = []
    for record in last_evaluations(run.records):
        if record.serving is None:
            continue
        cells = []
        of_clients = zip(record.serving.tolist(), concepts[record.step], tested[record.step], strict=True)
        for label, concept, next_concept in of_clients:
            model = NO_MODEL if label < 0 else numbers.setdefault(label, str(len(numbers) + 1))
            cells.append((model, concept, concept != next_concept))
        rows.append((record.step, cells))
    return rows


def num_models(rows: Rows) -> int:
    """The number of models that served clients."""
    return len({model for _, cells in rows for model, _, _ in cells} - {NO_MODEL})


def too_large(rows: Rows) -> bool:
    """Whether the map has too many clients or data steps to be readable."""
    return len(rows) > MOST_STEPS or len(rows[0][1]) > MOST_CLIENTS


def _on_page(report: Report) -> OnPage | None:
    """The maps of the first finished run of each arm, in the configured order."""
    if not report.summary.finished.is_known:
        return None
    names = [name for name in report.order if name in report.summary.finished.arms]
    first = [next(run for run in report.runs if run.arm == name) for name in names]
    maps = [(run, rows) for run in first if (rows := serving_map(run))]
    if not maps:
        return None
    readable = [(run.arm, run.seed, num_models(rows), rows) for run, rows in maps if not too_large(rows)]
    concepts = {concept for *_, rows in readable for _, cells in rows for _, concept, _ in cells}
    content = {
        "maps": readable,
        "colours": {concept: CONCEPT_COLOURS[concept % len(CONCEPT_COLOURS)] for concept in sorted(concepts)},
        "left_out": len(maps) - len(readable),
        "most_clients": MOST_CLIENTS,
        "most_steps": MOST_STEPS,
    }
    return OnPage(template="serving_maps.html", content=content)


TABLE = Table(title="Which model served each client", place=Place("pays", id="maps"), on_page=_on_page)
