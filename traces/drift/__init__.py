"""Label drifts, by name."""

from emulator.plugins import Registry
from traces.drift.base import Drift
from traces.drift.label_mix import LabelMix
from traces.drift.none import NoDrift

DRIFTS: Registry[type[Drift]] = Registry(
    "drift", "driftscale.drift", {"label_mix": LabelMix, "none": NoDrift}
)

__all__ = ["DRIFTS", "Drift"]
