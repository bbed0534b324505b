"""Registry of label drifts, and other populations, by name."""

from emulator.plugins import Registry
from traces.drift.base import Drift, Population, PopulationContext

DRIFTS: Registry[type[Population]] = Registry(
    "drift",
    "driftscale.drift",
    {
        "buckets": "traces.drift.buckets:Buckets",
        "label_mix": "traces.drift.label_mix:LabelMix",
        "none": "traces.drift.none:NoDrift",
    },
    base="traces.drift.base:Population",
)

__all__ = ["DRIFTS", "Drift", "Population", "PopulationContext"]
