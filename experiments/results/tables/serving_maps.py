"""Serving maps: which model served each client at each data step, over the true concepts; one per arm.

The text of a cell is the number of the model that served the client at the last evaluation of the step.
Models are numbered in the order in which they first appear, row by row. The colour of a cell is the concept
of the data that the client trained on.
"""

from __future__ import annotations

from dataclasses import dataclass

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


@dataclass(frozen=True)
class MapCell:
    """One client at one data step; `model` is the number of the model that served it, or `NO_MODEL`."""

    model: str
    concept: int
    drifts: bool  # a drift cell: the samples on which it is scored are of another concept

    @property
    def colour(self) -> str:
        return CONCEPT_COLOURS[self.concept % len(CONCEPT_COLOURS)]


@dataclass(frozen=True)
class ServingMap:
    """The serving map of one run: `rows` has (data step, cells), with a cell for each client.

    Only data steps with an evaluation have a row.
    """

    arm: str
    seed: int
    rows: list[tuple[int, list[MapCell]]]

    @property
    def num_models(self) -> int:
        return len({cell.model for _, cells in self.rows for cell in cells} - {NO_MODEL})


def serving_map(run: ReportedRun) -> ServingMap | None:
    """The serving map of `run`; None if its log lacks the concepts, or the models that served clients."""
    concepts = run.header.get("concepts")
    if concepts is None:
        return None
    tested = concepts_of_tests(run.header)
    numbers: dict[int, str] = {}
    rows = []
    for record in last_evaluations(run.records):
        if record.serving is None:
            continue
        trained = concepts[record.step]
        scored = tested[record.step]
        cells = []
        for label, concept, next_concept in zip(record.serving.tolist(), trained, scored, strict=True):
            model = NO_MODEL if label < 0 else numbers.setdefault(label, str(len(numbers) + 1))
            cells.append(MapCell(model, concept, concept != next_concept))
        rows.append((record.step, cells))
    return ServingMap(run.arm, run.seed, rows) if rows else None


def too_large(serving: ServingMap) -> bool:
    """Whether the map has too many clients or data steps to be readable."""
    return len(serving.rows) > MOST_STEPS or len(serving.rows[0][1]) > MOST_CLIENTS


def first_maps(report: Report) -> list[ServingMap]:
    """The maps of the first finished run of each arm, in the configured order."""
    names = [name for name in report.order if name in report.summary.finished.arms]
    first = [next(run for run in report.runs if run.arm == name) for name in names]
    return [serving for run in first if (serving := serving_map(run)) is not None]


def _on_page(report: Report) -> OnPage | None:
    maps = first_maps(report) if report.summary.finished.is_known else []
    if not maps:
        return None
    readable = [serving for serving in maps if not too_large(serving)]
    concepts = {
        cell.concept: cell.colour for serving in readable for _, cells in serving.rows for cell in cells
    }
    content = {
        "maps": readable,
        "concepts": sorted(concepts.items()),
        "left_out": len(maps) - len(readable),
        "most_clients": MOST_CLIENTS,
        "most_steps": MOST_STEPS,
    }
    return OnPage(template="serving_maps.html", content=content)


TABLE = Table(title="Which model served each client", place=Place("pays", id="maps"), on_page=_on_page)
