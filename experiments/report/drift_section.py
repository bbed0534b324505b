"""What the report adds where the trace knows its concepts: accuracy beside published values, and the maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.comparison import COMPARED, compare, spread
from experiments.report.cells import compared, models
from experiments.report.figures import Arm
from experiments.report.serving_map import CONCEPT_COLOURS, MOST_CLIENTS, MOST_STEPS, serving_map, too_large


def drift_section(arms: Sequence[Arm], report: Mapping[str, Any]) -> dict[str, Any] | None:
    """What the template shows of it; None where no arm was measured with drift and without."""
    if all(arm.summary[figure]["mean"] is None for arm in arms for figure in COMPARED):
        return None
    drawn = [found for arm in arms if arm.runs and (found := serving_map(arm.runs[0])) is not None]
    readable = [found for found in drawn if not too_large(found)]
    seen = {cell.concept for found in readable for _, cells in found.rows for cell in cells}
    return {
        "rows": [
            {
                "name": arm.name,
                "colour": arm.colour,
                "cells": [compared(compare(arm.summary, figure, arm.name, report)) for figure in COMPARED],
                "models": models(
                    spread(arm.summary["models_sent"]["per_seed"]),
                    spread(arm.summary["relative_models_sent"]["per_seed"]),
                ),
            }
            for arm in arms
        ],
        "maps": readable,
        "concepts": [(concept, CONCEPT_COLOURS[concept % len(CONCEPT_COLOURS)]) for concept in sorted(seen)],
        "left_out": len(drawn) - len(readable),
        "most_clients": MOST_CLIENTS,
        "most_steps": MOST_STEPS,
    }
