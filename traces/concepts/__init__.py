"""Registry of concept sets by name."""

from emulator.plugins import Registry
from traces.concepts.base import ConceptSamples, ConceptSet, Locate

CONCEPT_SETS: Registry[type[ConceptSet]] = Registry(
    "concept set",
    "driftscale.concepts",
    {
        "circle": "traces.concepts.points:Circle",
        "label_subsets": "traces.concepts.images:LabelSubsets",
        "label_swaps": "traces.concepts.images:LabelSwaps",
        "sea": "traces.concepts.points:Sea",
        "sine": "traces.concepts.points:Sine",
        "tables": "traces.concepts.tables:Tables",
    },
    base="traces.concepts.base:ConceptSet",
)

__all__ = ["CONCEPT_SETS", "ConceptSamples", "ConceptSet", "Locate"]
