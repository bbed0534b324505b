"""Concept sets, by name."""

from emulator.plugins import Registry
from traces.concepts.base import ConceptSamples, ConceptSet, Locate
from traces.concepts.images import LabelSubsets, LabelSwaps
from traces.concepts.points import Circle, Sea, Sine
from traces.concepts.tables import Tables

CONCEPT_SETS: Registry[type[ConceptSet]] = Registry(
    "concept set",
    "driftscale.concepts",
    {
        "circle": Circle,
        "label_subsets": LabelSubsets,
        "label_swaps": LabelSwaps,
        "sea": Sea,
        "sine": Sine,
        "tables": Tables,
    },
)

__all__ = ["CONCEPT_SETS", "ConceptSamples", "ConceptSet", "Locate"]
