"""The registries of parts, by kind."""

from __future__ import annotations

from typing import Any

from coordinator.adaptations import ADAPTATIONS
from coordinator.aggregators import AGGREGATORS
from coordinator.clusterers import CLUSTERERS
from coordinator.detectors import DETECTORS
from coordinator.memories import MEMORIES
from coordinator.pacing import PACINGS
from coordinator.representations import REPRESENTATIONS
from coordinator.schedules import SCHEDULES
from coordinator.selectors import SELECTORS
from coordinator.triggers import TRIGGERS
from emulator.plugins import Registry
from executor.models import MODELS
from executor.rules import RULES
from traces.availability import AVAILABILITIES
from traces.concepts import CONCEPT_SETS
from traces.drift import DRIFTS
from traces.partitions import PARTITIONS
from traces.sources import SOURCES

REGISTRIES: dict[str, Registry[Any]] = {
    "adaptations": ADAPTATIONS,
    "aggregators": AGGREGATORS,
    "availabilities": AVAILABILITIES,
    "clusterers": CLUSTERERS,
    "concept sets": CONCEPT_SETS,
    "detectors": DETECTORS,
    "drifts": DRIFTS,
    "memories": MEMORIES,
    "models": MODELS,
    "pacings": PACINGS,
    "partitions": PARTITIONS,
    "representations": REPRESENTATIONS,
    "rules": RULES,
    "schedules": SCHEDULES,
    "selectors": SELECTORS,
    "sources": SOURCES,
    "triggers": TRIGGERS,
}

REQUIRED: dict[tuple[str, str], dict[str, Any]] = {
    ("adaptations", "transformed"): {"shifts": [0.5]},
    ("aggregators", "async_mix"): {"staleness": "hinge"},
    ("availabilities", "intervals"): {"windows": "windows.csv"},
    ("concept sets", "label_subsets"): {"folder": "mnist"},
    ("concept sets", "label_swaps"): {"folder": "mnist"},
    ("concept sets", "tables"): {"files": ["a.csv", "b.csv"]},
    ("clusterers", "drift_groups"): {"groups": {"sudden": ["jump"]}},
    ("detectors", "distance"): {"eps": 0.1},
    ("models", "mixture"): {"size": 4},
    ("pacings", "fixed"): {"duration_s": 5.0},
    ("partitions", "column"): {"column": "camera"},
    ("partitions", "dirichlet"): {"per": "class"},
    ("schedules", "by_cluster"): {"clusters": {"0": {"learning_rate": 0.05}}},
    ("schedules", "on_drift"): {"number": "learning_rate"},
    ("sources", "concepts"): {"concepts": "sine", "pattern": "Y"},
    ("sources", "file"): {"folder": "own"},
    ("sources", "idx"): {"folder": "mnist"},
    ("sources", "label_replay"): {
        "table": "labels.csv",
        "images": "mnist",
        "group": "country",
        "time": "day",
        "label": "variant",
    },
}
"""The required settings of parts that have some; all others are made of their defaults.

Those of `async_mix` and `dirichlet` are not required: only with them every number has an effect. Nor is that
of `on_drift`, which by default multiplies a number of a rule that few solvers have.
"""
