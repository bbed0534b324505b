"""Which model each client used at each data step, over the concepts that were true: a small table per method.

A cell's text is the model that served the client at the last evaluation of the step, numbered in the order in
which models first appear, row by row; its colour is the concept of the data that the client trained on.
"""

from __future__ import annotations

from dataclasses import dataclass

from experiments.results.drift_accuracy import last_evaluations
from experiments.results.run_directory import FinishedRun

MOST_CLIENTS = 60
MOST_STEPS = 60
# Light enough for dark text on them, and told apart by colour-blind readers.
CONCEPT_COLOURS = ("#a6cee3", "#fdbf6f", "#b2dfb0", "#f3b6cf", "#fff2a8", "#cab2d6", "#d0d5da", "#e0c3a0")
NO_MODEL = "-"


@dataclass(frozen=True)
class MapCell:
    """One client at one data step."""

    model: str
    concept: int
    drifts: bool  # the next step's samples, on which it is scored, are of another concept

    @property
    def colour(self) -> str:
        return CONCEPT_COLOURS[self.concept % len(CONCEPT_COLOURS)]


@dataclass(frozen=True)
class ServingMap:
    """The map of one run: (data step, a cell per client) for each step that was evaluated."""

    arm: str
    seed: int
    rows: list[tuple[int, list[MapCell]]]

    @property
    def num_models(self) -> int:
        return len({cell.model for _, cells in self.rows for cell in cells} - {NO_MODEL})


def serving_map(run: FinishedRun) -> ServingMap | None:
    """The map of `run`; None where its log does not tell the concepts, or who was served by what."""
    concepts = run.header.get("concepts")
    if concepts is None:
        return None
    numbers: dict[int, str] = {}
    rows = []
    for record in last_evaluations(run.records):
        if record.serving is None:
            continue
        trained = concepts[record.step]
        scored = concepts[min(record.step + 1, len(concepts) - 1)]
        cells = []
        for label, concept, next_concept in zip(record.serving.tolist(), trained, scored, strict=True):
            model = NO_MODEL if label < 0 else numbers.setdefault(label, str(len(numbers) + 1))
            cells.append(MapCell(model, concept, concept != next_concept))
        rows.append((record.step, cells))
    return ServingMap(run.arm, run.seed, rows) if rows else None


def too_large(serving: ServingMap) -> bool:
    """Whether the map has more clients or steps than can be read."""
    return len(serving.rows) > MOST_STEPS or len(serving.rows[0][1]) > MOST_CLIENTS
