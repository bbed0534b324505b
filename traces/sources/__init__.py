"""Registry of trace sources by name."""

from emulator.plugins import Registry
from traces.sources.base import TraceContext, TraceSource

SOURCES: Registry[type[TraceSource]] = Registry(
    "trace source",
    "driftscale.traces",
    {
        "concepts": "traces.sources.concepts:Concepts",
        "digits": "traces.sources.mixed_images:Digits",
        "file": "traces.sources.file:File",
        "idx": "traces.sources.mixed_images:IdxFolder",
        "label_replay": "traces.sources.label_replay:LabelReplay",
        "markov_text": "traces.sources.markov_text:MarkovText",
        "synthetic": "traces.sources.synthetic:Synthetic",
    },
    base="traces.sources.base:TraceSource",
)

__all__ = ["SOURCES", "TraceContext", "TraceSource"]
