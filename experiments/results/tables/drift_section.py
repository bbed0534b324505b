"""The report's section for traces with known concepts: accuracy beside published values, serving maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.results.figures.figures import arm_colour
from experiments.results.figures.serving_map import (
    CONCEPT_COLOURS,
    MOST_CLIENTS,
    MOST_STEPS,
    serving_map,
    too_large,
)
from experiments.results.reading.json_files import Finished
from experiments.results.reading.run_directory import FinishedRun
from experiments.results.statistics.marked_seeds import marked_by_drift
from experiments.results.statistics.published import COMPARED, agreement, beside_published, spread
from experiments.results.tables.cells import (
    OUTSIDE,
    agreement_sentence,
    compared,
    models,
    scored_steps,
    unmarked,
)


def drift_section(
    order: Sequence[str],
    finished: Finished,
    runs: Sequence[FinishedRun],
    report: Mapping[str, Any],
) -> dict[str, Any] | None:
    """The values for `drift_section.html`; None if no arm has an accuracy with or without drift cells.

    Args:
        order: Names of the arms as configured.
        finished: That of the summary: figures of all `runs`, even of seeds that the reference arm has not
            finished.
        runs: The finished runs; the first of each arm has a serving map.
        report: The table `[report]` of the configuration.
    """
    arms = finished.arms
    if all(arm[figure].mean is None for arm in arms.values() for figure in COMPARED):
        return None
    names = [name for name in order if name in arms]
    first = {name: next(run for run in runs if run.arm == name) for name in names}
    maps = [serving for run in first.values() if (serving := serving_map(run)) is not None]
    readable = [serving for serving in maps if not too_large(serving)]
    concepts = {cell.concept for serving in readable for _, cells in serving.rows for cell in cells}
    marked = {entry.seed for entry in marked_by_drift(finished)}
    cells = {
        figure: {
            name: beside_published(
                arms[name][figure].per_seed, figure, name, report, marked, arms[name].seed_ids
            )
            for name in names
        }
        for figure in COMPARED
    }
    agreed = {
        title: agreement({name: cell for name, cell in cells[figure].items() if cell is not None})
        for figure, title in zip(COMPARED, ("Omitting drift", "Including drift"), strict=True)
    }
    return {
        "rows": [
            {
                "name": name,
                "colour": arm_colour(order.index(name)),
                "cells": [
                    (*compared(cells[figure][name]), unmarked(cells[figure][name])) for figure in COMPARED
                ],
                "models": models(
                    spread(arms[name].models_sent.per_seed),
                    spread(arms[name].relative_models_sent.per_seed),
                ),
            }
            for name in names
        ],
        "outside": OUTSIDE,
        "agreements": [agreement_sentence(title, found) for title, found in agreed.items() if found],
        "scored_steps": scored_steps(finished.steps, finished.scored_steps),
        "maps": readable,
        "concepts": [
            (concept, CONCEPT_COLOURS[concept % len(CONCEPT_COLOURS)]) for concept in sorted(concepts)
        ],
        "left_out": len(maps) - len(readable),
        "most_clients": MOST_CLIENTS,
        "most_steps": MOST_STEPS,
    }
