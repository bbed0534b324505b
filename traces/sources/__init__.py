"""Trace sources, by name."""

from emulator.plugins import Registry
from traces.sources.base import TraceContext, TraceSource
from traces.sources.concepts import Concepts
from traces.sources.label_replay import LabelReplay
from traces.sources.mixed_images import Digits, IdxFolder

SOURCES: Registry[type[TraceSource]] = Registry(
    "trace source",
    "driftscale.traces",
    {"concepts": Concepts, "digits": Digits, "idx": IdxFolder, "label_replay": LabelReplay},
)

__all__ = ["SOURCES", "TraceContext", "TraceSource"]
