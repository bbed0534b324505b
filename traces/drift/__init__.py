"""Registry of label drifts by name."""

from emulator.plugins import Registry
from traces.drift.base import Drift

DRIFTS: Registry[type[Drift]] = Registry(
    "drift",
    "driftscale.drift",
    {"label_mix": "traces.drift.label_mix:LabelMix", "none": "traces.drift.none:NoDrift"},
)

__all__ = ["DRIFTS", "Drift"]
